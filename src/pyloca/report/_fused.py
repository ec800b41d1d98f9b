"""A fusion as one page: the maps of all connected instruments in common coordinates, linked."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyloca.estimator import LOCA
from pyloca.matching import Fusion
from pyloca.report._maps import MOST_SENSORS, drawn_places, listed_sensors, maps_page, rounded

__all__ = ["fusion_page"]

USUAL = 0.99  # of held-out points lie as near to the training bursts as an instrument is said to have been


def fusion_page(fusion: Fusion, title: str = "") -> str:
    """Render a fusion as one self-contained HTML file.

    Drag a point on the map of any instrument: it is the same state on all of them, since all are drawn in the common
    coordinates. The page says which instruments have been there, how well it knows their coordinates, and what they
    measure. Instruments that are not connected have no map; they are named.

    Parameters
    ----------
    fusion : Fusion
    title : str, default=""
        Heading; "" names the instruments.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> from pyloca.bursts import from_function
    >>> from pyloca.matching import fuse
    >>> X = np.random.RandomState(0).uniform(size=(120, 2)) * [2, 1]
    >>> def bend(x): return np.c_[x, x[:, 0] * x[:, 1]]
    >>> def turn(x): return np.c_[x[:, 1], 3 - x[:, 0]]
    >>> models = {
    ...     name: LOCA(hidden_layers=(5,), random_state=0).fit(from_function(f, X, 0.01, 20, random_state=0))
    ...     for name, f in {"bend": bend, "turn": turn}.items()
    ... }
    >>> "<canvas" in fusion_page(fuse(models, {("bend", "turn"): (bend(X[:5]), turn(X[:5]))}))
    True
    """
    names = fusion.connected
    return maps_page(
        "fused",
        title=title or ", ".join(names),
        names=names,
        facts=fusion.facts(),
        warnings=fusion.warnings,
        data={"instruments": [_data(fusion, i, name) for i, name in enumerate(names)]},
    )


def _data(fusion: Fusion, i: int, name: str) -> dict[str, Any]:
    """Gather what the script draws of one instrument."""
    model: LOCA = fusion.models[name]
    places = drawn_places(model)
    held_out = model.trust_scale_
    usual = float(np.quantile(held_out.scores, USUAL)) if len(held_out.scores) else 1.0
    return {
        "name": name,
        "places": rounded(fusion.joint.common(places, i)),
        "errors": rounded(fusion.joint.errors(places, i)),
        "reach": usual * held_out.gap * fusion.joint.maps[i].scale,
        "readings": rounded(model.decode(places)[:, :MOST_SENSORS]),
        **listed_sensors(model),
    }
