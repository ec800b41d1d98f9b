"""`diagnose`: the checks of a fit again, on bursts of its own or on new ones."""

from __future__ import annotations

from pyloca.estimator import LOCA, Data, read_like
from pyloca.findings import Diagnostics, judge

__all__ = ["diagnose"]


def diagnose(model: LOCA, bursts: Data) -> Diagnostics:
    """Check a fitted model on bursts: those it was fitted to, or others of the same instrument.

    The same checks as in ``model.diagnostics_``, with figures of all these bursts.

    Parameters
    ----------
    model : LOCA
        Fitted.
    bursts : (N, M, D), Bursts, BurstStatistics, or a path

    Returns
    -------
    Diagnostics

    Raises
    ------
    BurstError
        If the bursts cannot be used, or are not of the instrument that the model was fitted to.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
    >>> diagnose(model, data.bursts[:100]).findings
    ()
    """
    seen = read_like(model, bursts)
    return judge(seen.encoder, seen.statistics, model.burst_std_, decoder=seen.decoder, bursts=seen.bursts)
