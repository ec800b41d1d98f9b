"""Calls of the public API with one or two arguments that are not what they should be."""

import functools
import traceback
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

import pyloca
from helpers import latent_bursts, planar_bursts
from pyloca import LOCA, Bursts, BurstStatistics
from pyloca.baselines import (
    AnisotropicDiffusionMaps,
    Autoencoder,
    BurstAlignment,
    DiffusionMaps,
    IntrinsicIsomap,
    RiemannianRelaxation,
    compare,
)
from pyloca.bursts import (
    as_bursts,
    drop_missing,
    from_function,
    from_image,
    from_image_patches,
    from_neighbors,
    from_positions,
    from_simulator,
    from_spots,
    from_table,
    from_time_series,
    on_manifold,
    sensor_array,
    split_indices,
)
from pyloca.diagnostics import agreement, diagnose, shuffle_test
from pyloca.errors import PylocaError, TrustWarning
from pyloca.inspection import inspect_bursts
from pyloca.matching import fuse, match, recalibrate, shared
from pyloca.metrics import calibrate, stress
from pyloca.selection import (
    estimate_burst_std,
    estimate_intrinsic_dim,
    select_n_components,
    suggest_n_components,
)

X, CLOUDS = latent_bursts(40, 12, 2, 0.01, 0)
DATA = planar_bursts(40, 12)[1]  # (40, 12, 3)
POINTS = DATA[:, 0]
SERIES = np.cumsum(np.random.RandomState(0).standard_normal((300, 2)), axis=0)
ROW, COLUMN = np.mgrid[:40, :40]
SPOTS = np.where((COLUMN % 10 - 5) ** 2 + (ROW % 10 - 5) ** 2 < 9, 0.0, 1.0)
FLASHES = np.stack([np.exp(-((COLUMN - 18 - i) ** 2 + (ROW - 20) ** 2) / 18) for i in range(4)])


def curved(points):
    """An instrument."""
    return np.column_stack([points, np.square(points).sum(axis=1)])


def drift(states, time, random):
    """A simulator."""
    return states + np.sqrt(time) * random.standard_normal(states.shape)


@functools.cache
def fitted(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LOCA(2, burst_std=0.01, hidden_layers=(4,), max_iter=5, random_state=seed).fit(DATA)


@functools.cache
def trained():
    """A model that is right, though not refined: an affine one. So few points are imprecise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return LOCA(2, burst_std=0.01, hidden_layers=(), random_state=0).fit(DATA)


def estimator(kind, method="fit_transform"):
    """A class as a function of its parameters and data."""

    def call(data, **parameters):
        return getattr(kind(**parameters), method)(data)

    call.__name__ = kind.__name__
    return call


def small_loca(data, **parameters):
    return LOCA(**{"hidden_layers": (4,), "max_iter": 3, **parameters}).fit(data).embedding_


def models(method):
    def call(data, **parameters):
        return getattr(fitted(), method)(data, **parameters)

    call.__name__ = f"LOCA.{method}"
    return call


# Function → arguments that work.
CALLS = [
    (Bursts, {"data": DATA, "ids": range(40), "feature_names": ["p", "q", "r"], "units": ["Pa", "", "K"],
              "burst_std": 0.1, "noise": [0.1, 0.1, 0.1], "effective_counts": np.full(40, 9.0), "perturbations": None}),
    (Bursts.from_ragged, {"points": DATA.reshape(-1, 3), "offsets": np.arange(0, 481, 12), "ids": None}),
    (Bursts.concatenate, {"parts": [DATA, DATA], "keys": ["a", "b"], "burst_std": 0.1}),
    (Bursts(DATA).scaled, {"scale": [1.0, 2.0, 3.0]}),
    (Bursts(DATA).split, {"fraction": 0.2, "seed": 0}),
    (Bursts(DATA).set_points_aside, {"bursts": [0, 1], "points": [2, 3]}),
    (as_bursts, {"data": DATA}),
    (drop_missing, {"data": DATA}),
    (split_indices, {"n": 40, "fraction": 0.2, "seed": 0}),
    (from_table, {"frame": {"burst_id": np.repeat(np.arange(10), 4), "p": np.arange(40.0), "q": np.arange(40.0)},
                  "burst_id": "burst_id", "columns": ["p"], "exclude": [], "units": {"p": "Pa"}, "missing": "raise"}),
    (from_function, {"f": curved, "latents": X, "burst_std": 0.1, "n_points": 6, "random_state": 0}),
    (on_manifold, {"f": curved, "latents": np.eye(3), "burst_std": 0.1, "n_points": 6, "random_state": 0}),
    (sensor_array, {"f": curved, "positions": X, "radius": 0.1, "n_receivers": 6}),
    (from_neighbors, {"points": X, "n_neighbors": 6}),
    (from_positions, {"positions": X, "readings": POINTS, "radius": 0.4, "anchors": None}),
    (from_time_series, {"series": SERIES, "window": 20, "lag": 1, "stride": 5, "diffusion": 1.0, "dt": 1.0}),
    (from_simulator, {"step": drift, "states": X[:6], "dt": 0.1, "n_points": 5, "random_state": 0}),
    (from_image, {"image": SPOTS, "threshold": 0.5, "eps": 1.5, "min_points": 5}),
    (from_image_patches, {"image": SPOTS, "positions": [[18.0, 19.0], [20.0, 21.0]], "window": 4, "jitter": 0.3,
                          "n_points": 6, "random_state": 0}),
    (from_spots, {"frames": FLASHES, "pixel_size": 0.5, "on_bad": "raise", "ids": None}),
    (BurstStatistics.from_bursts, {"bursts": DATA, "intrinsic_dim": 2, "max_dim": 2}),
    (BurstStatistics.from_covariances, {"means": POINTS, "covariances": np.tile(np.eye(3), (40, 1, 1)), "counts": 9,
                                        "intrinsic_dim": 2}),
    (BurstStatistics.from_jacobians, {"anchors": POINTS, "jacobians": np.tile(np.eye(3)[:, :2], (40, 1, 1))}),
    (stress, {"X": X, "Z": X + 1, "scale": True}),
    (calibrate, {"X": X, "Z": X + 1, "scale": True}),
    (calibrate(X, X).apply, {"Z": X}),
    (estimator(DiffusionMaps), {"data": POINTS, "n_components": 2, "bandwidth_factor": 1.0, "alpha": 1.0,
                                "random_state": 0}),
    (estimator(AnisotropicDiffusionMaps), {"data": DATA, "n_components": 2, "random_state": 0}),
    (estimator(IntrinsicIsomap), {"data": DATA, "n_components": 2, "burst_std": 0.1, "random_state": 0}),
    (estimator(RiemannianRelaxation), {"data": DATA, "n_components": 2, "init": X, "max_iter": 3}),
    (estimator(BurstAlignment), {"data": DATA, "n_components": 2, "burst_std": 0.1, "random_state": 0}),
    (estimator(Autoencoder), {"data": POINTS, "n_components": 2, "hidden_layers": (4,), "max_iter": 3,
                              "random_state": 0}),
    (compare, {"bursts": DATA, "X": X, "n_components": 2, "methods": ["BurstAlignment"], "burst_std": 0.01}),
    (estimate_burst_std, {"bursts": DATA, "pairs": [[0, 1], [2, 3]], "distances": [0.5, 0.5]}),
    (estimate_intrinsic_dim, {"bursts": DATA}),
    (suggest_n_components, {"bursts": DATA}),
    (select_n_components, {"bursts": DATA, "candidates": [2]}),
    (inspect_bursts, {"bursts": DATA, "n_components": 2, "burst_std": 0.1, "intrinsic_dim": 2, "feature_scale": "auto",
                      "measurement_noise": None, "max_strays": 0.01}),
    (small_loca, {"data": DATA, "n_components": 2, "burst_std": 0.01, "intrinsic_dim": 2, "solver": "fast",
                  "hidden_layers": (4,), "activation": "tanh", "decoder_activation": "elu", "feature_scale": [1, 1, 1],
                  "measurement_noise": 0.0001, "max_strays": 0.01, "validation_fraction": 0.1, "tol": 0.1,
                  "max_iter": 3, "random_state": 0, "device": "cpu", "verbose": 0, "callbacks": (), "encoder": None,
                  "decoder": None}),
    (models("transform"), {"data": POINTS}),
    (models("transform"), {"data": DATA, "return_trust": True}),
    (models("encode"), {"data": POINTS}),
    (models("decode"), {"data": X}),
    (models("inverse_transform"), {"data": X}),
    (models("encode_with_jacobian"), {"data": POINTS}),
    (models("score"), {"data": DATA}),
    (functools.partial(lambda pairs, distances: LOCA.rescale(_copy(), pairs, distances)),
     {"pairs": [(0, 1), (2, 3)], "distances": [0.5, 0.5]}),
    (functools.partial(diagnose, fitted()), {"bursts": DATA}),
    (functools.partial(agreement, fitted()), {"bursts": DATA, "n_splits": 2, "random_state": 0}),
    (functools.partial(shuffle_test, fitted()), {"bursts": DATA, "n_shuffles": 2, "random_state": 0}),
    (functools.partial(match, fitted(), fitted(1)), {"anchors": [(i, i) for i in range(0, 40, 5)], "weights": None,
                                                     "names": ("a", "b"), "unevenness": 3.0, "density": False}),
    (functools.partial(fuse, {"a": fitted(), "b": fitted(1)}),
     {"anchors": {("a", "b"): [(i, i) for i in range(0, 40, 5)]}, "random_state": 0}),
    (functools.partial(shared, fitted(), fitted(1)), {"anchors": (POINTS, POINTS)}),
    (functools.partial(recalibrate, trained()), {"new_bursts": DATA, "unevenness": 3.0}),
]  # fmt: skip


def _copy():
    import copy

    return copy.deepcopy(fitted())


PLAIN = [
    None, True, -1, 0, 1, 2, 7, 3.7, 1e-320, 1e308, -1e308, float("nan"), float("inf"), 10**30, "", "auto", "x", b"x",
    "a" * 100_000, [], [1], [[1, 2], [3]], {}, (), object(), {1, 2}, Fraction(1, 3), Decimal("0.1"), 1j, len, range(3),
    np.float32(2), np.int64(3), np.nan, np.array(5), np.empty(0), np.empty((0, 3)), np.empty((3, 0, 2)),
    np.array(["a", "b"]), np.array([1, None], dtype=object), np.array([1j, 2]), np.zeros(3, dtype="i4,f8"),
    np.array(["2020-01-01"], dtype="M8[D]"), np.ma.masked_array([1.0, 2.0], [True, False]), np.ma.masked,
    np.random.RandomState(0), np.random.default_rng(0), ["p", "p"], ["p", None], [float("nan")] * 3,
    list(range(100_000)), (0, 1), (1, 0), np.eye(2), np.zeros((40, 12, 3)), Path("nowhere.npy"), "nowhere.csv",
    np.full((40, 2), np.nan), np.arange(40), np.arange(40) - 20, np.full(40, 1e308),
]  # fmt: skip


def _one(array, place, value):
    out = array.astype(np.float64)
    out.flat[place % out.size] = value
    return out


def _first_of(array, n):
    return array[:n]


CHANGES = {
    "huge": lambda a: a * 1e307,
    "large": lambda a: a * 1e160,
    "tiny": lambda a: a * 1e-310,
    "small": lambda a: a * 1e-170,
    "far": lambda a: a + 1e17,
    "constant": np.zeros_like,
    "one column": lambda a: np.concatenate([a[..., :1], np.zeros_like(a[..., 1:])], axis=-1),
    "same columns": lambda a: np.repeat(a[..., :1], a.shape[-1], axis=-1),
    "same rows": lambda a: np.repeat(a[:1], len(a), axis=0),
    "one row": lambda a: _first_of(a, 1),
    "two rows": lambda a: _first_of(a, 2),
    "no rows": lambda a: _first_of(a, 0),
    "nan": lambda a: _one(a, 3, np.nan),
    "infinite": lambda a: _one(a, 5, np.inf),
    "one huge": lambda a: _one(a, 7, 1e308),
    "one large": lambda a: _one(a, 7, 1e120),
    "turned": lambda a: a.T,
    "new axis": lambda a: a[None],
    "flat": np.ravel,
    "half": lambda a: a.astype(np.float16),
    "integers": lambda a: (10 * a).astype(np.int64),
    "truths": lambda a: a > 0,
    "complex": lambda a: a + 1j,
    "text": lambda a: a.astype(str),
    "objects": lambda a: a.astype(object),
    "masked": lambda a: np.ma.masked_array(a, a > 0.5),
    "list": lambda a: a.tolist(),
    "duplicates": lambda a: np.concatenate([a, a]),
    "reversed": lambda a: a[::-1],
    "fortran": np.asfortranarray,
}


def nasty(value, pick):
    """A value in place of a good one; `pick` is a number ≥ 0."""
    if isinstance(value, np.ndarray) and pick % 2:
        names = list(CHANGES)
        with np.errstate(all="ignore"):
            return CHANGES[names[pick // 2 % len(names)]](value)
    return PLAIN[pick // 2 % len(PLAIN)]


def complaint(function, arguments):
    """What is wrong with a call, or "": a foreign error, a result that is not finite, a message without end."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = function(**arguments)
    except PylocaError as error:
        return "" if 0 < len(str(error)) < 5000 else f"a message of {len(str(error))} characters"
    except (ValueError, TypeError, ModuleNotFoundError) as error:
        return _foreign(error) or ("" if len(str(error)) < 5000 else f"a message of {len(str(error))} characters")
    except Exception as error:
        return _told(error)
    return "" if all(np.isfinite(numbers).all() for numbers in _numbers(result)) else "a result that is not finite"


def _foreign(error):
    """An error is ours when pyloca raised it, or scikit-learn's checks of arguments did."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    ours = str(Path(pyloca.__file__).parent)
    return "" if last.startswith(ours) or "sklearn/utils" in last or "sklearn/base" in last else _told(error)


def _told(error):
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "pyloca" in frame.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {where}: {str(error)[:150]}"


def _numbers(result):
    """Floats that a call returned."""
    if isinstance(result, (float, np.floating)):
        yield np.asarray(result)
    elif isinstance(result, np.ndarray) and result.dtype.kind == "f":
        yield result
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from _numbers(part)
    elif hasattr(result, "rotation"):
        yield from (result.rotation, result.shift, np.asarray(result.scale))
