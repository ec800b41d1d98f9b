"""The experiments of the paper, seed by seed, and data that the defaults were not tuned on."""

from __future__ import annotations

import statistics

from benchmarks.docs._results import exists, load, number

__all__ = ["accuracy_table", "limit_table", "paper_solver_table", "seeds_table", "unseen_table"]


def accuracy_table() -> str:
    lines = [
        "| experiment | paper | ours, median | ours, worst seed | bar | median ≤ bar, every seed ≤ paper |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in load("accuracy")["rows"].items():
        cells = [number(row[key]) for key in ("paper", "median", "worst", "bar")]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {'yes' if row['holds'] else '**no**'} |")
    return "\n".join(lines)


def seeds_table(name: str) -> str:
    facts = load(name)
    lines = [f"| | {' | '.join(f'seed {seed}' for seed in facts['seed_list'])} |"]
    lines.append("|---" * (len(facts["seed_list"]) + 1) + "|")
    for row_name, row in facts["rows"].items():
        lines.append(f"| {row_name} | " + " | ".join(number(value) for value in row["seeds"]) + " |")
    return "\n".join(lines)


def paper_solver_table() -> str:
    """Algorithm 1 run to its own end, beside the fast solver on the same seeds; "" where it has not been run."""
    runs = {name: load(f"paper_solver_{name}") for name in ("mushroom", "sphere") if exists(f"paper_solver_{name}")}
    if not runs:
        return ""
    accuracy = load("accuracy")
    lines = [
        'The paper\'s own solver (`solver="paper"`: Algorithm 1, its schedule and the networks of its appendix), run '
        "until its rule ends it, or until it was stopped (`python -m benchmarks paper_solver`; "
        + "; ".join(f"{name}: {facts['date']}, {facts['machine']}" for name, facts in runs.items())
        + "), beside ours on the same seed. Hours are the processor's:",
        "",
        "| data, seed | paper | Algorithm 1 | epochs | hours | ended by its rule | ours |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, facts in runs.items():
        for seed, run in facts["seeds"].items():
            figures = {name: run["stress"]} | {key: run[key] for key in run if key.startswith(f"{name}, ")}
            for key, value in figures.items():
                row = accuracy["rows"].get({"sphere, cap": "sphere, unseen cap"}.get(key, key))
                ours = None
                if row is not None and int(seed) in accuracy["seed_list"]:
                    ours = row["seeds"][accuracy["seed_list"].index(int(seed))]
                cells = [number(row["paper"]) if row else "—", number(value), f"{run['epochs']:,}"]
                cells += [f"{run['cpu_seconds'] / 3600:.1f}", "yes" if run["ended_by_its_rule"] else "no", number(ours)]
                lines.append(f"| {key}, seed {seed} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def unseen_table() -> str:
    lines = ["| data | median | worst seed | folds | seconds |", "|---|---|---|---|---|"]
    for name, row in load("unseen")["rows"].items():
        worst = f"{number(row['worst'])} | {row['worst_fold']:.0%} | {row['seconds']:.0f} |"
        lines.append(f"| {name} | {number(row['median'])} | {worst}")
    return "\n".join(lines)


def limit_table() -> str:
    """What sampling noise allows on `mushroom`."""
    facts = load("limit")
    lines = ["| degrees of freedom | median stress | best seed | worst seed |", "|---|---|---|---|"]
    for freedom, *values in zip(facts["freedoms"], *facts["rows"].values(), strict=True):
        figures = (statistics.median(values), min(values), max(values))
        lines.append(f"| {freedom} | {' | '.join(map(number, figures))} |")
    return "\n".join(lines)
