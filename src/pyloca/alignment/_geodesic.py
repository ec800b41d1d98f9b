"""Start for d > k, where no frame is global: landmark multidimensional scaling of geodesic distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from pyloca.geometry import BurstGraph

__all__ = ["landmark_mds"]

LANDMARKS = 300


def landmark_mds(
    graph: BurstGraph,
    n_components: int,
    burst_std: float,
    random: np.random.RandomState,
    n_landmarks: int = LANDMARKS,
) -> NDArray[np.float64]:
    """Compute coordinates from geodesic distances to random landmarks (de Silva and Tenenbaum 2004).

    Parameters
    ----------
    graph : BurstGraph
    n_components : int
        d.
    burst_std : float
        σ, the unit of the lengths in the graph.
    random : RandomState
        Draws the landmarks.
    n_landmarks : int, default=300
        With all N bursts this is classical multidimensional scaling.

    Returns
    -------
    (N, d) array

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca.geometry import BurstGraph
    >>> line = BurstGraph(4, np.arange(3), np.arange(1, 4), np.ones(3))
    >>> z = landmark_mds(line, 1, 1.0, np.random.RandomState(0))[:, 0]
    >>> np.abs(np.diff(z)).round(6)
    array([1., 1., 1.])
    """
    landmarks = np.sort(random.permutation(graph.n_nodes)[:n_landmarks])
    squared = np.square(burst_std * dijkstra(graph.adjacency(), directed=False, indices=landmarks))  # (L, N)
    among = squared[:, landmarks]
    gram = -0.5 * (among - among.mean(axis=0) - among.mean(axis=1)[:, None] + among.mean())
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    # A direction that geodesics do not fill (a curve in the plane) starts flat: the refinement opens it.
    roots = np.sqrt(np.maximum(values, 0))
    inverse = np.divide(1, roots, out=np.zeros_like(roots), where=roots > 1e-6 * roots[0])
    return -0.5 * (squared - among.mean(axis=1)[:, None]).T @ (vectors * inverse)  # (N, d)
