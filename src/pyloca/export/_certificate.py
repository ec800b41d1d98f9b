"""How far an export is from PyTorch: measured by running it, and kept with it."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from pyloca.estimator import LOCA, Data, in_own_units, read_like, training_embedding

__all__ = ["Certificate", "Runner", "certify", "training_points"]

Array = NDArray[np.float64]

POINTS = 256  # of each kind, at most
WIDER = 0.25  # random points lie in the box of the training, widened by this part on every side


class Runner(Protocol):
    """The exported thing, running. A method returns None for what it does not compute."""

    name: str

    def encode(self, Y: Array) -> Array: ...

    def decode(self, Z: Array) -> Array: ...

    def jacobian(self, Y: Array) -> Array | None: ...

    def trust(self, Y: Array) -> Array: ...


@dataclass(frozen=True)
class Certificate:
    """Largest differences between an export and PyTorch.

    Attributes
    ----------
    target, dtype : str
        What was exported.
    reference : str
        What it was compared with.
    run_by : str
        What ran it; "" if nothing here could, and then there are no differences.
    reason : str
        Why nothing could.
    training : str
        What the points of the training are.
    points : tuple of int
        Number of points of the training, and of random points.
    differences : dict of str to tuple of float
        For encode, decode, jacobian and trust: at points of the training, and at random points around them. In parts of
        the largest absolute value of the same coordinate or sensor; those of trust as they are.

    Examples
    --------
    See `export`.
    """

    target: str
    dtype: str
    reference: str
    run_by: str
    reason: str
    training: str
    points: tuple[int, int]
    differences: dict[str, tuple[float, float]]

    @property
    def largest(self) -> float:
        """The largest difference of all; NaN if none was measured."""
        return max((max(pair) for pair in self.differences.values()), default=float("nan"))

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON.

        Returns
        -------
        dict
        """
        return asdict(self)

    def lines(self) -> list[str]:
        """Say it in words.

        Returns
        -------
        list of str
        """
        if not self.run_by:
            return [f"parity of {self.target} ({self.dtype}): not measured, {self.reason}."]
        shown = [f"{name} {a:.1e} and {b:.1e}" for name, (a, b) in self.differences.items()]
        return [
            f"parity of {self.target} ({self.dtype}, run by {self.run_by}) with {self.reference}: largest differences "
            f"at {self.points[0]} {self.training} and at {self.points[1]} random points around them, relative to the "
            "largest value of each coordinate or sensor (trust: as it is):",
            "  " + ", ".join(shown),
        ]


def certify(model: LOCA, runner: Runner | str, target: str, dtype: str, data: Data | None = None) -> Certificate:
    """Run an export beside PyTorch.

    Parameters
    ----------
    model : LOCA
        Fitted.
    runner : Runner or str
        The export; or why nothing here can run it.
    target, dtype : str
        What it is.
    data : bursts in any form, optional
        Those of the fit: a model keeps no measurements. None takes the decoded places of its training bursts.

    Returns
    -------
    Certificate
    """
    Y, Z, training = training_points(model, data)
    random = np.random.RandomState(0)
    reference = _in_float64(model)
    version = f"torch {torch.__version__} in float64"
    if isinstance(runner, str):
        return Certificate(target, dtype, version, "", runner, training, (0, 0), {})
    found: dict[str, list[float]] = {}
    for points, places in ((Y, Z), (_around(Y, random), _around(Z, random))):
        _, trust = reference.transform(points, return_trust=True)
        values, slopes = reference.encode_with_jacobian(points)
        for name, got, expected in (
            ("encode", runner.encode(points), values),
            ("decode", runner.decode(places), reference.decode(places)),
            ("jacobian", runner.jacobian(points), slopes),
            ("trust", runner.trust(points), trust),
        ):
            if got is None:
                continue
            if name == "trust":
                difference = np.abs(got - expected).max()
            else:
                # of each sensor or coordinate: units may differ by orders of magnitude
                size = np.abs(expected).reshape(-1, expected.shape[-1]).max(axis=0)
                difference = (np.abs(got - expected) / np.where(size > 0, size, 1.0)).max()
            found.setdefault(name, []).append(float(difference))
    pairs = {name: (pair[0], pair[1]) for name, pair in found.items()}
    return Certificate(target, dtype, version, runner.name, "", training, (len(Y), len(Y)), pairs)


def training_points(model: LOCA, data: Data | None) -> tuple[Array, Array, str]:
    """Return measurements and coordinates of up to `POINTS` training bursts, and what they are."""
    if data is None:
        places = training_embedding(model)
        Z = places[_some(len(places))]
        return model.decode(Z), Z, "decoded training places"
    seen = read_like(model, data)
    rows = _some(len(seen.statistics))
    return in_own_units(model, seen.statistics.means[rows]), seen.embed()[rows], "training means"


def _some(n: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n - 1, min(n, POINTS)).astype(np.int64))


def _around(points: Array, random: np.random.RandomState) -> Array:
    low, high = points.min(axis=0), points.max(axis=0)
    wider = WIDER * (high - low)
    return random.uniform(low - wider, high + wider, size=points.shape)


def _in_float64(model: LOCA) -> LOCA:
    """Return the model with networks in float64 and without names: points are arrays here."""
    double = copy.copy(model)
    double.encoder_ = copy.deepcopy(model.encoder_).double()
    double.decoder_ = copy.deepcopy(model.decoder_).double()
    if hasattr(double, "feature_names_in_"):
        del double.feature_names_in_
    return double
