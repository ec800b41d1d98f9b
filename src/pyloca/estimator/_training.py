"""One training from beginning to end: pose the problem, solve it, judge the result."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import check_real, is_integer
from pyloca._forks import COMPUTING
from pyloca._memory import release_memory
from pyloca._threads import after_fork, one_thread
from pyloca.bursts import Bursts, split_indices
from pyloca.estimator._parameters import check_modules, choose_device
from pyloca.findings import Diagnostics, Finding, TrustScale, judge
from pyloca.geometry import BurstStatistics, Reduction, find_reduction
from pyloca.networks import Standardized, apply_rows, in_units, widened_decoder, widened_encoder
from pyloca.solvers import SOLVERS, CheckpointFile, Monitor, Problem, Solution, told_place

__all__ = ["checkpoint_at", "train"]

Array = NDArray[np.float64]
LOGGER = logging.getLogger("pyloca")


def train(
    model: Any,
    bursts: Bursts | None,
    statistics: BurstStatistics,
    scale: Array | None,
    *,
    n_components: int,
    burst_std: float,
    notes: tuple[str, ...] = (),
    constants: Array | float = 0.0,
    checkpoint: Callable[[dict[str, Any]], CheckpointFile] | None = None,
) -> dict[str, Any]:
    """Train `model` and return its fitted attributes by name; `bursts` and `statistics` are in units of `scale`.

    `constants` are what the decoder returns for features that `scale` leaves out, and `notes` are about these.
    """
    problem = _pose(model, bursts, statistics, n_components, burst_std)
    seen, reduction = _reduced(model, problem, free_of_units=scale is not None)
    if reduction is not None:
        notes = (*notes, reduction.words())
    if model.solver == "fast" and problem.device.type == "cpu" and (place := told_place(len(statistics))):
        LOGGER.info(place)
        notes = (*notes, place)
    file = None
    if checkpoint is not None:
        facts = problem.facts(raw=model.solver == "paper")
        file = checkpoint({"solver": model.solver, "directions": seen.statistics.n_features, **facts})
    monitor = Monitor(model.callbacks, model.verbose, file)
    after_fork()
    try:
        with COMPUTING if seen.wants_threads else one_thread():
            solution = SOLVERS[model.solver](seen, monitor)
    finally:
        monitor.close()
    centred = model.solver == "fast" and scale is not None
    solution = _undone(solution, reduction, statistics.means.mean(axis=0) if centred else None)
    encoder, decoder = solution.encoder, solution.decoder
    embedding = apply_rows(encoder, statistics.means, n_components)
    n_iter = monitor.history[-1]["iteration"] if monitor.history else 0
    release_memory()
    diagnostics, trust_scale = _judge(solution, problem, embedding, n_iter, scaled=isinstance(model.feature_scale, str))
    dim = statistics.n_features
    fitted = {
        "encoder_": in_units(encoder, in_scale=scale),
        "decoder_": in_units(decoder, out_scale=scale, out_shift=constants),
        "embedding_": embedding,
        "burst_ids_": statistics.ids,
        "history_": monitor.history,
        "n_iter_": n_iter,
        "converged_": solution.converged,
        "burst_std_": burst_std,
        "intrinsic_dim_": statistics.intrinsic_dim,
        "n_components_": n_components,
        "n_features_in_": dim,
        "units_": statistics.units,
        "feature_scale_": np.ones(dim) if scale is None else scale,
        "validation_indices_": problem.validation,
        "diagnostics_": replace(diagnostics, notes=notes),
        "trust_scale_": trust_scale,
    }
    if statistics.feature_names is not None:
        fitted["feature_names_in_"] = np.array(statistics.feature_names, dtype=object)
    return fitted


def checkpoint_at(
    model: Any, path: str | os.PathLike[str] | None, every: float, resume: bool
) -> Callable[[dict[str, Any]], CheckpointFile] | None:
    """Return what makes the checkpoint file of a training from its facts; None without a path."""
    if path is None:
        return None
    if not is_integer(model.random_state, 0):
        raise ValueError("a fit with a checkpoint needs an integer random_state, so that it can be resumed.")
    check_real("checkpoint_every", every, positive=False)
    folder = Path(path).parent
    if not folder.is_dir():  # now, not after minutes of work
        raise FileNotFoundError(f"cannot write the checkpoint '{path}': there is no directory '{folder}'.")
    return partial(CheckpointFile, Path(path), every=every, resume=resume)


def _pose(
    model: Any, bursts: Bursts | None, statistics: BurstStatistics, n_components: int, burst_std: float
) -> Problem:
    random = check_random_state(model.random_state)
    train, validation = split_indices(len(statistics), model.validation_fraction, random)
    check_modules(model, statistics.n_features, n_components)
    return Problem(
        statistics=statistics,
        bursts=bursts,
        train=train,
        validation=validation,
        n_components=n_components,
        burst_std=burst_std,
        hidden_layers=tuple(model.hidden_layers),
        activation=model.activation,
        decoder_activation=model.activation if model.decoder_activation is None else model.decoder_activation,
        encoder=model.encoder,
        decoder=model.decoder,
        device=choose_device(model.device, model.solver),
        seed=int(random.randint(np.iinfo(np.int32).max)),
        max_iter=None if model.max_iter is None else int(model.max_iter),
        tol=model.tol,
    )


def _reduced(model: Any, problem: Problem, *, free_of_units: bool) -> tuple[Problem, Reduction | None]:
    """Return the problem as the solver sees it, in fewer directions of the measurements if that loses nothing.

    Where features were scaled, the fast solver sees the same bits for all units.
    """
    if model.solver != "fast":
        return problem, None
    if free_of_units:
        problem = replace(problem, statistics=problem.statistics.rounded())
    if problem.encoder is not None or problem.decoder is not None:  # they take measurements as they are
        return problem, None
    reduction = find_reduction(problem.statistics[problem.train], problem.n_components)
    if reduction is None:
        return problem, None
    return replace(problem, statistics=reduction.apply(problem.statistics)), reduction


def _undone(solution: Solution, reduction: Reduction | None, centre: Array | None) -> Solution:
    """Return networks of measurements, on the CPU; `centre` is what was subtracted from the means before."""
    encoder, decoder = solution.encoder.cpu(), solution.decoder.cpu()
    if reduction is not None or centre is not None:
        assert isinstance(encoder, Standardized) and isinstance(decoder, Standardized)  # as the fast solver makes them
        if reduction is not None:
            encoder = widened_encoder(encoder, reduction.centre, reduction.basis)
            decoder = widened_decoder(decoder, reduction.centre, reduction.basis)
        if centre is not None:
            encoder, decoder = encoder.moved(centre, 0.0), decoder.moved(0.0, centre)
    return replace(solution, encoder=encoder.eval(), decoder=decoder.eval())


@one_thread()
def _judge(
    solution: Solution, problem: Problem, embedding: Array, n_iter: int, *, scaled: bool
) -> tuple[Diagnostics, TrustScale]:
    statistics = problem.statistics
    held_out = problem.validation if len(problem.validation) else np.arange(len(statistics))
    diagnostics = judge(
        solution.encoder,
        statistics,
        problem.burst_std,
        held_out,
        decoder=solution.decoder,
        bursts=problem.bursts,
        restarts=solution.restarts,
        finished=not solution.unfinished,
        scaled=scaled,
    )
    trust_scale = TrustScale.calibrate(
        solution.encoder,
        solution.decoder,
        statistics.means[held_out] if problem.bursts is None else problem.bursts[held_out],
        embedding[problem.train],
    )
    trust = trust_scale.trust(solution.decoder, statistics.means, embedding, embedding[problem.train])
    diagnostics = replace(diagnostics, trust=trust)
    if solution.unfinished:
        diagnostics = replace(diagnostics, findings=_unfinished(diagnostics.findings, solution.unfinished, n_iter))
    return diagnostics, trust_scale


# What bursts show by themselves, whatever the networks make of them.
OF_THE_DATA = frozenset(
    (
        "columns",
        "units",
        "no_displacement",
        "few_points",
        "noise",
        "more_tangents",
        "unrelated",
        "uneven_size",
        "clipped",
    )
)


def _unfinished(found: tuple[Finding, ...], stage: str, n_iter: int) -> tuple[Finding, ...]:
    """Tell first that training was cut short; what a finished fit might not show is not blamed on the data."""
    decode = stage == "decode"  # the encoder is finished then
    decoder = "was cut short" if decode else "is not trained: its output is noise"
    told = tuple(finding for finding in found if decode or finding.name in OF_THE_DATA)
    others = "" if decode else " The coordinates are not finished either, and what else may be wrong was not judged."
    first = Finding(
        "unfinished",
        f"training was ended by max_iter or a callback in stage '{stage}', after {n_iter} iterations. The decoder "
        f"{decoder}.{others} Allow more iterations.",
    )
    return (first, *told)
