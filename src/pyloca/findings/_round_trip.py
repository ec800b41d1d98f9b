"""The round trip of burst means: what the decoder does not lead back to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import nn

from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.networks import apply_rows
from pyloca.thresholds import MISSED, ROUND_TRIP, SAMPLE

__all__ = [
    "RoundTrip",
    "data_size",
    "lossy",
    "nearest_pairs",
    "noise_of_means",
    "round_trip_errors",
    "unforeseen_steps",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RoundTrip:
    """What the decoder leaves of burst means.

    Attributes
    ----------
    left : (N, D) array
        γ(ρ(μ_i)) − μ_i as a fraction of the data's size.
    size : float
        That size.
    """

    left: Array
    size: float

    @classmethod
    def of(cls, decoder: nn.Module, means: Array, embedding: Array, size: float | None = None) -> RoundTrip:
        """Decode an embedding and compare.

        Parameters
        ----------
        decoder : torch.nn.Module
            γ.
        means : (N, D) array
            μ.
        embedding : (N, d) array
            ρ(μ).
        size : float, optional
            The data's size; None: that of these means.

        Returns
        -------
        RoundTrip
        """
        size = data_size(means) if size is None else size
        left = apply_rows(decoder, embedding, means.shape[1])
        left -= means
        left /= size
        return cls(left, size)

    @cached_property
    def errors(self) -> Array:
        """Length of what is left of each burst mean, (N,)."""
        return np.asarray(np.linalg.norm(self.left, axis=1))

    def differences(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> Array:
        """Compare what is left of some bursts with that of others.

        A decoder that is not flexible enough misses neighbours alike. Coordinates that lack something miss each by its
        own.

        Parameters
        ----------
        rows, others : (n,) array of int

        Returns
        -------
        (n, D) array
            (left_i − left_j) / √2.
        """
        return np.asarray((self.left[rows] - self.left[others]) / np.sqrt(2))


def nearest_pairs(embedding: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair a sample of bursts with the nearest in the embedding.

    Parameters
    ----------
    embedding : (N, d) array

    Returns
    -------
    rows, others : (n,) array of int
    """
    rows = sample_rows(len(embedding), SAMPLE)
    nearest = cKDTree(embedding).query(embedding[rows], 2)[1]
    return rows, np.where(nearest[:, 0] == rows, nearest[:, 1], nearest[:, 0])  # equal places come in any order


def unforeseen_steps(start: tuple[Array, Array, Array], end: tuple[Array, Array, Array], steps: Array) -> Array:
    """Compute what bursts do not foresee of the steps between their means, from the steps between their coordinates.

    A step Δz is a combination c of the tangents in the embedding, and Δμ the same combination of those in the
    measurements. With the mean of both ends, bends have no influence up to third order, nor has a decoder any.

    Parameters
    ----------
    start, end : (means, tangents, pushed)
        (n, D), (n, k, D) and (n, k, d) arrays at both ends; `pushed` are the tangents in the embedding.
    steps : (n, d) array
        Δz.

    Returns
    -------
    (n, D) array

    Examples
    --------
    >>> import numpy as np
    >>> tangents = np.ones((1, 1, 2))
    >>> here, there = ((np.full((1, 2), m), tangents, np.ones((1, 1, 1))) for m in (0.0, 3.0))
    >>> unforeseen_steps(here, there, np.array([[2.0]]))
    array([[1., 1.]])
    """
    foreseen = np.zeros_like(start[0])
    for _, tangents, pushed in (start, end):
        combined = np.einsum("nkd,nd->nk", np.linalg.pinv(pushed.transpose(0, 2, 1)), steps)
        foreseen += np.einsum("nk,nkd->nd", combined, tangents) / 2
    return np.asarray(end[0] - start[0] - foreseen)


def lossy(
    back: RoundTrip,
    statistics: BurstStatistics,
    embedding: Array,
    counts: NDArray[np.int64] | None = None,
    unforeseen: Array | None = None,
) -> Finding | None:
    """Check whether the decoder leads back from white coordinates: if not, they miss something, or it failed.

    Parameters
    ----------
    back : RoundTrip
    statistics : BurstStatistics
    embedding : (N, d) array
        ρ(μ).
    counts : (N,) array of int, optional
        Points of each burst; None: those that `statistics` count.
    unforeseen : (n, D) array, optional
        `unforeseen_steps` between `nearest_pairs`, in units of the data: where bursts foresee the steps between their
        means, coordinates lack nothing, whatever the decoder makes of them.

    Returns
    -------
    Finding or None
    """
    far = float(np.median(back.errors))
    lacks = [np.square(back.differences(*nearest_pairs(embedding))).sum(axis=1)]
    if unforeseen is not None:
        lacks.append(np.square(unforeseen).sum(axis=1) / (2 * back.size**2))
    noise = float(np.median(noise_of_means(statistics, statistics.counts if counts is None else counts))) / back.size**2
    missed = float(np.sqrt(max(min(np.median(squares) for squares in lacks) - noise, 0)))
    alone = MISSED.passed(missed)
    if not (ROUND_TRIP.passed(far) or alone):
        return None
    said = f"the decoder does not lead back: burst means return {far:.0%} of the data's size away (median)"
    if not alone:
        return Finding(
            "round_trip",
            f"{said}, neighbours alike. Only the decoder failed, it seems: encode and transform can still be right, "
            "and decode cannot. Readings change too fast between bursts for it: measure more of them (for a decoder of "
            "your own, try more hidden units). But if the data come from several days or files, a sensor may have "
            "shifted between them: fit one alone and compare.",
        )
    return Finding(
        "round_trip",
        f"{said}, and neighbours in the embedding differ by {missed:.0%} in what is missing. "
        "Something varies between bursts that the coordinates do not hold, and it spoils distances too: sensors that "
        "drift or are offset from burst to burst, a room temperature, or one more latent variable that bursts do not "
        "perturb. Leave out or correct such sensors, or perturb that variable and raise n_components.",
    )


def noise_of_means(statistics: BurstStatistics, counts: NDArray[np.int64] | Array) -> Array:
    """Compute the squared distance from the surface at which noise leaves the mean of each burst.

    Parameters
    ----------
    statistics : BurstStatistics
    counts : (N,) array
        Points of each burst.

    Returns
    -------
    (N,) array
    """
    noise = statistics.residuals / counts
    if statistics.instrument is not None:
        levels = statistics.instrument.levels
        traces = levels.sum(axis=1) if levels.ndim == 2 else np.trace(levels, axis1=1, axis2=2)
        noise = noise + np.median(traces) / counts
    return np.asarray(noise)


def round_trip_errors(decoder: nn.Module, means: Array, embedding: Array, size: float | None = None) -> Array:
    """Compute ‖γ(ρ(μ_i)) − μ_i‖ as a fraction of the data's size (root mean square distance from its centre).

    Parameters
    ----------
    decoder : torch.nn.Module
        γ.
    means : (N, D) array
        μ.
    embedding : (N, d) array
        ρ(μ).
    size : float, optional
        The data's size; None: that of these means.

    Returns
    -------
    (N,) array

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> decoder = nn.Linear(2, 2).double()
    >>> round_trip_errors(decoder, np.zeros((5, 2)), np.zeros((5, 2))).shape
    (5,)
    """
    return RoundTrip.of(decoder, means, embedding, size).errors


def data_size(means: Array) -> float:
    """Compute the root mean square distance of burst means from their centre; 1 if they all coincide.

    Parameters
    ----------
    means : (N, D) array

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> data_size(np.array([[0.0, 0.0], [2.0, 0.0]]))
    1.0
    """
    centred = means - means.mean(axis=0)
    return float(np.sqrt(np.square(centred, out=centred).sum(axis=1).mean())) or 1.0
