"""The fitted model in a page: its weights and some data, as the script of the page reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors
from torch import nn

from pyloca._arguments import brief
from pyloca.estimator import LOCA, feature_label
from pyloca.metrics import RigidMap, calibrate
from pyloca.networks import MLP, Standardized, WithSkip
from pyloca.report._colours import Columns, as_columns
from pyloca.report._packing import pack

__all__ = ["Explorer", "explorer"]

Array = NDArray[np.float64]

SHOWN = 3000  # points behind the one that is dragged
EXACT = 200_000  # up to so many weights are stored in float64; more, in float32, which is enough for a page
MOST_WEIGHTS = 1_200_000  # 6 MB in float32 and base64
MOST_MEANS = 400_000  # numbers of measured means in a page: 2 MB; beyond, dots are coloured by decoded values
MOST_SENSORS = 1000  # in a menu
KINDS = ("measurement", "floor")


@dataclass(frozen=True)
class Explorer:
    """An interactive model on a page.

    Attributes
    ----------
    title : str
    data : mapping or None
        Goes into the page as JSON; None when the model cannot be explored.
    caption : str
    reason : str
        Why the model cannot be explored; "" when it can.

    Examples
    --------
    >>> Explorer("The model", reason="a page cannot run networks of your own").data is None
    True
    """

    title: str
    data: Mapping[str, Any] | None = None
    caption: str = ""
    reason: str = ""


def explorer(
    model: LOCA,
    means: ArrayLike,
    *,
    title: str,
    kind: str = "measurement",
    coordinates: ArrayLike | None = None,
    walls: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    labels: Sequence[str] | None = None,
    columns: Columns | None = None,
    maps: Mapping[str, Array] | None = None,
    image_shape: tuple[int, int] | None = None,
    motion: RigidMap | None = None,
    unit: str = "",
    caption: str = "",
    random_state: int = 0,
) -> Explorer:
    """Put a fitted model into a page: encoder and decoder run in the reader's browser.

    Parameters
    ----------
    model : LOCA
        Fitted. A model with the user's own modules cannot run in a page; the explorer then says so.
    means : (N, D) array
        Measurements to show with the model, such as the means of the bursts. At most 3000 of them are kept, drawn at
        random.
    title : str
    kind : {"measurement", "floor"}
        "measurement": drag a point of the embedding and see its decoded measurement. "floor": drag a point of the true
        latent plane; the measurement of the nearest of `coordinates` (nothing is interpolated) goes through the
        encoder, and the position it finds and its error are drawn.
    coordinates : (N, 2) array, optional
        True latent coordinates of the means, for "floor".
    walls : (r, 4) array, optional
        Rooms of the floor as (left, bottom, right, top); the outline of their union is drawn.
    names : sequence of D str, optional
        Names of the features; by default those of the model, with their units.
    ids : sequence of N labels, optional
        Ids of the bursts; by default their numbers.
    labels : sequence of N str, optional
        Further text for each burst, beside its id.
    columns : mapping of str to N numbers or texts, optional
        What the dots can be coloured by, beside the sensors.
    maps : mapping of str to (N,) array, optional
        The same for figures of the fit, > 0: with a logarithmic scale if they range over more than two decades.
    image_shape : (int, int), optional
        Rows and columns of measurements that are images, D = rows · columns.
    motion : RigidMap, optional
        From the embedding to the plane of `coordinates`; None calibrates it on all N of them.
    unit : str, default=""
        Unit of the embedding.
    caption : str, default=""
    random_state : int, default=0
        Seed of the points that are kept.

    Returns
    -------
    Explorer
        For a `Section`.

    Raises
    ------
    ValueError
        If `kind` is unknown, or a sequence does not have one entry per feature or per burst.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> data = datasets.mushroom(n_bursts=100, n_points=20, random_state=0)
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
    >>> explorer(model, data.Y, title="Mushroom").data["total"]
    100
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {brief(kind)}.")
    Y = np.asarray(means, dtype=np.float64)
    n, dim = Y.shape
    for name, values, length in (("names", names, dim), ("ids", ids, n), ("labels", labels, n)):
        if values is not None and len(values) != length:
            raise ValueError(f"{name} has {len(values)} entries; expected {length}.")
    if names is None and (hasattr(model, "feature_names_in_") or getattr(model, "units_", None) is not None):
        names = [feature_label(model, i) for i in range(dim)]
    if image_shape is not None and int(np.prod(image_shape)) != dim:
        raise ValueError(f"image_shape = {image_shape} does not hold D = {dim} numbers.")
    networks = {"encoder": model.encoder_, "decoder": model.decoder_}
    reason = _reason(networks)
    if reason:
        return Explorer(title, None, caption, reason)
    Z = model.encode(Y)
    rows = np.arange(n) if n <= SHOWN else np.sort(np.random.RandomState(random_state).choice(n, SHOWN, replace=False))
    data: dict[str, Any] = {name: _network(module) for name, module in networks.items()}
    data |= {
        "kind": kind,
        "points": pack(Z[rows], "f4"),
        "rows": rows.tolist(),
        "ids": None if ids is None else [str(label) for label in np.asarray(ids)[rows].tolist()],
        "labels": None if labels is None else [str(labels[row]) for row in rows],
        "total": n,
        "spacing": _spacing(Z[rows]),
        "low": pack(Y.min(axis=0), "f8"),
        "high": pack(Y.max(axis=0), "f8"),
        "names": None if names is None else [str(name) for name in names],
        "image_shape": None if image_shape is None else [int(size) for size in image_shape],
        "unit": unit,
        "mixed": _mixed(model),
        "sensors": dim <= MOST_SENSORS,
        "colours": _colours(as_columns(columns or {}, n), as_columns(maps or {}, n), rows),
    }
    # Measurements are drawn as a cloud if they have two or three features, else they only colour the dots; on a floor
    # every position needs its measurement.
    if kind == "floor" or dim in (2, 3):
        data["means"] = pack(Y[rows], "f8" if len(rows) * dim <= EXACT else "f4")
    elif len(rows) * dim <= MOST_MEANS:
        data["means"] = pack(Y[rows], "f4")
    if kind == "floor":
        data |= _floor(Z, coordinates, walls, motion, rows)
    return Explorer(title, data, caption)


def _mixed(model: LOCA) -> bool:
    """Whether features are of different kinds, so that they cannot share one axis."""
    units, scale = getattr(model, "units_", None), model.feature_scale_
    scale = scale[np.isfinite(scale)]  # the others were left out
    return (units is not None and len(set(units)) > 1) or bool(np.any(scale != scale[0]))


def _colours(
    columns: Mapping[str, NDArray[Any]], maps: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]
) -> list[dict[str, Any]]:
    """Collect what dots can be coloured by, beside the sensors."""
    stored: list[dict[str, Any]] = []
    for group, chosen in (("your columns", columns), ("quality of the fit", maps)):
        for name, values in chosen.items():
            entry: dict[str, Any] = {"group": group, "name": name}
            if values.dtype.kind == "f":
                entry |= {"values": pack(values[rows], "f8"), "log": group != "your columns" and _wide(values)}
            else:
                levels, codes = np.unique(values[rows], return_inverse=True)
                entry |= {"levels": levels.tolist(), "codes": codes.tolist()}
            stored.append(entry)
    return stored


def _wide(values: Array) -> bool:
    positive = values[np.isfinite(values) & (values > 0)]
    return len(positive) > 0 and float(np.quantile(positive, 0.99)) > 100 * float(np.quantile(positive, 0.01))


def _floor(
    Z: Array, coordinates: ArrayLike | None, walls: ArrayLike | None, motion: RigidMap | None, rows: NDArray[np.int64]
) -> dict[str, Any]:
    X = np.asarray(coordinates, dtype=np.float64)
    if X.shape != (len(Z), 2):
        raise ValueError(f'kind="floor" needs coordinates of shape ({len(Z)}, 2); got shape {X.shape}.')
    rooms = np.zeros((0, 4)) if walls is None else np.asarray(walls, dtype=np.float64)
    if rooms.ndim != 2 or rooms.shape[1] != 4:
        raise ValueError(f"walls must be rooms (left, bottom, right, top), shape (r, 4); got shape {rooms.shape}.")
    motion = calibrate(X, Z) if motion is None else motion
    return {
        "places": pack(X[rows], "f8"),
        "walls": rooms.tolist(),
        "motion": {"rotation": motion.rotation.tolist(), "shift": motion.shift.tolist(), "scale": motion.scale},
    }


def _reason(networks: Mapping[str, nn.Module]) -> str:
    """Explain why these networks cannot run in a page; "" when they can."""
    for name, module in networks.items():
        network = _bare(module)
        if not isinstance(network, MLP):
            own = network.network if isinstance(network, WithSkip) else network
            return (
                f"The {name} is a module of your own ({type(own).__name__}). A page can only run the networks that "
                "pyloca builds itself, so this model cannot be explored here; its figures and tables are complete."
            )
    size = sum(parameter.numel() for module in networks.values() for parameter in module.parameters())
    if size > MOST_WEIGHTS:
        return (
            f"Encoder and decoder have {size:,} weights; a page holds at most {MOST_WEIGHTS:,}, so this model cannot "
            "be explored here. Use fewer features, or smaller networks."
        )
    return ""


def _bare(module: nn.Module) -> nn.Module:
    """Find the network inside all scalings."""
    while isinstance(module, Standardized):
        module = module.network
    return module


def _scalings(module: nn.Module, n_in: int, n_out: int) -> tuple[Array, Array, Array, Array]:
    """Combine all scalings around a network: y ↦ out_shift + out_scale · network((y − in_shift) / in_scale)."""
    in_shift, in_scale, out_shift, out_scale = np.zeros(n_in), np.ones(n_in), np.zeros(n_out), np.ones(n_out)
    while isinstance(module, Standardized):  # from the outermost in
        finite = np.where(np.isinf(in_scale), 0.0, in_scale)  # a feature that is left out is 0 inside
        in_shift = in_shift + finite * module.in_shift.numpy()
        in_scale = in_scale * module.in_scale.numpy()
        out_shift = out_shift + out_scale * module.out_shift.numpy()
        out_scale = out_scale * module.out_scale.numpy()
        module = module.network
    return in_shift, in_scale, out_shift, out_scale


def _network(module: nn.Module) -> dict[str, Any]:
    network = _bare(module)
    assert isinstance(network, MLP)
    dtype = "f8" if sum(parameter.numel() for parameter in network.parameters()) <= EXACT else "f4"

    def linear(layer: nn.Linear) -> dict[str, Any]:
        bias = torch.zeros(layer.out_features) if layer.bias is None else layer.bias
        return {"weight": pack(layer.weight, dtype), "bias": pack(bias, "f8")}

    layers = network.linear_layers()
    last = layers[-1] if network.tail is None else network.tail
    ends = _scalings(module, layers[0].in_features, last.out_features)
    return {
        "activation": network.activation,
        "layers": [linear(layer) for layer in layers],
        "tail": None if network.tail is None else linear(network.tail),
        "skip": None if network.skip is None else linear(network.skip),
        **dict(zip(("in_shift", "in_scale", "out_shift", "out_scale"), (pack(end, "f8") for end in ends), strict=True)),
    }


def _spacing(Z: Array) -> float:
    """Compute the median distance from a point to its nearest neighbour."""
    if len(Z) < 2:
        return 0.0
    distances, _ = NearestNeighbors(n_neighbors=2).fit(Z).kneighbors(Z)
    return float(np.median(distances[:, 1]))
