"""Coils and folded sheets: turns and walls that pass each other closely, unrolled by arc length.

The figure is the stress of the fit as a part of the variance; beside it stands that of the alignment alone. Where there
are too few bursts for the bends, the fit must say so: such a seed is as good as one within the bar.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fitting import aligned, fit_facts
from benchmarks.rows import Row
from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics

Array = NDArray[np.float64]

POINTS, BAR = 30, 5e-3
WORDS = "more bursts"  # what a finding or a refusal must advise


def coil(seed: int, turns: int, per_turn: int = 100, *, raised: bool = False) -> tuple[Array, Array, float]:
    """An Archimedean spiral, its turns 1 apart and its inner radius 1, with so many bursts on every turn.

    `raised`: in R³, on a cone.
    """
    random, std = np.random.RandomState(seed), 0.02
    angle = np.linspace(0, 2 * np.pi * turns, 20_000 * turns)
    radius = 1 + angle / (2 * np.pi)
    curve = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.7 * raised * radius], axis=1)
    length = np.r_[0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))]
    X = np.interp(random.uniform(0.1, angle[-1] - 0.1, turns * per_turn), angle, length)[:, None]
    points = X + std * random.standard_normal((len(X), POINTS))
    clouds = np.stack([np.interp(points, length, column) for column in curve.T[: 3 if raised else 2]], axis=2)
    return X, clouds, std


def sine(seed: int, periods: int, n_bursts: int, height: float = 0.25) -> tuple[Array, Array, float]:
    """A sheet (x₁, x₂, a sin 2π p x₁) over the unit square; the latents are arc length and x₂."""
    random, std = np.random.RandomState(seed), 0.01
    along = np.linspace(-0.2, 1.2, 200_000)
    wave = height * np.sin(2 * np.pi * periods * along)
    length = np.r_[0, np.cumsum(np.hypot(np.diff(along), np.diff(wave)))]
    X = np.stack([random.uniform(*np.interp([0, 1], along, length), n_bursts), random.uniform(size=n_bursts)], axis=1)
    points = X[:, None] + std * random.standard_normal((n_bursts, POINTS, 2))
    at = np.interp(points[..., 0], length, along)
    return X, np.stack([at, points[..., 1], np.interp(points[..., 0], length, wave)], axis=2), std


def _measure(seed: int, *, make: Any, **options: Any) -> dict[str, Any]:
    X, clouds, std = make(seed, **options)
    try:
        alone = aligned(X, BurstStatistics.from_bursts(clouds, X.shape[1]), X.shape[1], std, seed)
    except BurstError:
        alone = float("inf")
    facts, _ = fit_facts(X, Bursts(clouds), seed, burst_std=std)
    said = " ".join([*facts.get("said", []), facts.get("refusal", "")])
    ok = facts["stress"] <= BAR or WORDS in said
    return {"value": facts["stress"], "aligned": alone, "ok": ok} | facts


WHAT = f"stress / variance, or “{WORDS}”"
ROWS: tuple[Row, ...] = (
    *(Row(f"coils: {n} turns", BAR, WHAT, partial(_measure, make=coil, turns=n)) for n in (2, 5, 10)),
    Row("coils: 5 turns on a cone", BAR, WHAT, partial(_measure, make=coil, turns=5, raised=True)),
    Row("coils: 3 turns, 20 bursts each", BAR, WHAT, partial(_measure, make=coil, turns=3, per_turn=20)),
    *(
        Row(f"coils: sine of {p} periods, N = {n:,}", BAR, WHAT, partial(_measure, make=sine, periods=p, n_bursts=n))
        for p in (2, 3)
        for n in (1000, 3000)
    ),
)
