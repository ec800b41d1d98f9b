"""d > k: landmark multidimensional scaling of geodesic distances. The surface is curved, so no frame is global."""

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
    """Coordinates (N, d) from geodesics to random landmarks (de Silva and Tenenbaum); all N make it classical MDS."""
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
