"""Global coordinates and frames of all bursts from their local geometry, in closed form, without a network."""

from pyloca.alignment._align import Alignment, align
from pyloca.alignment._edges import Edges, gather, see_edges
from pyloca.alignment._geodesic import landmark_mds
from pyloca.alignment._rigid import poisson_solver

__all__ = ["Alignment", "Edges", "align", "gather", "landmark_mds", "poisson_solver", "see_edges"]
