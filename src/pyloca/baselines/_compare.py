"""`compare`: LOCA and the baselines on the same bursts."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from pyloca._arguments import as_numbers, check_count, check_seed
from pyloca.alignment import gather, see_edges
from pyloca.baselines._anisotropic import AnisotropicDiffusionMaps
from pyloca.baselines._autoencoder import Autoencoder
from pyloca.baselines._base import Baseline, Data
from pyloca.baselines._burst_alignment import BurstAlignment
from pyloca.baselines._diffusion_maps import DiffusionMaps
from pyloca.baselines._isomap import IntrinsicIsomap
from pyloca.baselines._kernels import Euclidean, Metric
from pyloca.baselines._relaxation import RiemannianRelaxation
from pyloca.bursts import Bursts, as_bursts
from pyloca.errors import BurstError, PylocaError, TrustWarning
from pyloca.estimator import LOCA
from pyloca.geometry import BurstStatistics, JointMahalanobis, connected_graph
from pyloca.metrics import stress
from pyloca.objectives import likelihood_pushed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Score", "compare"]

Array = NDArray[np.float64]

NEIGHBORS = 10  # of trustworthiness, continuity and recall
SAMPLE = 2000  # bursts on which they are computed, because they need all distances


@dataclass(frozen=True)
class Score:
    """Scores of one method; nan where a score is not available.

    Attributes
    ----------
    method : str
        Its name.
    stress : float
        Mean squared error of the distances to the truth, after the scaling that minimises it.
    whitening : float
        Mean of tr G − log det G − k: how far bursts are from white in the embedding. G is estimated in the same way for
        every method, from the steps between neighbouring bursts, after the scaling that minimises it.
    trustworthiness, continuity, recall : float
        Whether neighbours in the embedding are true neighbours, the converse, and the fraction of the ten nearest
        neighbours that agree. Without the truth, true neighbours are those under the joint Mahalanobis distance.
    seconds, megabytes : float
        Of the fit; memory is the peak growth of the process.
    error : str
        Why the method failed; empty if it did not.

    Examples
    --------
    >>> score = Score("DiffusionMaps", stress=0.02)
    >>> score.method, score.stress, score.error
    ('DiffusionMaps', 0.02, '')
    """

    method: str
    stress: float = np.nan
    whitening: float = np.nan
    trustworthiness: float = np.nan
    continuity: float = np.nan
    recall: float = np.nan
    seconds: float = np.nan
    megabytes: float = np.nan
    error: str = ""


COLUMNS = {
    "stress": ("stress", ".2e"),
    "whitening": ("whitening", ".2e"),
    "trustworthiness": ("trust", ".4f"),
    "continuity": ("contin.", ".4f"),
    "recall": ("recall", ".3f"),
    "seconds": ("seconds", ".2f"),
    "megabytes": ("MB", ".0f"),
}


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`. ``print`` shows the scores as a table, `plot` the embeddings.

    Attributes
    ----------
    scores : tuple of Score
        One per method.
    embeddings : dict of (N, d) arrays
        By name of the methods that did not fail.
    X : (N, d) array, optional
        The truth, if it was given.

    Examples
    --------
    See `compare`.
    """

    scores: tuple[Score, ...]
    embeddings: dict[str, Array] = field(repr=False)
    X: Array | None = field(default=None, repr=False)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the table as one dictionary per row, for pandas or for a file.

        Returns
        -------
        list of dict
        """
        return [asdict(score) for score in self.scores]

    def __str__(self) -> str:
        shown = [name for name in COLUMNS if self.X is not None or name != "stress"]
        width = max(len("method"), *(len(score.method) for score in self.scores))
        lines = ["method".ljust(width) + "".join(f"{COLUMNS[name][0]:>11}" for name in shown)]
        for score in self.scores:
            if score.error:
                lines.append(f"{score.method.ljust(width)}  failed: {score.error}")
                continue
            cells = (format(getattr(score, name), COLUMNS[name][1]) for name in shown)
            lines.append(score.method.ljust(width) + "".join(f"{cell:>11}" for cell in cells))
        if self.X is None:
            lines.append("Without the truth there is no stress; neighbours are those under the Mahalanobis distance.")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Draw the embeddings side by side, with distances against the true ones if the truth is known.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ValueError
            If every method failed.
        """
        from pyloca.plots import plot_comparison

        if not self.embeddings:
            raise ValueError("every method failed, so there is nothing to draw; print the comparison to see why.")
        return plot_comparison(self.embeddings, self.X)


def compare(
    bursts: Data,
    X: ArrayLike | None = None,
    methods: Sequence[str] | Mapping[str, BaseEstimator] | None = None,
    *,
    n_components: int = 2,
    burst_std: float | None = None,
    random_state: int | None = None,
) -> Comparison:
    """Fit several methods to the same bursts and score their embeddings.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
    X : (N, d) array, optional
        True latents of the bursts.
    methods : sequence of str, or mapping of str to estimator, optional
        None: LOCA, BurstAlignment, IntrinsicIsomap, RiemannianRelaxation, AnisotropicDiffusionMaps, DiffusionMaps and
        Autoencoder. Other estimators need `fit_transform`, and are given the burst means.
    n_components : int, default=2
        d of the methods given by name.
    burst_std : float, optional
        σ for the methods given by name; None: estimated.
    random_state : int or None, default=None
        Seed of the methods given by name, and of the bursts on which neighbours are compared if there are many.

    Returns
    -------
    Comparison
        A method that fails has its error in place of scores.

    Raises
    ------
    BurstError
        If the bursts cannot be used, or `X` does not match them.
    ValueError
        If a method is unknown.

    Examples
    --------
    >>> from pyloca import datasets
    >>> data = datasets.mushroom(n_bursts=100, n_points=20, random_state=0)
    >>> result = compare(data.bursts, data.X, ["BurstAlignment", "DiffusionMaps"], random_state=0)
    >>> [score.method for score in result.scores if score.stress < 1e-2]
    ['BurstAlignment']
    """
    check_count("n_components", n_components)
    check_seed("random_state", random_state)
    raw, statistics = _read(bursts, n_components)
    truth = None if X is None else _truth(X, len(statistics))
    chosen = _choose(methods, n_components, burst_std, random_state)
    rows = np.arange(len(statistics))
    if len(rows) > SAMPLE:
        rows = np.sort(np.random.RandomState(random_state).permutation(len(rows))[:SAMPLE])
    reference = _distances(statistics, truth, rows)
    judge = _Whitening(statistics)
    scores, embeddings = [], {}
    for name, method in chosen.items():
        model = clone(method)
        data: Any = statistics.means
        if isinstance(model, Baseline):
            data = statistics
        elif _takes_bursts(model):
            data = statistics if raw is None else raw
        start = time.perf_counter()
        try:
            with _peak_memory() as memory, warnings.catch_warnings():
                warnings.simplefilter("ignore", TrustWarning)  # the scores show it
                embedding = np.asarray(model.fit_transform(data))
        except (PylocaError, ValueError, RuntimeError) as error:
            scores.append(Score(name, error=str(error)))
            continue
        seconds = time.perf_counter() - start
        embeddings[name] = embedding
        near = _neighborhoods(reference, embedding[rows])
        exact = np.nan if truth is None else stress(truth, embedding, scale=True)
        scores.append(Score(name, exact, judge(embedding), *near, seconds, memory[0]))
    return Comparison(tuple(scores), embeddings, truth)


def _read(bursts: Data, n_components: int) -> tuple[Bursts | None, BurstStatistics]:
    if isinstance(bursts, BurstStatistics):
        return None, bursts
    raw = as_bursts(bursts)
    return raw, BurstStatistics.from_bursts(raw, max_dim=n_components)


def _takes_bursts(model: Any) -> bool:
    """Whether this is LOCA or a baseline, or a pipeline that begins with one."""
    if isinstance(model, Pipeline):
        return _takes_bursts(model.steps[0][1])
    return isinstance(model, (LOCA, Baseline))


def _truth(X: ArrayLike, n: int) -> Array:
    X = as_numbers("X", X, BurstError)
    if X.ndim != 2 or len(X) != n or not np.isfinite(X).all():
        raise BurstError(f"X has shape {X.shape}; expected finite latents of the {n} bursts, shape ({n}, d).")
    return X


def _choose(
    methods: Sequence[str] | Mapping[str, BaseEstimator] | None, d: int, burst_std: float | None, seed: int | None
) -> dict[str, Any]:
    if isinstance(methods, Mapping) and methods:
        return dict(methods)
    if isinstance(methods, str):
        methods = [methods]
    known: dict[str, Any] = {
        "LOCA": LOCA(d, burst_std=burst_std, random_state=seed),
        "BurstAlignment": BurstAlignment(d, burst_std=burst_std, random_state=seed),
        "IntrinsicIsomap": IntrinsicIsomap(d, burst_std=burst_std, random_state=seed),
        "RiemannianRelaxation": RiemannianRelaxation(d, burst_std=burst_std, random_state=seed),
        "AnisotropicDiffusionMaps": AnisotropicDiffusionMaps(d, random_state=seed),
        "DiffusionMaps": DiffusionMaps(d, random_state=seed),
        "Autoencoder": Autoencoder(d, random_state=seed),
    }
    if methods is None:
        return known
    unknown = [name for name in methods if name not in known]
    if unknown or not len(methods):
        raise ValueError(f"methods must be some of {', '.join(known)}; got {list(methods)!r}.")
    return {name: known[name] for name in methods}


def _distances(statistics: BurstStatistics, truth: Array | None, rows: NDArray[np.int64]) -> Array:
    """Compute distances among the sampled bursts, by which true neighbours are found."""
    if truth is None:
        return _pairwise(JointMahalanobis(statistics[rows]))
    return _pairwise(Euclidean(truth[rows]))


def _pairwise(metric: Metric) -> Array:
    squared = metric.squared(np.arange(len(metric)))
    np.fill_diagonal(squared, 0)
    return np.sqrt(squared)


def _neighborhoods(reference: Array, Z: Array) -> tuple[float, float, float]:
    """Compute (trustworthiness, continuity, recall) of an embedding of the sampled bursts."""
    k = min(NEIGHBORS, (len(Z) - 1) // 2)
    true, ours = _ranks(reference), _ranks(_pairwise(Euclidean(Z)))
    shared = ((true <= k) & (ours <= k)).sum() - len(Z)  # a point is not its own neighbour
    return _intrusion(true, ours, k), _intrusion(ours, true, k), float(shared / (k * len(Z)))


def _ranks(distances: Array) -> NDArray[np.int64]:
    """Return rank[i, j] = l if j is the l-th neighbour of i; 0 on the diagonal."""
    np.fill_diagonal(distances := distances.copy(), -1)
    return np.argsort(np.argsort(distances, axis=1, kind="stable"), axis=1, kind="stable")


def _intrusion(true: NDArray[np.int64], shown: NDArray[np.int64], k: int) -> float:
    """Return 1 − 2/(n k (2n − 3k − 1)) Σ max(0, true rank − k) over the k neighbours shown (Venna and Kaski 2001).

    This is trustworthiness; with the arguments exchanged, continuity.
    """
    n = len(true)
    over = np.where(shown <= k, np.maximum(true - k, 0), 0).sum()
    return float(1 - 2 * over / (n * k * (2 * n - 3 * k - 1)))


class _Whitening:
    """Whitening loss of any embedding, from the steps between neighbouring bursts in the frames of both."""

    def __init__(self, statistics: BurstStatistics) -> None:
        graph = connected_graph(statistics)
        self._edges = see_edges(statistics, graph, 1.0)

    def __call__(self, Z: Array) -> float:
        edges = self._edges
        steps = Z[edges.tails] - Z[edges.heads]  # (E, d)
        k = edges.from_head.shape[1]
        inner, outer = np.zeros((edges.n_nodes, k, k)), np.zeros((edges.n_nodes, k, Z.shape[1]))
        for ends, seen in ((edges.heads, edges.from_head), (edges.tails, edges.from_tail)):
            inner += gather(ends, edges.weights[:, None, None] * seen[:, :, None] * seen[:, None], edges.n_nodes)
            outer += gather(ends, edges.weights[:, None, None] * seen[:, :, None] * steps[:, None], edges.n_nodes)
        ridge = 1e-9 * np.trace(inner, axis1=1, axis2=2)[:, None, None] * np.eye(k)
        pushed = np.linalg.solve(inner + ridge, outer)  # (N, k, d): least squares of steps on what the bursts saw
        size = np.square(pushed).sum() / (len(pushed) * k)
        loss = likelihood_pushed(torch.from_numpy(pushed.transpose(1, 0, 2) / np.sqrt(size)))
        return float(loss.mean())


@contextmanager
def _peak_memory() -> Iterator[list[float]]:
    """Measure the growth of the process in megabytes, fifty times per second; nan where the system does not tell."""
    out = [np.nan]
    start = _resident()
    if start is None:
        yield out
        return
    peak, done = [start], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], _resident() or 0)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield out
    finally:
        done.set()
        watcher.join()
        out[0] = max(peak[0], _resident() or 0) / 1e6 - start / 1e6


def _resident() -> float | None:
    """Return the resident memory of the process in bytes (Linux), or None."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return 4096.0 * pages
