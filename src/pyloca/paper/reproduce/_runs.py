"""Experiments over seeds, each kept in a file of its own, so that a long reproduction can be broken off and resumed."""

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

LIVE = ("mushroom", "wifi")  # whose model is kept: the page plays with it


@dataclass(frozen=True)
class Job:
    """One experiment on one seed, and the files in `output` that its outcome is kept in.

    Attributes
    ----------
    drawn : bool
        Whether pictures, and the model of some, are wanted too.
    """

    experiment: Experiment
    seed: int
    solver: str
    quick: bool
    output: Path
    drawn: bool = False

    @property
    def stem(self) -> str:
        """Of the names of all its files."""
        parts = [self.experiment.name, self.solver, *(["quick"] if self.quick else []), f"seed{self.seed}"]
        return "-".join(parts)

    @property
    def record(self) -> Path:
        """The file with the figures of merit."""
        return self.output / f"{self.stem}.json"

    @property
    def model(self) -> Path | None:
        """The file with the fitted model, if it is wanted."""
        live = self.drawn and self.experiment.name in LIVE
        return self.output / f"{self.stem}.safetensors" if live else None

    @property
    def pictures(self) -> dict[str, Path]:
        """The pictures that are wanted, by name."""
        names = FIGURES[self.experiment.name] if self.drawn else {}
        return {name: self.output / f"{self.stem}-{name}.png" for name in names}

    def kept(self) -> dict[str, Any] | None:
        """The record of an earlier run of the same settings and version, if all that is wanted of it is there."""
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
            return None  # no such file, or a damaged one
        return facts if complete and told == self._stamp() else None

    def run(self) -> dict[str, Any]:
        """Run the experiment and keep what is wanted. The record is written last: where it is, all is."""
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
    """A job and its record; `kept` when it was not run again."""

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
    """Run experiments on seeds; what is in `output` already is kept. Pictures are drawn of the first seed.

    Every run is yielded when its files are written, so that whoever breaks off loses only the one under way.
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
            say(f"{label}: doubt: {doubt}")
        yield Run(job, record, kept=False)
