"""How far the shape of an embedding is open: smooth displacements, and what the bursts of a fit say against them.

An encoder is right up to a displacement z ↦ z + u(z). A burst with the second moments S of its pushed tangents
has −log likelihood (M − 1)/2 · (tr S′ − log det S′), S′ = Fᵀ S F, F = I + ∇u: it sees strain and not bending, so that a
set is soft where it is narrow. u is a sum of Matérn functions, without the rigid motion that is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import digamma

from pyloca.estimator import LOCA, Reading, training_embedding
from pyloca.matching._rigid import parameter_jacobian
from pyloca.networks import pushed_rows

__all__ = ["PLACES", "Elastic", "Prior", "Seen", "elastic", "matern", "seen", "some_places", "spread_out"]

Array = NDArray[np.float64]

CENTRES = 60  # Matérn functions at most: displacements have long waves
# Of a Matérn function, in root mean square distances of two states. With 2, displacements had more short waves than
# errors of encoders have: the more anchors, the more often intervals were too wide.
LENGTH = 4.0
GAP_LENGTH = 2.0  # the same of waves between bursts, which are shorter
FINE_CENTRES, FINE_LENGTH = 120, 1.0  # the same where bursts are there to see shorter waves of an encoder
STRAIN = 0.3  # standard deviation of the strain before any burst is seen: one burst tells it better
RANK = 1e-7  # functions that differ from others by a smaller part of the variance are left out
# A network is not quite the best explanation of its bursts: strain that is too small to be seen in their loss adds up
# over long waves, so that embeddings are more wrong than their bursts say. With a variance of this many times,
# intervals from few anchors hold as often as stated (`python -m benchmarks matching --only anchors`).
EXCESS = 1.5
EXACT = 3000.0  # points that an exact burst counts for
PLACES = 1000  # bursts looked at, at a time, and at most to know where a fit has been


@dataclass(frozen=True)
class Elastic:
    """Displacements of one embedding, u(z) = rows(z) @ c, with c standard normal before any burst is seen.

    Attributes
    ----------
    centres : (m, d) array
        Of the Matérn functions.
    length : float
        Their length.
    mixing : (m, r) array
        From them to r functions that are independent.
    rigid : (p, r d) array
        Parameters of the rigid motion (and scale, where σ is not known) that is taken out of each displacement.
    centre : (d,) array
        Of these turns.
    """

    centres: Array
    length: float
    mixing: Array
    rigid: Array
    centre: Array

    @property
    def size(self) -> int:
        """Number of coefficients c."""
        return self.rigid.shape[1]

    @property
    def scaled(self) -> bool:
        """Whether a change of scale is taken out as well."""
        d = len(self.centre)
        return len(self.rigid) > d * (d + 1) // 2

    def rows(self, Z: Array) -> Array:
        """Return the matrices (n, d, q) that take c to the displacements of places (n, d)."""
        values = self._functions(Z)[0] @ self.mixing
        d = Z.shape[1]
        plain = np.einsum("nr,de->ndre", values, np.eye(d)).reshape(len(Z), d, -1)
        return np.asarray(plain - parameter_jacobian(Z, self.centre, scale=self.scaled) @ self.rigid)

    def slopes(self, Z: Array) -> Array:
        """Return the derivatives ∂u_b/∂z_a of these, (n, a, b, q)."""
        d = Z.shape[1]
        values = self._functions(Z)[1].transpose(0, 2, 1) @ self.mixing  # (n, a, r)
        plain = np.einsum("nar,be->nabre", values, np.eye(d)).reshape(len(Z), d, d, -1)
        units = self.centre + np.concatenate([np.zeros((1, d)), np.eye(d)])
        turns = parameter_jacobian(units, self.centre, scale=self.scaled)
        return np.asarray(plain - (turns[1:] - turns[:1]) @ self.rigid)

    def residual(self, Z: Array) -> Array:
        """Return the variance (n,), per coordinate, of waves that displacements cannot follow at places (n, d).

        It is the kriging variance of a displacement that is known at the centres: small between bursts that are close
        to each other, and large in gaps and beyond the border, where an encoder is extrapolated. It is 0 for fine
        displacements: they have these waves themselves.
        """
        length = GAP_LENGTH * _distance(self.centres)
        if self.length <= length:
            return np.zeros(len(Z))
        root = np.linalg.cholesky(matern(self.centres, self.centres, length) + RANK * np.eye(len(self.centres)))
        told = solve_triangular(root, matern(self.centres, Z, length), lower=True)  # (m, n)
        return np.asarray(_height(length) ** 2 * np.maximum(1 - np.square(told).sum(axis=0), 0.0))

    def _functions(self, Z: Array) -> tuple[Array, Array]:
        """Return Matérn functions of smoothness 5/2 at places, (n, m), and their gradients, (n, m, d)."""
        apart = (Z[:, None] - self.centres) * (np.sqrt(5) / self.length)
        r = np.linalg.norm(apart, axis=2)
        fall = np.exp(-r)
        return (1 + r + r**2 / 3) * fall, -(np.sqrt(5) / self.length / 3) * ((1 + r) * fall)[..., None] * apart


def elastic(model: LOCA, *, fine: bool = False) -> Elastic:
    """Build the displacements of a fitted model; `fine`: also those with shorter waves."""
    places = some_places(model)
    n, d = places.shape
    length = (FINE_LENGTH if fine else LENGTH) * _distance(places)
    centre = places.mean(axis=0)
    centres = places[spread_out(places, centre, FINE_CENTRES if fine else CENTRES)]
    plain = Elastic(centres, length, np.eye(len(centres)), np.zeros((0, 0)), centre)
    values, vectors = np.linalg.eigh(matern(centres, centres, length))
    kept = values > RANK * values[-1]
    # In the order in which a file keeps it, so that a loaded match gives the same bits.
    mixing = np.ascontiguousarray(_height(length) * vectors[:, kept] / np.sqrt(values[kept]))
    moves = parameter_jacobian(places, centre, scale=not model.burst_std_known_)
    functions = np.einsum("nr,de->ndre", plain._functions(places)[0] @ mixing, np.eye(d))
    rigid = np.linalg.lstsq(moves.reshape(n * d, -1), functions.reshape(n * d, -1), rcond=None)[0]
    return Elastic(centres, length, mixing, np.ascontiguousarray(rigid), centre)


def _distance(places: Array) -> float:
    """Return the root mean square distance of two places."""
    return float(np.sqrt(2 * places.var(axis=0).sum()))


def _height(length: float) -> float:
    """Return the standard deviation of Matérn functions whose slope has that of the strain."""
    return STRAIN * length / float(np.sqrt(5 / 3))


def spread_out(places: Array, first: Array, most: int) -> list[int]:
    """Choose places that are far from each other and from the first, one after the other."""
    nearest = np.linalg.norm(places - first, axis=1)
    rows: list[int] = []
    while len(rows) < min(most, len(places)):
        rows.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.linalg.norm(places - places[rows[-1]], axis=1))
    return rows


def matern(A: Array, B: Array, length: float) -> Array:
    """Return the Matérn function of smoothness 5/2 between places, (n, m)."""
    r = np.linalg.norm(A[:, None] - B, axis=2) * (np.sqrt(5) / length)
    return np.asarray((1 + r + r**2 / 3) * np.exp(-r))


def some_places(model: LOCA) -> Array:
    """Return embedded training bursts, at most `PLACES` of them, evenly chosen."""
    places = training_embedding(model)
    return places[:: -(-len(places) // PLACES)]


@dataclass(frozen=True)
class Prior:
    """What is known of displacements before any burst is seen: −log density cᵀPc/2 + gᵀc of their coefficients.

    Attributes
    ----------
    precision : (q, q) array
        P.
    slope : (q,) array
        g; not 0 where the fit itself is not the most likely shape.
    """

    precision: Array
    slope: Array

    @classmethod
    def standard(cls, size: int) -> Prior:
        """Return that of independent standard normal coefficients."""
        return cls(np.eye(size), np.zeros(size))

    def energy(self, c: Array) -> float:
        """Return −log density, 0 for no displacement."""
        return float(c @ self.precision @ c) / 2 + float(self.slope @ c)


@dataclass(frozen=True)
class Seen:
    """What bursts say about displacements.

    Attributes
    ----------
    elastic : Elastic
    prior : Prior
    places : (n, d) array
    moments : (n, d, d) array
        S = TᵀT of the pushed tangents T, the identity for a perfect fit without sampling errors, or where it is not
        known. Off the tangents (d > k) it is the identity: there, nothing is said for a displacement.
    weights : (n,) array
        M − 1.
    readings : (n, D) array, optional
        Burst means as the encoder sees them; None without bursts.
    """

    elastic: Elastic
    prior: Prior
    places: Array
    moments: Array
    weights: Array
    readings: Array | None = None

    def energy(self, c: Array) -> float:
        """Return Σ w/2 (tr S′ − log det S′ − tr S + log det S) + the prior's: 0 for no displacement, ∞ for a fold."""
        total = self.prior.energy(c)
        for slopes, moments, weights in self._parts():
            bent = np.eye(slopes.shape[1]) + slopes @ c
            sign, log = np.linalg.slogdet(bent)
            if (sign <= 0).any():
                return np.inf
            gain = np.einsum("nca,ncd,nda->n", bent, moments, bent) - np.trace(moments, axis1=1, axis2=2) - 2 * log
            total += float(weights @ gain) / 2
        return total

    def expansion(self, c: Array) -> tuple[Array, Array]:
        """Return the gradient (q,) of the energy and its expected second derivative (q, q)."""
        information = self.prior.precision.copy()
        gradient = information @ c + self.prior.slope
        for slopes, moments, weights in self._parts():
            n, d = slopes.shape[:2]
            bent = np.eye(d) + slopes @ c
            strain = _strain(slopes, bent)
            excess = bent.transpose(0, 2, 1) @ moments @ bent - np.eye(d)
            gradient += (weights[:, None] * excess.reshape(n, -1)).ravel() @ strain.reshape(n * d * d, -1)
            rows = (np.sqrt(2 * weights)[:, None, None] * strain).reshape(-1, len(c))
            information += rows.T @ rows
        return gradient, information

    def unbiased(self, c: Array) -> Seen:
        """Return the same bursts with moments that a displacement near c does not follow outwards.

        S is I + δ with sampling errors δ, and the F that explains a burst by itself is S^(−1/2), on average
        1 + 3/8 δ²: a displacement that follows bursts with leverage h blows the embedding up by 3/8 h (k + 1)/(M − 1).
        Moments that are larger by twice that undo it, to second order. All directions must have been measured (d = k).
        """
        root = np.linalg.inv(np.linalg.cholesky(self.expansion(c)[1])).T
        leverage = []
        for slopes, _, weights in self._parts():
            strain = _strain(slopes, np.eye(slopes.shape[1]) + slopes @ c)
            n, d = slopes.shape[:2]
            followed = np.square(strain.reshape(-1, len(c)) @ root).reshape(n, d * d, -1).sum(axis=(1, 2))
            leverage.append(2 * weights * followed / (d * (d + 1) / 2))
        bias = 3 / 8 * np.concatenate(leverage) * (self.moments.shape[1] + 1) / self.weights
        return replace(self, moments=self.moments * (1 + 2 * bias)[:, None, None])

    def followed(self, c: Array, tails: float) -> float:
        """Return by how many standard errors bursts fit displacement c better than they should fit the truth.

        −log likelihood at the truth is that of Wishart matrices, times `tails` for bursts that are not Gaussian. All
        directions must have been measured (d = k).
        """
        better = []
        for slopes, moments, weights in self._parts():
            d = slopes.shape[1]
            bent = np.eye(d) + slopes @ c
            cost = np.einsum("nca,ncd,nda->n", bent, moments, bent) - d
            cost -= np.linalg.slogdet(moments)[1] + 2 * np.linalg.slogdet(bent)[1]
            expected = -sum(digamma((weights - j) / 2) for j in range(d)) - d * np.log(2 / weights)
            better.append(weights / 2 * (tails * expected - cost))
        told = np.concatenate(better)
        spread = float(told.std())
        return float(told.mean()) / spread * float(np.sqrt(len(told))) if spread > 0 else 0.0

    def _parts(self) -> Iterable[tuple[Array, Array, Array]]:
        """Return slopes, moments and weights of all bursts, some at a time; they are kept where they are few."""
        return self._kept if len(self.places) <= PLACES else self._computed()

    @cached_property
    def _kept(self) -> list[tuple[Array, Array, Array]]:
        return list(self._computed())

    def _computed(self) -> Iterator[tuple[Array, Array, Array]]:
        for start in range(0, len(self.places), PLACES):
            part = slice(start, start + PLACES)
            yield self.elastic.slopes(self.places[part]), self.moments[part], self.weights[part]


def _strain(slopes: Array, bent: Array) -> Array:
    """Return the derivative (n, d², q) of the strain of displacements with these slopes, about F = `bent`."""
    n, d = slopes.shape[:2]
    turned = (np.linalg.inv(bent) @ slopes.reshape(n, d, -1)).reshape(slopes.shape)
    return np.asarray(((turned + turned.transpose(0, 2, 1, 3)) / 2).reshape(n, d * d, -1))


def seen(model: LOCA, elastic: Elastic, read: Reading | None = None) -> Seen:
    """Tell what the bursts of a fit say; without them, the fit is taken for their best explanation.

    Then a burst counts as so many points as explain the held-out loss by sampling.
    """
    if read is None:
        places, n = some_places(model), len(training_embedding(model))
        found, residuals = model.diagnostics_, model.intrinsic_dim_ * (model.intrinsic_dim_ + 1) / 2
        chance = found.sampling_floor * np.sqrt(2 / residuals / (len(model.validation_indices_) or n))
        loss = max(found.sampling_floor, found.whitening_loss - 2 * chance)  # of which 2 chance may be luck
        points = min(residuals / max(loss, 1e-300), EXACT) / EXCESS
        moments = np.tile(np.eye(model.n_components_), (len(places), 1, 1))
        prior = Prior.standard(elastic.size)
        return Seen(elastic, prior, places, moments, np.full(len(places), points * n / len(places)))
    statistics = read.statistics
    dtype = next(read.encoder.parameters()).dtype
    means, tangents = (torch.as_tensor(part, dtype=dtype) for part in (statistics.means, statistics.tangents))
    embedded, pushed = pushed_rows(read.encoder, means, tangents / model.burst_std_)
    T = pushed.double().numpy()  # (n, k, d)
    along = np.linalg.svd(T, full_matrices=False)[2]
    moments = T.transpose(0, 2, 1) @ T + np.eye(T.shape[2]) - along.transpose(0, 2, 1) @ along
    prior, weights = Prior.standard(elastic.size), np.minimum(statistics.counts - 1, EXACT)
    return Seen(elastic, prior, embedded.double().numpy(), moments, weights, np.asarray(statistics.means))
