"""What people would do now, with the same anchors: regression, CCA, Gromov–Wasserstein, Procrustes of embeddings.

Prediction errors are of the gauge's readings, in units of their spread. FOSCTTM is the fraction of samples closer than
the true match, in the joint space of each method; 0 is perfect and 0.5 is chance. Methods that match samples, and not
readings, match new readings of A with readings of B at other states, as nobody has those of the same ones. POT and
umap-learn are not among pyloca's dependencies: where they are not installed, they are left out and this is said.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.cross_decomposition import CCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.manifold import Isomap
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.neighbors import KNeighborsRegressor

from benchmarks.matching.anchored import PAIR, TESTED, _spread, quietly, rms
from benchmarks.matching.instruments import fitted, readings
from benchmarks.rows import Row
from pyloca.metrics import calibrate, foscttm

__all__ = ["ROWS"]

Array = NDArray[np.float64]
Answer = tuple[Array, Array, Array]  # predicted readings of B; A and B in the joint space


def _ridge(A: Array, B: Array, new: Array, truth: Array, seen: Array, _: int) -> Answer:
    size = np.median(cdist(A, A))
    grid = {"alpha": [1e-6, 1e-3, 0.1], "gamma": [f / size**2 for f in (0.1, 0.5, 2.0)]}
    found = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=LeaveOneOut(), scoring="neg_mean_squared_error")
    middle = B.mean(axis=0)
    values = found.fit(A, B - middle).predict(new) + middle
    return values, values, truth


def _cca(A: Array, B: Array, new: Array, truth: Array, seen: Array, _: int) -> Answer:
    found = CCA(2, max_iter=2000).fit(A, B)
    return found.predict(new), *found.transform(new, truth)


def _procrustes(
    embed: Callable[[Array], Array], A: Array, B: Array, new: Array, truth: Array, seen: Array, _: int
) -> Answer:
    """Embed anchors and new readings of each instrument; lay A onto B by the anchors; read off B's neighbours."""
    n = len(A)
    one, other = embed(np.concatenate([A, new])), embed(np.concatenate([B, seen, truth]))
    placed = calibrate(other[:n], one[:n], scale=True).apply(one[n:])
    known = n + len(seen)
    read = KNeighborsRegressor(5, weights="distance").fit(other[:known], np.concatenate([B, seen]))
    return read.predict(placed), placed, other[known:]


def _isomap(Y: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(Isomap(n_neighbors=10, n_components=2).fit_transform(Y))


def _umap(Y: Array) -> Array:
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(UMAP(random_state=0, n_jobs=1).fit_transform(Y), dtype=float)


def _wasserstein(A: Array, B: Array, new: Array, truth: Array, seen: Array, _: int) -> Answer:
    """Gromov–Wasserstein of the raw readings, no anchors: barycentric projection of A onto B."""
    import ot

    costs = [cdist(Y, Y) / cdist(Y, Y).max() for Y in (new, seen)]
    plan = ot.gromov.gromov_wasserstein(*costs, loss_fun="square_loss")
    values = plan @ seen / plan.sum(axis=1, keepdims=True)
    return values, values, truth


def _wasserstein_on_ours(A: Array, B: Array, new: Array, truth: Array, seen: Array, seed: int) -> Answer:
    import ot

    one, other = (fitted(name, "L", seed)[1].encode(Y) for name, Y in zip(PAIR, (new, seen), strict=True))
    plan = ot.gromov.gromov_wasserstein(cdist(one, one), cdist(other, other), loss_fun="square_loss")
    values = plan @ seen / plan.sum(axis=1, keepdims=True)
    return values, values, truth


def _ours(A: Array, B: Array, new: Array, truth: Array, seen: Array, seed: int) -> Answer:
    models = [fitted(name, "L", seed)[1] for name in PAIR]
    found = quietly(*models, (A, B), names=PAIR)
    told = found.predict(new, *PAIR)
    return told.values, told.coordinates, models[1].encode(truth)


METHODS: dict[str, tuple[Callable[[Array, Array, Array, Array, Array, int], Answer], str]] = {
    "ours": (_ours, ""),
    "kernel ridge": (_ridge, ""),
    "CCA": (_cca, ""),
    "Isomap + Procrustes": (partial(_procrustes, _isomap), ""),
    "UMAP + Procrustes": (partial(_procrustes, _umap), "umap"),
    "Gromov–Wasserstein, readings": (_wasserstein, "ot"),
    "Gromov–Wasserstein, our coordinates": (_wasserstein_on_ours, "ot"),
}


def _compare(seed: int, *, n: int) -> dict[str, Any]:
    """Our error over the best rival's; the errors, FOSCTTM and seconds of all."""
    _, Y = _spread(PAIR, "L", seed, n)
    _, new = readings(PAIR, "L", seed, TESTED, 2)
    seen = readings(PAIR, "L", seed, TESTED, 3)[1]["gauge"]
    A, B = (Y[name] for name in PAIR)
    fitted(PAIR[0], "L", seed), fitted(PAIR[1], "L", seed)  # a fit is not part of a match
    facts: dict[str, Any] = {}
    spread = rms(new["gauge"] - new["gauge"].mean(axis=0))
    for name, (method, needs) in METHODS.items():
        if needs and find_spec(needs) is None:
            facts[name] = f"{needs} is not installed"
            continue
        start = time.process_time()
        values, one, other = method(A, B, new["radio"], new["gauge"], seen, seed)
        seconds = time.process_time() - start
        facts[name] = [rms(values - new["gauge"]) / spread, foscttm(one, other), seconds]
    rivals = [told[0] for name, told in facts.items() if name != "ours" and not isinstance(told, str)]
    gauge = fitted(PAIR[1], "L", seed)[1]
    round_trip = rms(gauge.decode(gauge.encode(new["gauge"])) - new["gauge"]) / spread  # what no match can mend
    return {"value": facts["ours"][0] / min(rivals), **facts, "our round trip": round_trip}


ROWS: tuple[Row, ...] = tuple(
    Row(f"rivals: {n} anchors", 1.0, "our error / the best rival's", partial(_compare, n=n)) for n in (5, 10, 20)
)
