"""`diagnose`: the checks of a fit, repeated on its own bursts or on new ones."""

from __future__ import annotations

from dataclasses import replace

from pyloca.estimator import LOCA, Data, read_like
from pyloca.findings import Diagnostics, data_size, judge, round_trip_errors

__all__ = ["diagnose"]


def diagnose(model: LOCA, bursts: Data) -> Diagnostics:
    """Check a fitted model on bursts: those it was fitted to, or others from the same instrument.

    The checks are those of ``model.diagnostics_``, with values for all of these bursts but those that a fit would leave
    out (`max_strays`).

    Parameters
    ----------
    model : LOCA
        Fitted.
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path

    Returns
    -------
    Diagnostics

    Raises
    ------
    BurstError
        If the bursts cannot be used, or are not from the instrument that the model was fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> from pyloca.bursts import from_function
    >>> X = np.random.RandomState(0).uniform(size=(100, 2))
    >>> bursts = from_function(lambda x: np.c_[x, x[:, 0] * x[:, 1]], X, 0.01, 20, random_state=0)
    >>> model = LOCA(burst_std=0.01, hidden_layers=(5,), random_state=0).fit(bursts)
    >>> diagnose(model, bursts[:80]).findings
    ()
    """
    seen = read_like(model, bursts)
    kept = seen.without_strays()
    judged = judge(
        kept.encoder,
        kept.statistics,
        model.burst_std_,
        decoder=kept.decoder,
        bursts=kept.bursts,
        scaled=isinstance(model.feature_scale, str),
    )
    judged = replace(judged, noise=model.diagnostics_.noise)  # that of the fit is used
    if not seen.strays:
        return judged
    lost, means, embedding = list(seen.strays), seen.statistics.means, seen.embed()
    errors = round_trip_errors(seen.decoder, means[lost], embedding[lost], data_size(kept.statistics.means))
    return judged.among(seen.sound, seen.strays, seen.statistics.ids, errors)
