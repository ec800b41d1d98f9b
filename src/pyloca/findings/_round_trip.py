"""The round trip of burst means: what the decoder does not lead back to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import nn

from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.networks import apply_rows
from pyloca.thresholds import MISSED, ROUND_TRIP, SAMPLE

__all__ = ["RoundTrip", "data_size", "lossy", "round_trip_errors"]

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
        return cls(np.asarray((apply_rows(decoder, embedding, means.shape[1]) - means) / size), size)

    @property
    def errors(self) -> Array:
        """Length of what is left of each burst mean, (N,)."""
        return np.asarray(np.linalg.norm(self.left, axis=1))

    def differences(self, embedding: Array) -> Array:
        """Compare what is left with that of the nearest in the embedding.

        A decoder that is not flexible enough misses neighbours alike. Coordinates that lack something miss each by its
        own.

        Parameters
        ----------
        embedding : (N, d) array

        Returns
        -------
        (n, D) array
            (left_i − left_j) / √2 of a sample of bursts, with j the nearest to i.
        """
        rows = sample_rows(len(embedding), SAMPLE)
        nearest = cKDTree(embedding).query(embedding[rows], 2)[1]
        other = np.where(nearest[:, 0] == rows, nearest[:, 1], nearest[:, 0])  # equal places come in any order
        return np.asarray((self.left[rows] - self.left[other]) / np.sqrt(2))


def lossy(
    back: RoundTrip, statistics: BurstStatistics, embedding: Array, counts: NDArray[np.int64] | None = None
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

    Returns
    -------
    Finding or None
    """
    far = float(np.median(back.errors))
    apart = back.differences(embedding)
    noise = _noise_of_means(statistics, statistics.counts if counts is None else counts) / back.size**2
    missed = float(np.sqrt(max(np.median(np.square(apart).sum(axis=1)) - noise, 0)))
    alone = MISSED.passed(missed)
    if not (ROUND_TRIP.passed(far) or alone):
        return None
    said = f"the decoder does not lead back: burst means return {far:.0%} of the data's size away (median)"
    if not alone:
        return Finding(
            "round_trip",
            f"{said}, neighbours alike. Only the decoder failed, it seems: encode and transform can still be right, "
            "and decode cannot. Try more hidden units, or let the training end by itself (max_iter=None). But if the "
            "data come from several days or files, a sensor may have shifted between them: fit one alone and compare.",
        )
    return Finding(
        "round_trip",
        f"{said}, and neighbours in the embedding differ by {missed:.0%} in what is missing. "
        "Something varies between bursts that the coordinates do not hold, and it spoils distances too: sensors that "
        "drift or are offset from burst to burst, a room temperature, or one more latent variable that bursts do not "
        "perturb. Leave out or correct such sensors, or perturb that variable and raise n_components.",
    )


def _noise_of_means(statistics: BurstStatistics, counts: NDArray[np.int64] | Array) -> float:
    """Squared distance from the surface at which noise leaves the mean of a burst, median."""
    noise = float(np.median(statistics.residuals / counts))
    if statistics.instrument is not None:
        levels = statistics.instrument.levels
        traces = levels.sum(axis=1) if levels.ndim == 2 else np.trace(levels, axis1=1, axis2=2)
        noise += float(np.median(traces) / np.median(counts))
    return noise


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
    """
    return float(np.sqrt(np.square(means - means.mean(axis=0)).sum(axis=1).mean())) or 1.0
