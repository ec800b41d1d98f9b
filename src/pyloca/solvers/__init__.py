"""Training of encoder and decoder: one file per solver, one interface."""

from collections.abc import Callable

from pyloca.solvers._checkpoint import EVERY, CheckpointFile, checkpoint_files
from pyloca.solvers._fast import solve_fast
from pyloca.solvers._monitor import Monitor, StopTraining
from pyloca.solvers._paper import solve_paper
from pyloca.solvers._problem import Problem, Solution
from pyloca.solvers._quasi_newton import LBFGS, Minimum, minimize
from pyloca.solvers._shards import told_place

SOLVERS: dict[str, Callable[[Problem, Monitor], Solution]] = {"fast": solve_fast, "paper": solve_paper}

__all__ = [
    "EVERY",
    "LBFGS",
    "SOLVERS",
    "CheckpointFile",
    "Minimum",
    "Monitor",
    "Problem",
    "Solution",
    "StopTraining",
    "checkpoint_files",
    "minimize",
    "solve_fast",
    "solve_paper",
    "told_place",
]
