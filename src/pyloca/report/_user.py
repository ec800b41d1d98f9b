"""The page of `pyloca report`: a fitted model, and what bursts say of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import figure as drawn
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from pyloca.bursts import open_bursts
from pyloca.checks import push, whitening
from pyloca.errors import BurstError
from pyloca.estimator import LOCA, Data, Reading, read_like
from pyloca.findings import Diagnostics, judge, round_trip_errors
from pyloca.geometry import BurstStatistics
from pyloca.inspection import median_spectrum
from pyloca.plots import (
    MOST_AXES,
    plot_ellipses,
    plot_errors,
    plot_map,
    plot_spectrum,
    plot_training,
    plot_whitening,
    png,
)
from pyloca.report._explorer import explorer
from pyloca.report._page import Figure, Page, Section, Table, versions

__all__ = ["user_report"]

Array = NDArray[np.float64]

WORST = 10  # bursts in the table
# A median loss this part of what sampling would leave: the points of these bursts are not random.
NOT_RANDOM = 0.02
NOT_A_SETTING = {"callbacks", "verbose", "device", "encoder", "decoder"}


@dataclass(frozen=True)
class _Findings:
    """What the page is made from: everything has a row for each of the N bursts."""

    model: LOCA
    seen: Reading
    statistics: BurstStatistics
    spectrum: Array
    Z: Array  # (N, d)
    loss: Array
    floors: Array  # 0 where sampling explains nothing
    stretch: Array  # (N, k)
    error: Array  # of the reconstruction, as part of the data's size
    held_out: NDArray[np.int64] | None  # None: these are not the bursts of the fit
    diagnostics: Diagnostics  # of the fit when these are its bursts, else of these
    labels: Sequence[str] | None

    @property
    def sampled(self) -> bool:
        return bool(np.all(self.floors > 0))


def user_report(model: LOCA, bursts: Data, *, labels: Sequence[str] | None = None, name: str = "") -> Page:
    """The page of a fitted model: what it found, how far to believe it, and the model itself to play with.

    Parameters
    ----------
    model : LOCA
        Fitted, or loaded from a file.
    bursts : (N, M, D), Bursts, BurstStatistics, or a path
        The bursts of the fit, or others from the same instrument; the page says which.
    labels : sequence of N str, optional
        What the bursts are called.
    name : str
        Title of the page.
    """
    check_is_fitted(model)
    found = _find(model, bursts, labels)
    warnings = found.diagnostics.warnings
    if found.held_out is None:
        # A doubt about the fit itself does not go away with other data.
        warnings = (*model.diagnostics_.warnings, *(w for w in warnings if w not in model.diagnostics_.warnings))
    return Page(
        title=name or "Standardized coordinates",
        lead=_lead(found, warnings),
        sections=(
            _explore(found),
            _overview(found),
            _embedding(found),
            _whitening(found),
            _reconstruction(found),
            _training(found),
            _bursts(found),
        ),
        settings=_settings(model),
        versions=versions(),
        warnings=warnings,
    )


def _find(model: LOCA, bursts: Data, labels: Sequence[str] | None) -> _Findings:
    if isinstance(bursts, (str, os.PathLike)):
        bursts = open_bursts(bursts)
    seen = read_like(model, bursts)
    statistics = seen.statistics
    spectrum = np.median(statistics.spectra, axis=0) if seen.bursts is None else median_spectrum(seen.bursts)
    if labels is not None and len(labels) != len(statistics):
        raise BurstError(f"there are {len(labels)} labels for {len(statistics)} bursts; give one for each.")
    means = statistics.means
    Z = seen.embed()
    white = whitening(seen.encoder, statistics, model.burst_std_)
    loss, floors, stretch = white.losses, white.floors, white.stretches
    if np.median(loss) < NOT_RANDOM * np.median(floors):
        floors = np.zeros_like(floors)
    error = round_trip_errors(seen.decoder, means, Z)
    same = Z.shape == model.embedding_.shape and np.allclose(Z, model.embedding_, rtol=1e-6, atol=1e-6 * Z.std())
    held_out = model.validation_indices_ if same else None
    checked = (
        model.diagnostics_
        if same
        else judge(seen.encoder, statistics, model.burst_std_, decoder=seen.decoder, bursts=seen.bursts)
    )
    return _Findings(model, seen, statistics, spectrum, Z, loss, floors, stretch, error, held_out, checked, labels)


# -- sections ---------------------------------------------------------------------------------------------------------


def _lead(found: _Findings, warnings: Sequence[str]) -> str:
    low, high = found.diagnostics.stretch
    verdict = (
        "A check says that this result should not be believed as it stands."
        if warnings
        else f"No check speaks against it: bursts come out {low:.3f} to {high:.3f} times as long as they should "
        f"(5 % to 95 % of all directions){_sampling_words(found.diagnostics)}."
    )
    return (
        f"{len(found.Z):,} bursts in {_plural(found.statistics.n_features, 'feature')}, brought to "
        f"{_plural(found.Z.shape[1], 'coordinate')} by LOCA. {verdict}"
    )


def _sampling_words(checked: Diagnostics) -> str:
    if checked.sampling_stretch is None:
        return ""
    low, high = checked.sampling_stretch
    return f", where the sampling of their points alone gives {low:.3f} to {high:.3f}"


def _explore(found: _Findings) -> Section:
    return Section(
        "Explore the model",
        explorers=(explorer(found.model, found.statistics.means, title="From the embedding", labels=found.labels),),
    )


def _overview(found: _Findings) -> Section:
    model, statistics = found.model, found.statistics
    checked = found.diagnostics
    which = "held-out bursts" if found.held_out is not None and len(found.held_out) else "all bursts here"
    rows = [
        ("N, bursts", f"{len(statistics):,}"),
        ("M, points a burst", _counts(statistics.counts)),
        ("D, features", f"{statistics.n_features:,}"),
        ("k, directions that a burst spans", str(statistics.intrinsic_dim)),
        ("d, coordinates", str(model.n_components_)),
        ("σ, size of a burst in the coordinates", f"{model.burst_std_:.4g} ({_scale(model)})"),
        (f"whitening loss, {which}", f"{checked.whitening_loss:.3g} (median {checked.median_loss:.3g})"),
        ("… of which sampling explains", _floor_words(found, checked.sampling_floor)),
        (
            "local stretch, 5 % to 95 %",
            f"{checked.stretch[0]:.3f} to {checked.stretch[1]:.3f}{_sampling_words(checked)}",
        ),
        ("reconstruction error, median", f"{_percent(np.median(found.error))} of the size of the data"),
        *([] if checked.gap is None else [("largest gap", str(checked.gap).capitalize())]),
        ("training", f"{model.n_iter_:,} iterations, {'converged' if model.converged_ else 'did not converge'}"),
    ]
    paragraphs = (
        "LOCA looks for coordinates in which every burst is a round cloud of standard deviation σ. Where it succeeds, "
        "distances between the coordinates are distances between the states that were measured.",
        _whose(found),
    )
    return Section("At a glance", paragraphs, (Table(("quantity", "value"), tuple(rows)),))


def _embedding(found: _Findings) -> Section:
    means = found.statistics.means
    components = PCA(
        min(2, means.shape[1]), svd_solver="full" if means.shape[1] <= 500 else "randomized", random_state=0
    )
    figures = []
    colours = components.fit_transform(means).T
    # Pictures of more than one panel stand below each other; one of them says enough.
    for order, values in zip(("1st", "2nd"), colours if found.Z.shape[1] <= 2 else colours[:1], strict=False):
        label = f"{order} principal component of y"
        picture = plot_map(found.Z, values, label)
        figures.append(_figure(picture, f"Map of the embedded bursts, coloured by the {label}."))
    d = found.Z.shape[1]
    shown = "" if d <= MOST_AXES else f" Of the {d} coordinates the first {MOST_AXES} are drawn."
    words = (
        "A dot is a burst, coloured by what was measured there: a principal component of the measurements y. Colours "
        "that change smoothly mean that near places measure alike. All axes have one scale; turning, mirroring or "
        f"shifting the whole picture would change nothing.{shown}"
    )
    return Section("Embedding", (words,), figures=tuple(figures))


def _whitening(found: _Findings) -> Section:
    k = found.statistics.intrinsic_dim
    score = found.loss / found.floors if found.sampled else found.loss
    label = "whitening loss / what sampling leaves" if found.sampled else "whitening loss"
    explained = (
        "A burst of few points is never exactly white: sampling alone leaves k (k + 1) / (2 (M − 1)) of the loss on "
        "average. Where the histogram follows the black curve, the encoder is as good as these bursts can tell."
        if found.sampled
        else "Nothing of this loss is explained by sampling: the local geometry is known exactly, or the points of a "
        "burst are a fixed array and not random."
    )
    return Section(
        "Whitening: is every burst round?",
        (
            "The whitening loss of a burst is tr G − log det G − k, where G is its covariance after the encoder, over "
            f"σ². It is 0 for a burst that came out round and of the right size. {explained}",
        ),
        (_worst(found, score),),
        (
            _figure(
                plot_whitening(found.loss, found.floors, k, found.held_out),
                f"Histogram of the whitening loss of the bursts; median {np.median(score):.3g}.",
                "Whitening loss of every burst"
                + (", in units of what sampling leaves on average." if found.sampled else "."),
            ),
            _figure(
                plot_map(found.Z, score, label, log=True),
                "Map of the embedded bursts, coloured by their whitening loss.",
                "The same on the embedding. Bright patches, rather than single bright dots, are places to mistrust: an "
                "edge, a fold, or a measurement that is nearly blind there.",
            ),
            *_ellipses(found),
        ),
    )


def _ellipses(found: _Findings) -> list[Figure]:
    if found.Z.shape[1] < 2:
        return []
    return [
        _figure(
            plot_ellipses(found.Z, push(found.seen.encoder, found.statistics, found.model.burst_std_)[1].numpy()),
            "Some bursts after the encoder, drawn as ellipses on the embedding.",
            "Some bursts after the encoder, many times enlarged. Round ones of the size of the dashed circle are as "
            "they should be; where long ones lie side by side, distances are wrong that way.",
        )
    ]


def _worst(found: _Findings, score: Array) -> Table:
    rows = []
    # The largest and the smallest stretch of a burst: which way it fails to be round.
    for i in np.argsort(-score, kind="stable")[:WORST]:
        burst = [str(i)] if found.labels is None else [str(i), str(found.labels[i])]
        held = "" if found.held_out is None else "yes" if i in found.held_out else "no"
        cells = (f"{found.loss[i]:.3g}", f"{score[i]:.3g}" if found.sampled else "", held)
        stretch = f"{found.stretch[i].min():.3f} to {found.stretch[i].max():.3f}"
        rows.append(
            (*burst, _numbers(found.Z[i]), stretch, *(cell for cell in cells if cell), f"{_percent(found.error[i])}")
        )
    names = ("burst",) if found.labels is None else ("burst", "label")
    header = [*names, "embedded at", "stretch", "loss"]
    header += ["loss / sampling"] * found.sampled + ["held out"] * (found.held_out is not None) + ["reconstruction"]
    return Table(tuple(header), tuple(rows), f"The {len(rows)} bursts that came out least round")


def _reconstruction(found: _Findings) -> Section:
    label = "reconstruction error / size of the data"
    far = int((found.error > 0.1).sum())
    return Section(
        "Reconstruction: does it come back?",
        (
            "The mean of every burst goes through the encoder and back through the decoder. The error is its distance "
            "from itself, as a part of the data's size (the root mean square distance from their centre). "
            f"The median is {_percent(np.median(found.error))}, the worst is {_percent(found.error.max())}; {far:,} of "
            f"{len(found.error):,} bursts are off by more than 10 %.",
        ),
        figures=(
            _figure(
                plot_errors(found.error, label),
                f"Histogram of the reconstruction error; median {np.median(found.error):.3g}.",
                "Reconstruction error of every burst mean.",
            ),
            _figure(
                plot_map(found.Z, found.error, label, log=True),
                "Map of the embedded bursts, coloured by their reconstruction error.",
                "The same on the embedding. Where two distant measurements are embedded at one place, no decoder can "
                "tell them apart, and this is where it shows.",
            ),
        ),
    )


def _training(found: _Findings) -> Section:
    history = found.model.history_
    if not history:
        return Section("Training", ("The training left no record: it ended before its first check.",))
    return Section(
        "Training",
        (
            f"{found.model.n_iter_:,} iterations in {history[-1]['seconds']:.1f} s with the solver "
            f"“{found.model.solver}”. Each stage has its own objective, so only values of one stage can be compared.",
        ),
        figures=(
            _figure(
                plot_training(history),
                f"Loss against iterations of the training, {len(history)} checks.",
                "Loss at every check of the training, on the bursts that it used and on those held out.",
            ),
        ),
    )


def _bursts(found: _Findings) -> Section:
    k = found.statistics.intrinsic_dim
    spectra = found.statistics.spectra
    off = float(np.median(found.statistics.residuals / (spectra.sum(axis=1) + found.statistics.residuals)))
    beyond = (
        f"a clear drop after them means that the bursts are flat patches. {_percent(off)} of a burst's variance lies "
        "off its tangents (median): noise and curvature."
        if k < found.statistics.n_features
        else "here these are all directions that there are."
    )
    return Section(
        "The bursts themselves",
        (f"Median eigenvalues of the burst covariances. The first k = {k} belong to the tangents; {beyond}",),
        (
            Table(
                ("eigenvalue", "median", "meaning"),
                tuple(
                    (str(i + 1), f"{value:.3g}", "tangent" if i < k else "noise and curvature")
                    for i, value in enumerate(found.spectrum)
                ),
            ),
        ),
        (
            _figure(
                plot_spectrum(found.spectrum, k),
                f"The {len(found.spectrum)} leading median eigenvalues, of which {k} are tangent.",
            ),
        ),
    )


# -- words ------------------------------------------------------------------------------------------------------------


def _figure(picture: drawn.Figure, alt: str, caption: str = "") -> Figure:
    return Figure(png(picture), alt, caption)


def _settings(model: LOCA) -> dict[str, str]:
    values = {name: value for name, value in model.get_params(deep=False).items() if name not in NOT_A_SETTING}
    return {name: _setting(value) for name, value in sorted(values.items())}


def _setting(value: Any) -> str:
    if value is None:
        return "not set"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _whose(found: _Findings) -> str:
    if found.held_out is None:
        return "These are not the bursts that the model was fitted to: everything below is about new data."
    held = len(found.held_out)
    if not held:
        return "These are the bursts that the model was fitted to; none were held out."
    return f"These are the bursts of the fit; {held:,} of them were held out and only used to decide when to stop."


def _scale(model: LOCA) -> str:
    return "given" if model.burst_std is not None else "not given to LOCA: where the bursts knew none, estimated"


def _floor_words(found: _Findings, floor: float) -> str:
    return f"{floor:.3g}" if found.sampled else "nothing: see below"


def _counts(counts: Array) -> str:
    if not np.isfinite(counts).all():
        return "known exactly"
    low, high = int(counts.min()), int(counts.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _percent(part: float) -> str:
    if 0 < part < 1e-5:
        return "less than 0.001 %"
    return f"{np.format_float_positional(100 * part, precision=2, fractional=False, trim='-')} %"


def _numbers(values: Array) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in values).replace("-", "−") + ")"


def _plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
