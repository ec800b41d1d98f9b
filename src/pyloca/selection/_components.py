"""d, suggested by the alignment or selected among fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import brief, check_seed, is_integer
from pyloca._html import html_card
from pyloca.checks import Suggestion, suggest_components
from pyloca.errors import BurstError
from pyloca.estimator import LOCA, MORE, Data, compare_components
from pyloca.geometry import BurstStatistics
from pyloca.selection._sound import scaled_bursts, sound_statistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ComponentSelection", "select_n_components", "suggest_n_components"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ComponentSelection:
    """Selected d, with the fits that it was selected from.

    Attributes
    ----------
    n_components : int
        The smallest d that no other candidate improves on for held-out bursts; among those whose fit has no finding,
        if there are any.
    intrinsic_dim : int
        k.
    candidates : tuple of int
        All d that were fitted.
    losses, excess : (n,) array
        Held-out whitening loss of each candidate (a burst counts at most 5 times its sampling floor), and its excess
        over the floor.
    standard_errors : (n,) array
        Of the difference from the best candidate, burst by burst.
    hint : int
        The d suggested by the closed-form alignment: k if the latent space is flat, k + 1 if one more dimension
        relieves the strain.
    models : dict of LOCA
        The fits, by d.

    Examples
    --------
    See `select_n_components`.
    """

    n_components: int
    intrinsic_dim: int
    candidates: tuple[int, ...]
    losses: Array
    excess: Array
    standard_errors: Array
    hint: int
    models: dict[int, LOCA] = field(repr=False)

    def __str__(self) -> str:
        lines = [f"d = {self.n_components} (k = {self.intrinsic_dim}; the alignment suggests {self.hint})"]
        for d, loss, excess in zip(self.candidates, self.losses, self.excess, strict=True):
            chosen = " <-" if d == self.n_components else ""
            lines.append(f"  d = {d}: held-out loss {loss:.4g}, {excess:+.2g} beyond the sampling floor{chosen}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = {
            "n_components": str(self.n_components),
            "intrinsic_dim": str(self.intrinsic_dim),
            "alignment suggests": str(self.hint),
        }
        for i, d in enumerate(self.candidates):
            found = ", ".join(finding.name for finding in self.models[d].diagnostics_.findings)
            name = f"d = {d}{', chosen' if d == self.n_components else ''}"
            rows[name] = (
                f"held-out loss {self.losses[i]:.4g}, {self.excess[i]:+.2g} beyond the sampling floor; standard error "
                f"{self.standard_errors[i]:.1g} of the difference to the best; {found or 'no fault found'}"
            )
        return html_card("Selection of d", rows)

    def plot(self) -> Figure:
        """Draw the loss against d.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_component_selection

        floor = float((self.losses - self.excess)[0])
        return plot_component_selection(self.n_components, self.candidates, self.losses, self.standard_errors, floor)


def suggest_n_components(
    bursts: Data, *, burst_std: float | None = None, intrinsic_dim: int | None = None
) -> Suggestion:
    """Suggest d in closed form, without training: k if the latent space is flat, k + 1 if it is not.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
    burst_std : float, optional
        σ; None: estimated.
    intrinsic_dim : int, optional
        k; None: estimated.

    Returns
    -------
    Suggestion

    Raises
    ------
    BurstError
        If the bursts cannot be used.

    Examples
    --------
    >>> from pyloca import datasets
    >>> suggest_n_components(datasets.mushroom(300, 50, random_state=0).bursts).n_components
    2
    """
    statistics, sound = sound_statistics(bursts, intrinsic_dim)
    return suggest_components(statistics[sound], burst_std)


def select_n_components(
    bursts: Data,
    *,
    burst_std: float | None = None,
    intrinsic_dim: int | None = None,
    candidates: Sequence[int] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    **parameters: Any,
) -> ComponentSelection:
    """Fit several d and select the smallest that no other improves on for held-out bursts.

    The criterion is the paper's: the held-out whitening loss against its sampling floor, compared burst by burst. A d
    is sufficient if no candidate is better by more than 2.5 standard errors and by more than a tenth. Fits with a
    finding are passed over if there is one without.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
    burst_std : float, optional
        σ; None: estimated.
    intrinsic_dim : int, optional
        k; None: estimated.
    candidates : sequence of int, optional
        The d to fit, at least k; None: k to k + 3.
    random_state : int, RandomState or None, default=None
        Seed of the fits; all candidates have the same one.
    n_jobs : int, optional
        Number of fits that run at the same time, as in scikit-learn.
    **parameters
        Further parameters of `LOCA`.

    Returns
    -------
    ComponentSelection

    Raises
    ------
    BurstError
        If the bursts cannot be used, or a candidate is smaller than k.

    Examples
    --------
    >>> from pyloca.bursts import from_function
    >>> X = np.random.RandomState(0).uniform(size=(100, 2))
    >>> bursts = from_function(lambda x: np.c_[x, x[:, 0] * x[:, 1]], X, 0.01, 20, random_state=0)
    >>> found = select_n_components(
    ...     bursts, burst_std=0.01, candidates=[2, 3], hidden_layers=(5,), max_iter=100, random_state=0
    ... )
    >>> found.n_components
    2
    """
    raw = bursts if isinstance(bursts, BurstStatistics) else scaled_bursts(bursts)
    statistics, sound = sound_statistics(raw, intrinsic_dim, parameters.get("max_strays"))
    k = statistics.intrinsic_dim
    asked = range(k, k + MORE + 1) if candidates is None else candidates
    if not isinstance(asked, Iterable) or not all(is_integer(d, 1) for d in asked):
        raise ValueError(f"candidates must be integers of at least 1; got {brief(candidates)}.")
    ds = tuple(sorted({int(d) for d in asked}))
    if not ds or ds[0] < k:
        raise BurstError(
            f"candidates must be at least k = {k}, the dimension that bursts span; got {brief(candidates)}."
        )
    # One seed for all: candidates are compared on the same held-out bursts, which the seed draws.
    check_seed("random_state", random_state)
    seed = random_state if isinstance(random_state, Integral) else check_random_state(random_state).randint(2**31 - 1)
    shared = {"burst_std": burst_std, "intrinsic_dim": k, "random_state": int(seed), **parameters}
    models = {d: LOCA(n_components=d, **shared) for d in ds}
    fits = compare_components(models, raw, statistics.counts, n_jobs)
    hint = suggest_components(statistics[sound], burst_std).n_components
    return ComponentSelection(
        n_components=fits.n_components,
        intrinsic_dim=k,
        candidates=ds,
        losses=fits.losses,
        excess=fits.losses - fits.floor,
        standard_errors=fits.standard_errors,
        hint=hint,
        models=fits.models,
    )
