"""Experiments over seeds, each with its own file, so that a long reproduction can be interrupted and resumed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyloca._atomic import write_atomically
from pyloca._version import __version__
from pyloca.paper.experiments import EXPERIMENTS, Experiment, Merit
from pyloca.paper.reproduce._catalogue import FIGURES
from pyloca.plots import png

__all__ = ["LIVE", "Job", "Run", "reproduce"]

LIVE = ("mushroom", "wifi")  # whose model is saved, because the page uses it


@dataclass(frozen=True)
class Job:
    """One experiment on one seed, and the files in which its outcome is saved.

    Attributes
    ----------
    experiment : Experiment
    seed : int
    solver : {"fast", "paper"}
    quick : bool
        Whether to use the small settings.
    output : Path
        Directory of the files.
    drawn : bool
        Whether figures, and for some experiments the model, are saved too.

    Examples
    --------
    >>> from pyloca.paper.experiments import EXPERIMENTS
    >>> Job(EXPERIMENTS["wifi"], 3, "fast", False, Path("out")).record.name
    'wifi-fast-seed3.json'
    """

    experiment: Experiment
    seed: int
    solver: str
    quick: bool
    output: Path
    drawn: bool = False

    @property
    def stem(self) -> str:
        """First part of the names of all its files."""
        parts = [self.experiment.name, self.solver, *(["quick"] if self.quick else []), f"seed{self.seed}"]
        return "-".join(parts)

    @property
    def record(self) -> Path:
        """File with the figures of merit."""
        return self.output / f"{self.stem}.json"

    @property
    def model(self) -> Path | None:
        """File with the fitted model, if it is to be saved."""
        live = self.drawn and self.experiment.name in LIVE
        return self.output / f"{self.stem}.safetensors" if live else None

    @property
    def pictures(self) -> dict[str, Path]:
        """Files with the figures to be saved, by name."""
        names = FIGURES[self.experiment.name] if self.drawn else {}
        return {name: self.output / f"{self.stem}-{name}.png" for name in names}

    def kept(self) -> dict[str, Any] | None:
        """Return the record of an earlier run with the same settings and version, if all of its files exist.

        Returns
        -------
        dict or None
        """
        wanted = [*self.pictures.values(), *([self.model] if self.model else [])]
        if not all(path.is_file() for path in wanted):
            return None
        try:
            facts = json.loads(self.record.read_text(encoding="utf-8"))
            told = {key: facts[key] for key in ("pyloca", "name", "seed", "solver", "quick", "settings")}
            merits = [Merit(**merit) for merit in facts["figures"].values()]
            finite = all(math.isfinite(number) for number in (facts["seconds"], *(merit.value for merit in merits)))
            complete = bool(merits) and finite and isinstance(facts["trust_warnings"], list)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # missing or damaged
        return facts if complete and told == self._stamp() else None

    def run(self) -> dict[str, Any]:
        """Run the experiment and save its files. The record is written last: if it exists, all files do.

        Returns
        -------
        dict
            The record.
        """
        result = self.experiment.run(self.seed, self.solver, self.quick)
        text = json.dumps({"pyloca": __version__, **result.to_dict()}, indent=1)
        self.output.mkdir(parents=True, exist_ok=True)
        for name, path in self.pictures.items():
            write_atomically(path, png(FIGURES[self.experiment.name][name](result)))
        if self.model:
            result.scene["model"].save(self.model)
        write_atomically(self.record, f"{text}\n".encode())
        return dict(json.loads(text))

    def _stamp(self) -> dict[str, Any]:
        settings = json.loads(json.dumps(self.experiment.settings(self.quick)))  # tuples are lists there
        return {
            "pyloca": __version__,
            "name": self.experiment.name,
            "seed": self.seed,
            "solver": self.solver,
            "quick": self.quick,
            "settings": settings,
        }


@dataclass(frozen=True)
class Run:
    """A job and its record.

    Attributes
    ----------
    job : Job
    record : dict
        As in its file.
    kept : bool
        Whether the record was read from an earlier run.

    Examples
    --------
    See `reproduce`.
    """

    job: Job
    record: dict[str, Any]
    kept: bool


def reproduce(
    names: Sequence[str],
    seeds: Sequence[int],
    output: Path,
    *,
    solver: str = "fast",
    quick: bool = False,
    say: Callable[[str], None] = print,
) -> Iterator[Run]:
    """Run experiments on several seeds; runs that are already in `output` are not repeated.

    Parameters
    ----------
    names : sequence of str
        Keys of `pyloca.paper.experiments.EXPERIMENTS`.
    seeds : sequence of int
        Figures are drawn for the first.
    output : Path
        Directory of the files.
    solver : {"fast", "paper"}, default="fast"
    quick : bool, default=False
        Whether to use the small settings.
    say : callable, default=print
        Receives lines about the progress.

    Yields
    ------
    Run
        After its files were written, so that an interruption loses only the run in progress.

    Examples
    --------
    >>> for run in reproduce(["wifi"], [0, 1], Path("out"), quick=True):  # doctest: +SKIP
    ...     print(run.record["figures"])  # takes minutes
    """
    jobs = [
        Job(EXPERIMENTS[name], seed, solver, quick, output, drawn=seed == seeds[0])
        for seed in seeds  # seeds outside: `decoder` finds the model that `frame` has just fitted
        for name in EXPERIMENTS
        if name in names
    ]
    for number, job in enumerate(jobs, start=1):
        label = f"[{number}/{len(jobs)}] {job.experiment.name}, seed {job.seed}"
        record = job.kept()
        if record is not None:
            say(f"{label}: kept")
            yield Run(job, record, kept=True)
            continue
        say(f"{label}: running")
        record = job.run()
        merits = ", ".join(f"{name} {merit['value']:.2g}" for name, merit in record["figures"].items())
        say(f"{label}: {merits} ({record['seconds']:.1f} s)")
        for doubt in record["trust_warnings"]:
            say(f"{label}: trust warning: {doubt}")
        yield Run(job, record, kept=False)
