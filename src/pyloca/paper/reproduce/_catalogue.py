"""The figures of each experiment."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from pyloca.paper.experiments import Result
from pyloca.paper.reproduce._applied import draw_dimension, draw_flatten, draw_invariance, draw_wifi
from pyloca.paper.reproduce._synthetic import (
    draw_decoder,
    draw_frame,
    draw_mushroom,
    draw_mushroom_embeddings,
    draw_sphere,
)

__all__ = ["FIGURES"]

FIGURES: dict[str, dict[str, Callable[[Result], Figure]]] = {
    "mushroom": {"distances": draw_mushroom, "embeddings": draw_mushroom_embeddings},
    "frame": {"regions": draw_frame},
    "decoder": {"lines": draw_decoder},
    "sphere": {"sphere": draw_sphere},
    "dimension": {"curves": draw_dimension},
    "flatten": {"sheet": draw_flatten},
    "wifi": {"floor": draw_wifi},
    "invariance": {"overlay": draw_invariance},
}
