"""How many components: fits with several, compared on the same held-out bursts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from pyloca.bursts import Bursts
from pyloca.checks import enough_components
from pyloca.errors import TrustWarning
from pyloca.geometry import BurstStatistics

__all__ = ["MORE", "ComponentFits", "compare_components"]

MORE = 3  # components beyond k that are tried


@dataclass(frozen=True)
class ComponentFits:
    """Fits of one data set with several d.

    Attributes
    ----------
    n_components : int
        The smallest d that no larger candidate betters on held-out bursts; one whose fit has no finding, if there is.
    losses, standard_errors : (n,)
        Mean held-out whitening loss of each, and the standard error of its difference to the least.
    floor : float
        What sampling alone leaves of the loss.
    models : dict
        The fits, by d.
    """

    n_components: int
    losses: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    floor: float
    models: dict[int, Any] = field(repr=False)


def compare_components(
    models: Mapping[int, Any], data: Bursts | BurstStatistics, counts: NDArray[np.float64], n_jobs: int | None = None
) -> ComponentFits:
    """Fit estimators, one for each d, to the same bursts of `counts` points, and choose among them."""
    ds = sorted(models)
    fitted = dict(zip(ds, Parallel(n_jobs=n_jobs)(delayed(_fit)(models[d], data) for d in ds), strict=True))
    held_out = fitted[ds[0]].validation_indices_
    rows = held_out if len(held_out) else np.arange(len(counts))
    k = fitted[ds[0]].intrinsic_dim_
    losses = np.stack([fitted[d].diagnostics_.losses[rows] for d in ds])  # (n, held out)
    enough, means, errors = enough_components(losses, counts[rows], k)
    # Bursts do not see a fold; the checks of the fit do.
    sound = np.array([not fitted[d].diagnostics_.findings for d in ds])
    chosen = ds[int(np.argmax(enough & sound if np.any(enough & sound) else enough))]
    floor = float((k * (k + 1) / (2 * (counts[rows] - 1))).mean())
    return ComponentFits(chosen, means, errors, floor, fitted)


def _fit(model: Any, data: Bursts | BurstStatistics) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # that some candidates are bad is the point
        return model.fit(data)
