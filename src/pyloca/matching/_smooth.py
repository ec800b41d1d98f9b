"""Encoders as smooth functions of readings: a prior that tells the shape of a fit from what it owes to chance.

With few bursts, how closely a network follows them is decided by the few that were held out. By bad luck it follows
them too closely, and swings where a set is soft; or not closely enough, and keeps the bends of its start. Bursts alone
cannot say so: they are explained better by the first than by the truth. So the encoder z + u(z) is taken for a Gaussian
process of the readings, linear plus a Matérn function (ν = 5/2), and the bursts decide by their marginal likelihood how
long its waves are and how high.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pyloca.matching._elastic import Prior, Seen, matern

__all__ = ["smooth"]

Array = NDArray[np.float64]

LENGTHS = (2.0, 4.0, 8.0)  # of the Matérn function, in root mean square distances of two readings
# Standard deviation of its slope per length, coordinates and readings in such distances: how much an encoder bends.
# With less, an encoder that was nearly linear was made too straight.
BENDS = (0.1, 0.2, 0.4)
NUGGETS = (1e-3, 1e-2)  # standard deviations of what is not smooth, in root mean square distances of two states
TOLD = 400  # bursts at most at which the prior is told: it has long waves
TRIED = 1000  # bursts at most that choose it
STEPS, HALVINGS, DONE = 40, 12, 1e-7
RANK = 1e-9


def smooth(seen: Seen) -> tuple[Seen, Array]:
    """Return the same bursts with the smooth prior under which they are most likely, and the displacement with it."""
    some = _some(seen, TRIED)
    at, tried = np.zeros(seen.elastic.size), []
    for prior in _priors(seen):
        at, evidence = _evidence(replace(some, prior=prior), at)
        tried.append((evidence, prior, at))
    _, prior, at = max(tried, key=lambda one: one[0])
    return replace(seen, prior=prior), at


def _some(seen: Seen, most: int) -> Seen:
    rows = slice(None, None, -(-len(seen.places) // most))
    assert seen.readings is not None
    parts = (seen.places, seen.moments, seen.weights, seen.readings)
    return Seen(seen.elastic, seen.prior, *(part[rows] for part in parts))


def _priors(seen: Seen) -> list[Prior]:
    """Return −log density of z + u(z) at some bursts as a function of u, for each length and bend."""
    some = _some(seen, TOLD)
    Z, Y = some.places, np.asarray(some.readings) - np.mean(np.asarray(some.readings), axis=0)
    (n, d), rows = Z.shape, seen.elastic.rows(Z)  # (n, d, q)
    size, spread = (np.sqrt(2 * part.var(axis=0).sum()) for part in (Z, Y))
    left, singular, _ = np.linalg.svd(Y, full_matrices=False)
    linear = left[:, :d][:, singular[:d] > RANK * singular[0]]  # the leading directions of the readings
    free = np.linalg.qr(np.column_stack([np.ones(n), linear]))[0]
    priors = []
    for nugget, length, bend in product(NUGGETS, LENGTHS, BENDS):
        height = bend * length**2 * size / np.sqrt(5 / 3)  # of a function with that slope
        waves = height**2 * matern(Y, Y, length * spread)
        inverse = np.linalg.inv(waves + (nugget * size) ** 2 * np.eye(n))
        told = inverse @ free
        inverse -= told @ np.linalg.solve(free.T @ told, told.T)  # the linear part is free
        weighted = np.einsum("nm,mdq->ndq", inverse, rows).reshape(n * d, -1)
        precision = rows.reshape(n * d, -1).T @ weighted
        precision = (precision + precision.T) / 2
        precision += RANK * np.trace(precision) / len(precision) * np.eye(len(precision))
        priors.append(Prior(precision, Z.reshape(-1) @ weighted))
    return priors


def _evidence(seen: Seen, start: Array) -> tuple[Array, float]:
    """Return the most likely displacement and the log of the marginal likelihood, by Laplace's method."""
    c, value = start, seen.energy(start)
    for _ in range(STEPS):
        gradient, information = seen.expansion(c)
        step = -np.linalg.solve(information, gradient)
        if -gradient @ step < DONE * (1 + abs(value)):
            break
        for halving in range(HALVINGS):
            there = c + 0.5**halving * step
            lower = seen.energy(there)
            if lower < value:
                break
        if not lower < value:
            break
        c, value = there, lower
    prior = seen.prior
    least = -float(prior.slope @ np.linalg.solve(prior.precision, prior.slope)) / 2  # of the prior's own energy
    information = seen.expansion(c)[1]
    volumes = np.linalg.slogdet(prior.precision)[1] - np.linalg.slogdet(information)[1]
    return c, least - value + float(volumes) / 2
