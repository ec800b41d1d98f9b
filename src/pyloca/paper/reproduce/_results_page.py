"""The page of a reproduction: one table, then a section per experiment, two of them with an interactive model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyloca.estimator import LOCA
from pyloca.paper.experiments import mushroom, wifi
from pyloca.paper.reproduce._catalogue import FIGURES
from pyloca.paper.reproduce._runs import Job, Run
from pyloca.paper.reproduce._summary import HEADER, RULE, cells, number, summarize
from pyloca.report import Explorer, Figure, Page, Section, Table, explorer

__all__ = ["make_page"]

QUICK_NOTE = "A quick run: little data, small networks, one seed. Nothing is judged; run without --quick for results."

# settings that a solver does not use
OTHER_SOLVER = {"fast": {"paper_layers", "paper_decoder", "paper_epochs"}, "paper": {"hidden_layers"}}


def make_page(runs: Sequence[Run]) -> Page:
    """Assemble the page of a reproduction.

    Parameters
    ----------
    runs : sequence of Run
        Their figures and models are read from the files that they were written to.

    Returns
    -------
    pyloca.report.Page

    Examples
    --------
    >>> from pathlib import Path
    >>> from pyloca.paper.reproduce import reproduce
    >>> page = make_page(list(reproduce(["wifi"], [0], Path("out"), quick=True)))  # doctest: +SKIP
    """
    rows = summarize([run.record for run in runs])
    first = runs[0].job
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(run.job.seed for run in runs))
    judged = [row for row in rows if row.holds is not None]
    verdict = f"{sum(bool(row.holds) for row in judged)} of {len(judged)} rows hold. " if judged else ""
    names = dict.fromkeys(run.job.experiment.name for run in runs)
    return Page(
        title="Reproduction of the paper",
        lead="The experiments of the LOCA paper, repeated. Stress is the mean over all pairs of the squared difference "
        "between the distance in the embedding and the true one; nothing is scaled where σ is known.",
        sections=(
            Section("Paper and reproduction", (verdict + RULE,), (Table(HEADER, tuple(map(cells, rows))),)),
            *(_section([run for run in runs if run.job.experiment.name == name]) for name in names),
        ),
        settings={"solver": first.solver, "seeds": seeds, "quick": "yes" if first.quick else "no"},
        warnings=(QUICK_NOTE,) if first.quick else (),
    )


def _section(runs: Sequence[Run]) -> Section:
    """Make the section of one experiment; figures and models are those of the first seed."""
    job, record = runs[0].job, runs[0].record
    experiment = job.experiment
    figures = tuple(
        Figure(path.read_bytes(), f"{experiment.title}: {_first_line(FIGURES[experiment.name][name])}")
        for name, path in job.pictures.items()
    )
    doubts = tuple(
        f"Trust warning for seed {run.job.seed}: {doubt}" for run in runs for doubt in run.record["trust_warnings"]
    )
    other = OTHER_SOLVER[job.solver]
    settings = {name: _text(value) for name, value in _flat(record["settings"]).items() if name not in other}
    live = LIVE_EXPLORERS.get(experiment.name)
    return Section(
        f"{experiment.title} ({experiment.name}, {_place(experiment.section)})",
        (experiment.about, *doubts),
        (_by_seed(runs), Table(tuple(settings), (tuple(settings.values()),), "Settings")),
        figures,
        (live(job),) if live else (),
    )


def _by_seed(runs: Sequence[Run]) -> Table:
    names = tuple(runs[0].record["figures"])
    rows = tuple(
        (
            str(run.job.seed),
            *(number(run.record["figures"][name]["value"]) for name in names),
            f"{run.record['seconds']:.1f}",
        )
        for run in runs
    )
    return Table(("seed", *names, "seconds"), rows, "Every seed")


def _mushroom(job: Job) -> Explorer:
    data = mushroom.make_data(job.seed, mushroom.QUICK if job.quick else mushroom.FULL)
    return explorer(_model(job), data.Y, title="Drag in the embedding, see the measurement")


def _wifi(job: Job) -> Explorer:
    data = wifi.make_data(job.seed, wifi.QUICK if job.quick else wifi.FULL)
    return explorer(
        _model(job),
        data.Y,
        title="Move over the floor, see the signals and the position that the encoder gives",
        kind="floor",
        coordinates=data.X,
        walls=data.extras["rooms"],
        names=[f"transmitter {i + 1}" for i in range(data.Y.shape[1])],
        unit="px",
        caption="The encoder sees only the signals, never the position.",
    )


LIVE_EXPLORERS = {"mushroom": _mushroom, "wifi": _wifi}


def _model(job: Job) -> LOCA:
    assert job.model is not None
    return LOCA.load(job.model)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Flatten nested settings, such as those of the model that `decoder` uses."""
    out: dict[str, Any] = {}
    for name, value in settings.items():
        out |= _flat(value) if isinstance(value, dict) else {name: value}
    return out


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return "not set" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _place(section: str) -> str:
    return f"section {section}" if section[0].isdigit() else section


def _first_line(function: Any) -> str:
    return str(function.__doc__).strip().splitlines()[0]
