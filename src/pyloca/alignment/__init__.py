"""Global coordinates and frames of all bursts from their local geometry, in closed form, without a network."""

from pyloca.alignment._align import MAX_BURSTS, Alignment, align, strain_beyond_sampling, unbend
from pyloca.alignment._edges import Edges, gather, see_edges
from pyloca.alignment._geodesic import landmark_mds
from pyloca.alignment._rigid import poisson_solver

__all__ = [
    "MAX_BURSTS",
    "Alignment",
    "Edges",
    "align",
    "gather",
    "landmark_mds",
    "poisson_solver",
    "see_edges",
    "strain_beyond_sampling",
    "unbend",
]
