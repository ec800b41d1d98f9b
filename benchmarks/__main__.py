"""Run benchmarks by name."""

from __future__ import annotations

import argparse
import sys

import torch

from benchmarks import (
    accuracy,
    big_file,
    coverage,
    csv_reader,
    diagnostics_cost,
    dirty,
    evaluation,
    export,
    faults,
    faults_of_machines,
    files,
    gallery,
    growth,
    hidden,
    intrinsic_dim,
    limit,
    matching,
    own_networks,
    paper_solver,
    profile,
    rivals,
    rivals_speed,
    scale,
    shapes,
    sizes,
    sources,
    speed,
    startup,
    thresholds,
    units,
    unseen,
)

COMMANDS = {
    "accuracy": accuracy.run,
    "unseen": unseen.run,
    "units": units.run,
    "shapes": shapes.run,
    "sizes": sizes.run,
    "scale": scale.run,
    "speed": speed.run,
    "startup": startup.run,
    "csv_reader": csv_reader.run,
    "gallery": gallery.run,
    "growth": growth.run,
    "hidden": hidden.run,
    "faults": faults.run,
    "faults_of_machines": faults_of_machines.run,
    "faults_of_files": files.run,
    "thresholds": thresholds.run,
    "dirty": dirty.run,
    "coverage": coverage.run,
    "intrinsic_dim": intrinsic_dim.run,
    "diagnostics_cost": diagnostics_cost.run,
    "evaluation": evaluation.run,
    "export": export.run,
    "profile": profile.run,
    "limit": limit.run,
    "matching": matching.run,
    "own_networks": own_networks.run,
    "rivals": rivals.run,
    "rivals_speed": rivals_speed.run,
    "sources": sources.run,
    "big_file": big_file.run,
    "paper_solver": paper_solver.run,
}
APART = {"gallery", "paper_solver"}  # not among "all": they need more packages, or hours


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*COMMANDS, "all"])
    parser.add_argument("--seeds", default="0-9", help="such as 0-9 or 3,5 (default: 0-9)")
    parser.add_argument("--threads", type=int, default=None, help="threads of PyTorch (default: its own choice)")
    parser.add_argument("--only", default="", help="some experiments (accuracy) or cases (faults), separated by commas")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    names = [n for n in COMMANDS if n not in APART] if "all" in options.names else options.names
    # a list: every benchmark runs, also after one has missed its bar
    only = {"only": options.only} if options.only else {}
    held = [COMMANDS[name](_seeds(options.seeds), **only) for name in names]
    return 0 if all(held) else 1


def _seeds(text: str) -> list[int]:
    seeds: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        seeds += range(int(low), int(high or low) + 1)
    return seeds


if __name__ == "__main__":
    sys.exit(main())
