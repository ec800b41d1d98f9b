"""Instruments in common coordinates: rigid maps and displacements of all of them, refined together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.matching._elastic import Elastic, Seen
from pyloca.matching._rigid import freedom, inverse, moved, parameter_jacobian, parameters
from pyloca.metrics import RigidMap

__all__ = ["Edge", "Joint", "Tether", "refine"]

Array = NDArray[np.float64]

STEPS = 30  # of Gauss–Newton at most; a few are enough
HALVINGS = 10  # of a step that leads up
DONE = 1e-8  # part of the objective that a step must gain to go on
INVERSIONS = 30  # steps of an iteration that contracts by the strain


@dataclass(frozen=True)
class Edge:
    """Anchors of two instruments.

    Attributes
    ----------
    i, j : int
    A, B : (n, d) arrays
        Coordinates by each, in its own system.
    variance : (n,) array
        Of their distance if both encoders were without long waves, per coordinate, in the coordinates of j.
    tails : float
        Degrees of freedom of Student's t, of which these distances are; ∞ for normal ones.
    """

    i: int
    j: int
    A: Array
    B: Array
    variance: Array
    tails: float = np.inf

    def cost(self, apart: Array) -> float:
        """Return twice −log likelihood of distances (n, d); 0 where all are 0."""
        squared = np.square(apart).sum(axis=1) / self.variance
        if np.isinf(self.tails):
            return float(squared.sum())
        return float((self.tails + apart.shape[1]) * np.log1p(squared / self.tails).sum())

    def precision(self, apart: Array) -> Array:
        """Return the weight (n,) of each of these distances, less for those far beyond their variance."""
        squared = np.square(apart).sum(axis=1) / self.variance
        if np.isinf(self.tails):
            return 1 / self.variance
        return np.asarray((self.tails + apart.shape[1]) / (self.tails + squared) / self.variance)


@dataclass(frozen=True)
class Tether:
    """What is known of the map of the first instrument before anchors are: a normal distribution about a map.

    Attributes
    ----------
    about : RigidMap
    information : (p, p) array
        Inverse covariance of the parameters of `moved`, with or without the scale.
    """

    about: RigidMap
    information: Array

    def offset(self, at: Joint) -> Array:
        """Return the parameters (p,) that lead from `about` to where it is now."""
        p, d = len(self.information), at.centres.shape[1]
        return parameters(self.about, at.maps[0], at.centres[0], scale=p == freedom(d, scale=True))


@dataclass(frozen=True)
class Joint:
    """Common coordinates of K instruments, maps[i](z + u_i(z)), and their errors.

    Attributes
    ----------
    maps : tuple of RigidMap
    elastics : tuple of Elastic
        Displacements that are possible.
    coefficients : tuple of (q_i,) arrays
        The expected ones.
    covariance : (Q, Q) array
        Of all parameters, instrument by instrument: those of `moved` with a scale, then the coefficients.
    centres : (K, d) array
        Of the turns of `moved`.
    rough : (K,) array
        Variance per coordinate, in the system of each instrument, that displacements and their residual do not explain.
    degrees : float
        Degrees of freedom of the errors.
    """

    maps: tuple[RigidMap, ...]
    elastics: tuple[Elastic, ...]
    coefficients: tuple[Array, ...]
    covariance: Array
    centres: Array
    rough: Array
    degrees: float

    @classmethod
    def start(
        cls, maps: Sequence[RigidMap], elastics: Sequence[Elastic], centres: Array, rough: Array, degrees: float
    ) -> Joint:
        """Return instruments without displacements, before anything is refined."""
        sizes = [one.size for one in elastics]
        total = sum(sizes) + len(sizes) * freedom(centres.shape[1], scale=True)
        none = tuple(np.zeros(size) for size in sizes)
        return cls(tuple(maps), tuple(elastics), none, np.zeros((total, total)), centres, rough, degrees)

    def common(self, Z: Array, i: int) -> Array:
        """Take coordinates (n, d) of instrument i to the common ones."""
        return self.maps[i].apply(self._bent(Z, i))

    def own(self, common: Array, i: int) -> Array:
        """Take common coordinates (n, d) to those of instrument i."""
        target = inverse(self.maps[i]).apply(common)
        Z = target
        for _ in range(INVERSIONS):
            Z = target - self.elastics[i].rows(Z) @ self.coefficients[i]
        return Z

    def carried(self, Z: Array, i: int, j: int) -> tuple[Array, Array]:
        """Take coordinates of instrument i to those of j; return them and the covariances (n, d, d) of their errors."""
        if i == j:
            return Z, np.zeros((*Z.shape, Z.shape[1]))
        there = self.common(Z, i)
        W = self.own(there, j)
        rows = np.concatenate([self._rows(Z, i), -self._rows(W, j)], axis=2)
        part = np.concatenate([np.arange(len(self.covariance))[self._block(k)] for k in (i, j)])
        errors = rows @ self.covariance[np.ix_(part, part)] @ rows.transpose(0, 2, 1)
        rough = self._rough(Z, i) + self._rough(W, j)
        errors = errors + rough[:, None, None] * np.eye(Z.shape[1])
        turn = self.maps[j].rotation
        return W, turn @ errors @ turn.T / self.maps[j].scale ** 2

    def errors(self, Z: Array, i: int) -> Array:
        """Return the standard errors (n,), per coordinate, of common coordinates of places of instrument i."""
        rows, block = self._rows(Z, i), self._block(i)
        spread = np.einsum("ndq,qr,ndr->n", rows, self.covariance[block, block], rows) / Z.shape[1]
        return np.asarray(np.sqrt(spread + self._rough(Z, i)))

    def left_out(self, edge: Edge, factor: float) -> Array:
        """Return how far (n,) each anchor of `edge` is from where all others put it, squared, in units of its variance.

        The variance of `edge` is in common coordinates; errors were scaled up by `factor`.
        """
        apart = self.common(edge.A, edge.i) - self.common(edge.B, edge.j)
        rows = np.concatenate([self._rows(edge.A, edge.i), -self._rows(edge.B, edge.j)], axis=2)
        part = np.concatenate([np.arange(len(self.covariance))[self._block(k)] for k in (edge.i, edge.j)])
        told = rows @ self.covariance[np.ix_(part, part)] @ rows.transpose(0, 2, 1)
        left = edge.variance[:, None, None] * np.eye(apart.shape[1]) - told / factor
        return np.asarray(np.einsum("ni,nij,nj->n", apart, np.linalg.pinv(left, hermitian=True), apart))

    def placed(self, i: int, rigid: RigidMap) -> Joint:
        """Return a copy with another map of instrument i, and no displacements: those found belong to the first map."""
        none = tuple(np.zeros_like(c) for c in self.coefficients)
        return replace(self, maps=(*self.maps[:i], rigid, *self.maps[i + 1 :]), coefficients=none)

    def _rough(self, Z: Array, i: int) -> Array:
        """Return the variance (n,) of what displacements do not describe, in common coordinates."""
        return np.asarray(self.maps[i].scale ** 2 * (self.rough[i] + self.elastics[i].residual(Z)))

    def _bent(self, Z: Array, i: int) -> Array:
        return Z + self.elastics[i].rows(Z) @ self.coefficients[i]

    def _rows(self, Z: Array, i: int) -> Array:
        """Return the derivative (n, d, ·) of common coordinates by the parameters of instrument i."""
        rigid, rows = self.maps[i], self.elastics[i].rows(Z)
        there = rigid.apply(Z + rows @ self.coefficients[i])
        turned = rigid.scale * rigid.rotation.T @ rows
        return np.concatenate([parameter_jacobian(there, self.centres[i], scale=True), turned], axis=2)

    def _block(self, i: int) -> slice:
        sizes = [freedom(self.centres.shape[1], scale=True) + one.size for one in self.elastics]
        return slice(sum(sizes[:i]), sum(sizes[: i + 1]))

    # -- files ------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return everything as arrays by name."""
        told: dict[str, Any] = {"covariance": self.covariance, "centres": self.centres, "rough": self.rough}
        told["degrees"] = self.degrees
        for i, (rigid, elastic) in enumerate(zip(self.maps, self.elastics, strict=True)):
            told[f"coefficients.{i}"] = self.coefficients[i]
            told |= {f"map.{name}.{i}": value for name, value in vars(rigid).items()}
            told |= {f"elastic.{name}.{i}": value for name, value in vars(elastic).items()}
        return {f"joint.{name}": np.asarray(value) for name, value in told.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Joint:
        """Invert `arrays`."""
        told = {name.removeprefix("joint."): value for name, value in arrays.items() if name.startswith("joint.")}
        maps, elastics, coefficients = [], [], []
        for i in range(len(told["centres"])):
            rigid, elastic = (
                {name: told[f"{kind}.{name}.{i}"] for name in names}
                for kind, names in (("map", RigidMap.__dataclass_fields__), ("elastic", Elastic.__dataclass_fields__))
            )
            maps.append(RigidMap(**rigid | {"scale": float(rigid["scale"])}))
            elastics.append(Elastic(**elastic | {"length": float(elastic["length"])}))
            coefficients.append(told[f"coefficients.{i}"])
        rest = {name: told[name] for name in ("covariance", "centres", "rough")}
        return cls(tuple(maps), tuple(elastics), tuple(coefficients), degrees=float(told["degrees"]), **rest)


def refine(
    start: Joint,
    seen: Sequence[Seen],
    edges: Sequence[Edge],
    free: NDArray[np.bool_],
    prior: float,
    tether: Tether | None = None,
) -> tuple[Joint, float]:
    """Minimise −log likelihood of all bursts and anchors over all maps and displacements, by Gauss–Newton.

    `free` (K, p) says which parameters of each map are; one must be fixed, and `tether` may hold the first.
    How wrong the fits are is known only roughly: `prior` is how many observations it is worth, and what anchors cost
    beyond it scales all errors. Returns also that cost: χ² with as many degrees of freedom as anchors have coordinates
    and free maps do not.
    """
    edges = [replace(edge, variance=start.maps[edge.j].scale ** 2 * edge.variance) for edge in edges]
    alone = start
    for i in range(len(seen)):
        alone = _minimum(alone, seen, (), np.zeros_like(free), only=i)
    found = _minimum(alone, seen, edges, free, tether=tether)
    cost = 2 * (_objective(found, seen, edges, tether) - _objective(alone, seen, ()))
    d, open_ = start.centres.shape[1], 0 if tether else int(free.sum())
    degrees = prior + max(sum(d * len(edge.A) for edge in edges) - open_, 0)
    factor = (prior + cost) / degrees
    _, information = _expansion(found, seen, edges, tether)
    active = _active(found, free)
    covariance = np.zeros_like(information)
    covariance[np.ix_(active, active)] = factor * np.linalg.inv(information[np.ix_(active, active)])
    return replace(found, covariance=covariance, rough=factor * start.rough, degrees=degrees), cost


def _minimum(
    at: Joint,
    seen: Sequence[Seen],
    edges: Sequence[Edge],
    free: NDArray[np.bool_],
    only: int | None = None,
    tether: Tether | None = None,
) -> Joint:
    active = _active(at, free)
    if only is not None:  # one instrument by itself
        active = np.intersect1d(active, np.arange(len(at.covariance))[at._block(only)])
    value = _objective(at, seen, edges, tether)
    for _ in range(STEPS):
        gradient, information = _expansion(at, seen, edges, tether)
        step = np.zeros(len(gradient))
        step[active] = -np.linalg.solve(information[np.ix_(active, active)], gradient[active])
        if -gradient @ step < DONE * (1 + abs(value)):
            break
        for halving in range(HALVINGS):
            there = _stepped(at, 0.5**halving * step)
            lower = _objective(there, seen, edges, tether)
            if lower < value:
                break
        gain = value - lower
        if not gain > 0:
            break
        at, value = there, lower
        if gain < DONE * (1 + abs(value)):
            break
    return at


def _active(at: Joint, free: NDArray[np.bool_]) -> NDArray[np.int64]:
    parts = [np.concatenate([free[i], np.ones(one.size, dtype=bool)]) for i, one in enumerate(at.elastics)]
    return np.flatnonzero(np.concatenate(parts))


def _stepped(at: Joint, step: Array) -> Joint:
    p = freedom(at.centres.shape[1], scale=True)
    maps, coefficients = [], []
    for i, rigid in enumerate(at.maps):
        part = step[at._block(i)]
        maps.append(moved(rigid, part[:p], at.centres[i]) if part[:p].any() else rigid)
        coefficients.append(at.coefficients[i] + part[p:])
    return replace(at, maps=tuple(maps), coefficients=tuple(coefficients))


def _objective(at: Joint, seen: Sequence[Seen], edges: Sequence[Edge], tether: Tether | None = None) -> float:
    """Return −log likelihood; variances of edges are in common coordinates here."""
    total = sum(one.energy(at.coefficients[i]) for i, one in enumerate(seen))
    for edge in edges:
        apart = at.common(edge.A, edge.i) - at.common(edge.B, edge.j)
        total += edge.cost(apart) / 2
    if tether:
        offset = tether.offset(at)
        total += float(offset @ tether.information @ offset) / 2
    return float(total)


def _expansion(
    at: Joint, seen: Sequence[Seen], edges: Sequence[Edge], tether: Tether | None = None
) -> tuple[Array, Array]:
    """Return the gradient of the objective and its expected second derivative, over all parameters."""
    p, total = freedom(at.centres.shape[1], scale=True), at._block(len(at.maps) - 1).stop
    gradient, information = np.zeros(total), np.zeros((total, total))
    for i, one in enumerate(seen):
        block = at._block(i)
        part = slice(block.start + p, block.stop)
        gradient[part], information[part, part] = one.expansion(at.coefficients[i])
    for edge in edges:
        apart = at.common(edge.A, edge.i) - at.common(edge.B, edge.j)
        ends = np.concatenate([np.arange(total)[at._block(k)] for k in (edge.i, edge.j)])
        rows = np.concatenate([at._rows(edge.A, edge.i), -at._rows(edge.B, edge.j)], axis=2)
        rows = (np.sqrt(edge.precision(apart))[:, None, None] * rows).reshape(apart.size, -1)
        gradient[ends] += (np.sqrt(edge.precision(apart))[:, None] * apart).ravel() @ rows
        information[np.ix_(ends, ends)] += rows.T @ rows
    if tether:
        held = slice(0, len(tether.information))
        gradient[held] += tether.information @ tether.offset(at)
        information[held, held] += tether.information
    return gradient, information
