"""How many components: fits with several, compared on the same held-out bursts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from pyloca.bursts import Bursts
from pyloca.checks import enough_components
from pyloca.geometry import BurstStatistics

__all__ = ["MORE", "ComponentFits", "compare_components", "fit_quietly"]

MORE = 3  # components beyond k that are tried


@dataclass(frozen=True)
class ComponentFits:
    """Fits of one data set with several d.

    Attributes
    ----------
    n_components : int
        The smallest d that no larger candidate improves on, judged on held-out bursts; among those, one whose fit has
        no finding, if there is one.
    losses, standard_errors : (n,) array
        Mean held-out whitening loss of each fit, and the standard error of its difference from the smallest.
    floor : float
        The part of the loss that sampling alone explains.
    models : dict of int to LOCA
        The fits, by d.

    Examples
    --------
    See `compare_components`.
    """

    n_components: int
    losses: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    floor: float
    models: dict[int, Any] = field(repr=False)


def compare_components(
    models: Mapping[int, Any], data: Bursts | BurstStatistics, counts: NDArray[np.float64], n_jobs: int | None = None
) -> ComponentFits:
    """Fit one estimator per d to the same bursts, and choose among them.

    Parameters
    ----------
    models : mapping of int to LOCA
        Unfitted estimators, by their number of components.
    data : Bursts or BurstStatistics
    counts : (N,) array
        Points per burst.
    n_jobs : int, optional
        Processes that fit at the same time.

    Returns
    -------
    ComponentFits

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts
    >>> models = {d: LOCA(d, intrinsic_dim=2, hidden_layers=(5,), max_iter=20, random_state=0) for d in (2, 3)}
    >>> len(compare_components(models, bursts, bursts.counts).losses)
    2
    """
    ds = sorted(models)
    fitted = dict(zip(ds, Parallel(n_jobs=n_jobs)(delayed(fit_quietly)(models[d], data) for d in ds), strict=True))
    held_out = fitted[ds[0]].validation_indices_
    losses = fitted[ds[0]].diagnostics_.losses
    rows = held_out if len(held_out) else np.flatnonzero(~np.isnan(losses))  # nan: left out of the training
    k = fitted[ds[0]].intrinsic_dim_
    losses = np.stack([fitted[d].diagnostics_.losses[rows] for d in ds])  # (n, held out)
    tails = fitted[ds[0]].diagnostics_.tails
    enough, means, errors = enough_components(losses, counts[rows], k, tails)
    # Bursts cannot show a fold; the checks of the fit can.
    sound = np.array([not fitted[d].diagnostics_.findings for d in ds])
    chosen = ds[int(np.argmax(enough & sound if np.any(enough & sound) else enough))]
    floor = float((tails * k * (k + 1) / (2 * (counts[rows] - 1))).mean())
    return ComponentFits(chosen, means, errors, floor, fitted)


def fit_quietly(model: Any, data: Bursts | BurstStatistics) -> Any:
    """Fit without a warning, for fits among many that may well be bad. A filter would silence other threads as well.

    Parameters
    ----------
    model : LOCA
    data : Bursts or BurstStatistics

    Returns
    -------
    LOCA
        `model`, fitted.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts
    >>> fit_quietly(LOCA(hidden_layers=(5,), max_iter=1, random_state=0), bursts).diagnostics_.findings[0].name
    'unfinished'
    """
    model._become(model._fit(data))
    return model
