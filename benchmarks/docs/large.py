"""The part of docs/large.md that is made of measured figures."""

from __future__ import annotations

from typing import Any

__all__ = ["part"]

N, WORKERS = 1e9, 100
SHARD, EVALUATIONS = 16_384, 667  # 500 on all bursts, and a quarter of that on a quarter of them, and so on


def part(facts: dict[str, Any]) -> str:
    rows = facts["rows"]
    return "\n".join([*_table(rows), "", *_model({name: row["runs"][0] for name, row in rows.items()})])


def _table(rows: dict[str, Any]) -> list[str]:
    measured = sorted({row["commit"] for row in rows.values()})
    lines = [
        f"`python -m benchmarks scale` (commits {', '.join(measured)}),",
        "on a machine of two cores that others used at the same time. Processor seconds",
        "are of all processes together, and memory is that of the largest. By processor time, a run lasts as long as",
        "the busiest worker and the process that asks it compute.",
        "",
        "| what | figure | bar | | holds |",
        "|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        run = row["runs"][0]
        more = ", ".join(
            text
            for key, text in (
                ("gb", f"{run.get('gb', 0):.2f} GB"),
                ("seconds", f"{run.get('seconds', 0):.0f} s"),
                ("stress", f"stress {run.get('stress', 0):.1e} px²"),
                (
                    "speed_up",
                    f"2 workers {run.get('speed_up', 0):.1f} × as fast as 1 by processor time, "
                    f"{run.get('by_the_clock', 0):.1f} × by the clock at a load of {run.get('load', 0):.0f}",
                ),
                (
                    "fits",
                    f"{run.get('killed')} workers killed in {run.get('fits')} {'passes' if 'pass' in name else 'fits'}",
                ),
                ("lost", f"lost in {run.get('lost')} of {run.get('runs')} runs"),
                ("runs", "" if "lost" in run else f"{run.get('runs')} runs"),
                ("code", f"ended by the limit of 2 GB, exit code {run.get('code')}"),
                ("addresses", ", ".join(run.get("addresses", ())) or "none"),
            )
            if key in run and text
        )
        value = f"{row['median']:.2g} {row['what']}"
        more = "; ".join(text for text in (more, row.get("note", "")) if text)
        lines.append(f"| {name} | {value} | {row['bar']:g} | {more} | {'yes' if row['holds'] else '**no**'} |")
    return lines


def _model(runs: dict[str, Any]) -> list[str]:
    """Estimate 10⁹ bursts on 100 workers from measured constants."""
    needed = ("pass over raw bursts", "evaluation", "task")
    if not all(name in runs for name in needed):
        return []
    raw, evaluation, task = (runs[name] for name in needed)
    read = raw["value"] * 1e-6 * N / WORKERS / 3600
    one = evaluation["value"] * 1e-6 * N / WORKERS
    tasks = N / SHARD
    asked = tasks * task["value"] * 1e-3
    rate = evaluation["flops"] / (evaluation["value"] * 1e-6) / 1e9
    return [
        "### 10⁹ bursts on 100 workers, on paper",
        "",
        "From the constants above, for `wifi` (M = 6, D = 17, k = d = 2, two hidden layers of 50):",
        "",
        "| | per burst | 10⁹ bursts | each of 100 workers |",
        "|---|---|---|---|",
        f"| raw bursts, compressed | {raw['stored_bytes']:.0f} B | {raw['stored_bytes'] * N / 1e12:.2f} TB | "
        f"{raw['stored_bytes'] * N / WORKERS / 1e9:.1f} GB read once |",
        f"| pass over them | {raw['value']:.0f} µs | {raw['value'] * N / 3.6e9:.0f} processor hours | {read:.2f} h |",
        f"| statistics | {raw['kept_bytes']:.0f} B | {raw['kept_bytes'] * N / 1e9:.0f} GB | "
        f"{raw['kept_bytes'] * N / WORKERS / 1e9:.1f} GB in memory |",
        f"| one evaluation | {evaluation['value']:.1f} µs, {evaluation['flops'] / 1e3:.0f} kflop: {rate:.0f} Gflop/s | "
        f"{evaluation['flops'] * N / 1e12:.0f} Tflop | {one:.0f} s |",
        f"| {EVALUATIONS} evaluations | | | {one * EVALUATIONS / 3600:.0f} h |",
        f"| messages of one evaluation | | {tasks:,.0f} tasks of {task['bytes'] / 1e3:.0f} kB there and back | "
        f"{task['value']:.1f} ms of the scheduler each: {asked:.0f} s |",
        "",
        f"Two things stand in the way. With shards of {SHARD:,} bursts the scheduler would need {asked:.0f} s to ask",
        f"for what takes the workers {one:.0f} s; shards of a million bursts make that {asked * SHARD / 1e6:.1f} s.",
        "And the process that fits holds all statistics today, where it would have to hold none. So 10⁹ bursts are an",
        "estimate, and not something that this version does.",
    ]
