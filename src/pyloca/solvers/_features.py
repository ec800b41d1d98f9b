"""The decoder of the fast solver: random features in one wide layer, and their outer weights in closed form.

γ(z) = W φ(Uz + b) + Sz + c. The inner weights U, b are drawn at random, and (W, S, c) minimise

    Σ ‖γ(z_i) − μ_i‖² + w Σ ‖J_γ(z_i) T_i − A_i‖² + λ n ‖(W, S, c)‖²,

a linear problem. How many units there are, how rough they are (the size of U), the weight w of tangents and λ are those
with which bursts that were not fitted are predicted best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyloca.networks import ACTIVATIONS, MLP

__all__ = ["Candidate", "FeatureDecoder"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

WIDTHS = (128, 384, 1024)  # units, more only while that helps
ROUGHNESS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # size of the inner weights, for inputs of unit size
TANGENT_WEIGHTS = (1e-4, 1e-3, 1e-2, 1e-1)  # w
RIDGES = 10.0 ** np.arange(-14.0, 0.0)  # λ, as a part of the largest eigenvalue of the features' Gram matrix
WORTH = 0.9  # more units must bring the error below this part
# Error, as a part of the data's size, that is good enough: the smoothest units that reach it are taken. Rougher ones
# may come nearer to the bursts, but not across a hole between them (the experiment `decoder`).
EXACT = 1e-3
AS_GOOD = 1.05  # elsewhere, of solutions with at most so many times the least error, the one with the smallest weights
JITTER = 0.1  # distance at which units bend from a random burst
FEW_JUDGES = 30  # held-out bursts; with fewer, training bursts take turns
FOLDS, MOST_IN_TURNS = 4, 384  # turns, and units that are tried in them: each turn costs as much as all bursts do
CHOSEN_ON = 3000  # training bursts on which the choice is made; all are used in the end
BLOCK = 4096  # bursts whose features are held at a time


class Candidate(NamedTuple):
    """One choice, and how well it predicts.

    Attributes
    ----------
    error : float
        Mean distance of predicted from measured means of bursts that were not fitted, in units of the data.
    size : float
        Norm of the outer weights.
    width : int
    roughness, tangent_weight, ridge : float
        The last is λ.
    """

    error: float
    size: float
    width: int
    roughness: float
    tangent_weight: float
    ridge: float


@dataclass(frozen=True)
class _Inner:
    """Inner weights: directions (p, d), places on which the units bend (p, d), drawn once for all sizes."""

    directions: Array
    places: Array

    def layer(self, width: int, roughness: float) -> tuple[Array, Array]:
        weights = roughness * self.directions[:width]
        return weights, -np.einsum("pd,pd->p", weights, self.places[:width])


class FeatureDecoder:
    """Choose and solve for a decoder.

    Parameters
    ----------
    inputs, targets : Tensor (1 + k, n, d), (1 + k, n, D)
        Stacks of points and tangents of the training bursts; sizes near 1. `targets` may be a `LazyStack`: it is read
        block by block.
    held_inputs, held_targets : Tensor (1 + k, m, d), (1 + k, m, D)
        Of the held-out bursts.
    activation : str
        φ.
    seed : int
    linear : bool, default=False
        Whether to have no units at all: γ is affine.
    """

    def __init__(
        self,
        inputs: Tensor,
        targets: Tensor,
        held_inputs: Tensor,
        held_targets: Tensor,
        activation: str,
        seed: int,
        *,
        linear: bool = False,
    ) -> None:
        equations = inputs.shape[0] * inputs.shape[1]  # more units than these tell nothing new
        most = min(equations, MOST_IN_TURNS if held_inputs.shape[1] < FEW_JUDGES else equations)
        self.widths = (0,) if linear else tuple(width for width in WIDTHS if width <= most) or WIDTHS[:1]
        self.inputs, self.held_inputs = inputs.cpu().numpy(), held_inputs.cpu().numpy()
        self.targets, self.held_targets = targets, held_targets[:, :].cpu().numpy()
        n, d = inputs.shape[1:]
        squares = [np.square(self._targets(rows)[0]).sum(axis=1) for rows in _blocks(np.arange(n))]
        self._size = float(np.sqrt(np.concatenate(squares).mean()))
        self.activation = activation
        random = np.random.RandomState(seed)
        directions = random.standard_normal((WIDTHS[-1], d)) / np.sqrt(d)
        places = self.inputs[0, random.randint(n, size=WIDTHS[-1])]
        self._inner = _Inner(directions, places + JITTER * random.standard_normal(places.shape))
        self._rows = random.permutation(n)[:CHOSEN_ON]

    def choose(self, seen: Callable[[Candidate], None] = lambda best: None) -> Candidate:
        """Find the best choice.

        Parameters
        ----------
        seen : callable
            Called with the best choice of each width and roughness; what it raises ends the search.

        Returns
        -------
        Candidate
        """
        found: list[Candidate] = []
        roughness: tuple[float, ...] = ROUGHNESS if self.widths[-1] else ROUGHNESS[:1]
        weights: tuple[float, ...] = TANGENT_WEIGHTS
        before = np.inf
        for width in self.widths:
            of_width: list[Candidate] = []
            for size in roughness:
                candidates = self._errors(width, size, weights)
                of_width += candidates
                seen(min(candidates))
                exact = [c for c in candidates if c.error <= EXACT * self._size]
                if width and exact:
                    return min(exact, key=lambda c: c.size)
            found += of_width
            best = min(of_width).error
            if best >= WORTH * before:
                break
            before = best
            # More units are costly: only what came near the best with fewer of them is tried. With more of them,
            # tangents tell less that values do not, and their error from bends inside a burst counts more.
            least = {size: min(c.error for c in of_width if c.roughness == size) for size in roughness}
            roughness = tuple(sorted(sorted(least, key=lambda size: least[size])[:2]))
            weight = min(of_width).tangent_weight
            weights = tuple(w for w in TANGENT_WEIGHTS if w <= weight)[-2:]
        limit = AS_GOOD * min(found).error
        width = min(c.width for c in found if c.error <= limit)
        return min((c for c in found if c.error <= limit and c.width == width), key=lambda c: c.size)

    def network(self, choice: Candidate) -> MLP:
        """Solve for the outer weights with all training bursts.

        Parameters
        ----------
        choice : Candidate

        Returns
        -------
        MLP
            In float64, with a linear skip.
        """
        inner = self._inner.layer(choice.width, choice.roughness)
        n = self.inputs.shape[1]
        gram, moment = (part[0] + choice.tangent_weight * part[1] for part in self._normal(inner, np.arange(n)))
        eigen, axes = np.linalg.eigh(gram)
        outer = axes @ (axes.T @ moment / (np.maximum(eigen, 0) + choice.ridge * n)[:, None])  # (p + d + 1, D)
        d, width = self.inputs.shape[2], choice.width
        shape = d, (width,) if width else (), outer.shape[1]
        network = MLP(*shape, self.activation, skip=True, generator=torch.Generator()).double()
        assert network.skip is not None
        layers = network.linear_layers()
        straight = outer[width : width + d].T
        values = [(network.skip.weight, straight if width else 0 * straight), (layers[-1].bias, outer[-1])]
        if width:
            values += [(layers[0].weight, inner[0]), (layers[0].bias, inner[1]), (layers[1].weight, outer[:width].T)]
        else:
            values += [(layers[0].weight, straight)]
        with torch.no_grad():
            for parameter, value in values:
                parameter.copy_(torch.from_numpy(np.ascontiguousarray(value)))
        return network.eval()

    def _errors(self, width: int, roughness: float, weights: Sequence[float]) -> list[Candidate]:
        """Predict bursts that are not fitted, with all weights of tangents and all λ."""
        inner = self._inner.layer(width, roughness)
        errors = np.zeros((len(weights), len(RIDGES)))
        sizes, ridges, judged = np.zeros_like(errors), np.zeros_like(errors), 0
        for fitted, points, expected in self._splits():
            (values, slopes), (of_values, of_slopes) = self._normal(inner, fitted)
            features = self._features(inner, points[None])[0]
            for i, weight in enumerate(weights):
                eigen, axes = np.linalg.eigh(values + weight * slopes)
                turned, moment = features @ axes, axes.T @ (of_values + weight * of_slopes)
                for j, part in enumerate(RIDGES):
                    ridge = part * eigen[-1]
                    outer = moment / (np.maximum(eigen, 0) + ridge)[:, None]
                    errors[i, j] += np.linalg.norm(turned @ outer - expected, axis=1).sum()
                    sizes[i, j], ridges[i, j] = np.linalg.norm(outer), ridge / len(fitted)
            judged += len(points)
        return [
            Candidate(float(errors[i, j] / judged), float(sizes[i, j]), width, roughness, weight, float(ridges[i, j]))
            for i, weight in enumerate(weights)
            for j in range(len(RIDGES))
        ]

    def _splits(self) -> Iterator[tuple[Rows, Array, Array]]:
        """Yield rows to fit, and points (m, d) with measured means (m, D) to predict."""
        if self.held_inputs.shape[1] >= FEW_JUDGES:
            yield self._rows, self.held_inputs[0], self.held_targets[0]
            return
        for fold in range(FOLDS):
            judges = self._rows[fold::FOLDS]
            yield np.setdiff1d(self._rows, judges), self.inputs[0, judges], self._targets(judges)[0]

    def _normal(self, inner: tuple[Array, Array], rows: Rows) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return Gram matrices (q, q) and moments (q, D) of values and of tangents."""
        q, dim = len(inner[0]) + self.inputs.shape[2] + 1, self.targets.shape[2]
        grams, moments = np.zeros((2, q, q)), np.zeros((2, q, dim))
        for part in _blocks(rows):
            features, targets = self._features(inner, self.inputs[:, part]), self._targets(part)
            for kind, slabs in enumerate((slice(0, 1), slice(1, None))):
                flat = features[slabs].reshape(-1, q)
                grams[kind] += flat.T @ flat
                moments[kind] += flat.T @ targets[slabs].reshape(-1, dim)
        return (grams[0], grams[1]), (moments[0], moments[1])

    def _targets(self, rows: Rows) -> Array:
        return self.targets[:, torch.from_numpy(rows)].cpu().numpy()

    def _features(self, inner: tuple[Array, Array], stack: Array) -> Array:
        """Compute what the outer weights act on, of points and tangents: (…, n, d) to (…, n, p + d + 1)."""
        weights, bias = inner
        phi = ACTIVATIONS[self.activation]
        out = np.zeros((*stack.shape[:2], len(weights) + stack.shape[2] + 1))
        width = len(weights)
        value = phi.value(torch.from_numpy(stack[0] @ weights.T + bias))
        out[0, :, :width] = value.numpy()
        if len(stack) > 1:
            out[1:, :, :width] = (stack[1:] @ weights.T) * phi.slope(value).numpy()
        out[:, :, width:-1] = stack
        out[0, :, -1] = 1
        return out


def _blocks(rows: Rows) -> Iterator[Rows]:
    return (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
