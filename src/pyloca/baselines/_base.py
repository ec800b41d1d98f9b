"""The common base of the baselines: reading data, and scikit-learn's contract."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pyloca._arguments import LARGEST, check_count, check_seed, refuse_masked
from pyloca.bursts import Bursts, as_bursts
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics

__all__ = ["Baseline", "Data"]

Array = NDArray[np.float64]
Data = Bursts | BurstStatistics | ArrayLike | Sequence[ArrayLike] | str | os.PathLike[str]
MIN_POINTS = 10


class Baseline(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A method that embeds N points, or the means of N bursts.

    A subclass implements `_fit`, which returns the embedding, and `_extend`, which embeds new points.
    """

    n_components: int
    random_state: int | np.random.RandomState | None

    def fit(self, X: Data, y: None = None) -> Any:
        """Embed points, or the means of bursts.

        Parameters
        ----------
        X : (N, D) array of points; or bursts as for `pyloca.LOCA`
            Bursts are an (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        BurstError
            If the data cannot be used.
        ValueError
            If a parameter is out of range, or points are not finite.
        """
        self._check_parameters()
        points, statistics = self._read(X)
        self.embedding_ = self._fit(points, statistics)
        return self

    def fit_transform(self, X: Data, y: None = None) -> Array:
        """Fit and return the embedding.

        Parameters
        ----------
        X : as for `fit`
        y : None
            Ignored.

        Returns
        -------
        (N, d) array
        """
        return self.fit(X).embedding_

    def transform(self, X: ArrayLike) -> Array:
        """Embed new points.

        Points outside the range of the training points raise a `pyloca.errors.TrustWarning`.

        Parameters
        ----------
        X : (n, D) array

        Returns
        -------
        (n, d) array

        Raises
        ------
        ValueError
            If `X` is not finite or has another number of features than the training points.
        """
        check_is_fitted(self)
        refuse_masked("X", X, BurstError)
        points = validate_data(self, X, reset=False, dtype=np.float64)
        self._refuse_large(points)
        return self._extend(points)

    def _fit(self, points: Array, statistics: BurstStatistics | None) -> Array:
        raise NotImplementedError

    def _extend(self, points: Array) -> Array:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Check the parameters as far as possible without data; a subclass adds its own checks."""
        check_count("n_components", self.n_components)
        check_seed("random_state", self.random_state)

    def _read(self, data: Data) -> tuple[Array, BurstStatistics | None]:
        if _are_points(data):
            refuse_masked("X", data, BurstError)
            points = validate_data(self, data, dtype=np.float64, ensure_min_samples=MIN_POINTS)
            self._refuse_large(points)
            if np.all(points == points[0]):
                raise BurstError(
                    "all points are identical; there is nothing to embed. Check that the right columns were read."
                )
            if np.ptp(points, axis=0).max() < 1 / LARGEST:
                raise BurstError(
                    f"points differ by less than {1 / LARGEST:g}, which has no square; use a smaller unit."
                )
            return points, None
        if isinstance(data, BurstStatistics):
            statistics = data
        else:
            raw = as_bursts(data)
            statistics = BurstStatistics.from_bursts(raw, max_dim=int(self.n_components))
        self.n_features_in_ = statistics.n_features
        return statistics.means, statistics

    @staticmethod
    def _refuse_large(points: Array) -> None:
        large = np.flatnonzero((np.abs(points) > LARGEST).any(axis=1))
        if len(large):
            raise BurstError(f"X[{large[0]}] is too large to be squared; use a larger unit.")

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


class BurstBaseline(Baseline):
    """A method that needs bursts."""

    def _read(self, data: Data) -> tuple[Array, BurstStatistics]:
        if _are_points(data):
            shape = np.shape(data)  # type: ignore[arg-type]
            raise BurstError(
                f"{type(self).__name__} needs bursts of shape (N, M, D); got points of shape {shape}. "
                "Pass repeated measurements, or use DiffusionMaps, which needs none."
            )
        points, statistics = super()._read(data)
        assert statistics is not None
        if self.n_components < statistics.intrinsic_dim:
            raise BurstError(
                f"n_components = {self.n_components} cannot hold bursts that span k = {statistics.intrinsic_dim} "
                f"directions; use n_components={statistics.intrinsic_dim} or more."
            )
        return points, statistics

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _are_points(data: Data) -> bool:
    if isinstance(data, (Bursts, BurstStatistics, str, os.PathLike)):
        return False
    if isinstance(data, (list, tuple)) and len(data) and np.ndim(data[0]) == 2:  # bursts, one by one
        return False
    return getattr(data, "ndim", None) != 3 if hasattr(data, "ndim") else np.asarray(data).ndim != 3
