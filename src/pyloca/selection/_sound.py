"""The bursts that `LOCA` would train on, in the units in which it would."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts, as_bursts
from pyloca.errors import BurstError
from pyloca.estimator import LOCA, Data
from pyloca.geometry import BurstStatistics, feature_scale, find_strays

__all__ = ["scaled_bursts", "sound_statistics"]


def scaled_bursts(bursts: Data) -> Bursts:
    """Return raw bursts in the units in which `LOCA` would fit them."""
    if isinstance(bursts, BurstStatistics):
        raise BurstError("expected raw bursts; got BurstStatistics, which hold only their tangents. Pass the bursts.")
    raw = as_bursts(bursts)
    scale = feature_scale(raw)
    return raw if scale is None else raw.scaled(scale)


def sound_statistics(
    bursts: Data, intrinsic_dim: int | None, max_strays: float | None = None
) -> tuple[BurstStatistics, NDArray[np.int64]]:
    """Return statistics of all bursts, and the positions of those that `LOCA` would train on."""
    most = LOCA().max_strays if max_strays is None else max_strays
    if not isinstance(bursts, BurstStatistics):
        bursts = BurstStatistics.from_bursts(scaled_bursts(bursts), intrinsic_dim, max_strays=most)
    # With fewer tangents than bursts span, neighbours cannot tell what lies off their surface.
    strays = bursts.unusable() if intrinsic_dim == 1 else find_strays(bursts, most)
    return bursts, np.delete(np.arange(len(bursts)), list(strays))
