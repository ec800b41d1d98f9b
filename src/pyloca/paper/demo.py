"""`pyloca demo`: fit two of the paper's examples, compare them with the truth, and draw them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyloca import datasets
from pyloca._atomic import write_atomically
from pyloca.datasets import Dataset
from pyloca.estimator import LOCA
from pyloca.metrics import stress
from pyloca.paper._overview import Scene, overview
from pyloca.plots import png

__all__ = ["EXAMPLES", "Example", "Result", "run_demo", "run_example", "table"]

HEADER = ("data set", "N", "M", "D", "stress", "paper", "seconds", "in words")


@dataclass(frozen=True)
class Example:
    """A data set, how to draw it, and the paper's result.

    Attributes
    ----------
    name : str
    draw : callable
        Makes the data set; takes `random_state`.
    scene : Scene
        How to draw it.
    place : str
        Puts a distance error in context: "on a square of side 1".
    paper_stress : float, optional
        None if the paper shows a figure only.
    parameters : mapping
        Of `LOCA`, in addition to those that every example has.

    Examples
    --------
    >>> from pyloca.paper.demo import EXAMPLES
    >>> [example.name for example in EXAMPLES]
    ['wifi', 'mushroom']
    """

    name: str
    draw: Callable[..., Dataset]
    scene: Scene
    place: str
    paper_stress: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


EXAMPLES = (
    Example(
        "wifi",
        datasets.wifi,
        Scene(
            "Wi-Fi floor plan: positions of receivers from 17 signal strengths",
            burst="burst: a ring of 6 receivers",
            burst_radius=0.5,
            unit="px",
            enlarge=60,
            mosaic="abc;adc",
            size=(11, 7.2),
        ),
        place="on a 1000 px floor",
    ),
    Example(
        "mushroom",
        datasets.mushroom,
        Scene(
            "Mushroom: a square measured through $f(x) = (x_0 + x_1^3,\\; -x_0 + x_1^3)$",
            burst="burst and its 2σ ellipse",
            burst_radius=0.02,
            enlarge=2,
        ),
        place="on a square of side 1",
        paper_stress=1.5e-5,
    ),
)


@dataclass(frozen=True)
class Result:
    """Result of one fit.

    Attributes
    ----------
    name : str
    n_bursts, n_points, n_features : int
        N, M and D.
    stress : float
    paper_stress : float, optional
        None if the paper shows a figure only.
    typical_error : float
        Square root of the stress: the error of a distance between two points.
    unit, place : str
        Unit of the latent space, and what a distance error refers to.
    seconds : float
        Duration of the fit.
    iterations : int
    trust_warnings : tuple of str
    picture : str
        Path of the figure.

    Examples
    --------
    See `run_example`.
    """

    name: str
    n_bursts: int
    n_points: int
    n_features: int
    stress: float
    paper_stress: float | None
    typical_error: float
    unit: str
    place: str
    seconds: float
    iterations: int
    trust_warnings: tuple[str, ...]
    picture: str

    @property
    def words(self) -> str:
        """Typical distance error in words."""
        return f"{_with_unit(f'{self.typical_error:.2g}', self.unit)} typical distance error {self.place}"

    @property
    def row(self) -> tuple[str, ...]:
        """Cells of the table, in the order of `HEADER`."""
        paper = "picture only" if self.paper_stress is None else f"{self.paper_stress:.1e}"
        sizes = (str(self.n_bursts), str(self.n_points), str(self.n_features))
        return (self.name, *sizes, _stress(self.stress, self.unit), paper, f"{self.seconds:.1f}", self.words)


def run_demo(output: Path, seed: int = 0, say: Callable[[str], None] = print) -> Iterator[Result]:
    """Run every example.

    Parameters
    ----------
    output : Path
        Directory for the figures.
    seed : int, default=0
    say : callable, default=print
        Receives lines about the progress.

    Yields
    ------
    Result
        One per example, after its figure was written.

    Examples
    --------
    >>> for result in run_demo(Path("demo"), seed=0):  # doctest: +SKIP
    ...     print(result.words)  # takes a minute
    """
    for example in EXAMPLES:
        yield run_example(example, output, seed, say)


def run_example(example: Example, output: Path, seed: int, say: Callable[[str], None]) -> Result:
    """Make the data, fit LOCA, compare it with the truth, and write ``<name>.png``.

    Parameters
    ----------
    example : Example
    output : Path
        Directory for the figure.
    seed : int
    say : callable
        Receives lines about the progress.

    Returns
    -------
    Result

    Examples
    --------
    >>> run_example(EXAMPLES[1], Path("demo"), 0, print).stress  # doctest: +SKIP
    2.1e-06
    """
    data = example.draw(random_state=seed)
    n, m, dim = len(data.bursts), int(data.bursts.counts[0]), data.bursts.n_features
    say(f"{example.name}: fitting {n} bursts of {m} points in {dim} dimensions")
    model = LOCA(
        n_components=data.n_components,
        burst_std=data.burst_std,
        random_state=seed,
        verbose=1,
        **example.parameters,
    )
    start = time.perf_counter()
    model.fit(data.bursts)
    seconds = time.perf_counter() - start
    # σ is known here, so the scale of the embedding is tested as well: no factor is fitted.
    value = stress(data.X, model.transform(data.Y))
    path = output / f"{example.name}.png"
    result = Result(
        name=example.name,
        n_bursts=n,
        n_points=m,
        n_features=dim,
        stress=value,
        paper_stress=example.paper_stress,
        typical_error=value**0.5,
        unit=example.scene.unit,
        place=example.place,
        seconds=seconds,
        iterations=model.n_iter_,
        trust_warnings=model.diagnostics_.warnings,
        picture=str(path),
    )
    note = f"{n} bursts of {m} points. Stress {_stress(value, result.unit)}: {result.words}."
    write_atomically(path, png(overview(data, model.encode, example.scene, note)))
    return result


def table(results: Sequence[Result]) -> str:
    """Format results as aligned columns.

    Parameters
    ----------
    results : sequence of Result

    Returns
    -------
    str

    Examples
    --------
    >>> result = Result(
    ...     "mushroom", 2000, 200, 2, 2e-6, 1.5e-5, 1.4e-3, "", "on a square of side 1", 5.0, 900, (), "mushroom.png"
    ... )
    >>> print(table([result]).splitlines()[0])
    data set     N    M  D   stress    paper  seconds  in words
    """
    rows = [HEADER, *(result.row for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    left = {0, len(HEADER) - 1}
    lines = [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "-" * max(len(line) for line in lines))
    return "\n".join(lines)


def _stress(value: float, unit: str) -> str:
    return _with_unit(f"{value:.1e}", f"{unit}²" if unit else "")


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text
