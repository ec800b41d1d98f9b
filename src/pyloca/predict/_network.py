"""The networks of the estimator in NumPy: values and Jacobians, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAK", "SOFTPLUS_LINEAR", "Network", "network_from_arrays"]

Array = NDArray[np.float64]

LEAK = 0.01  # slope of leaky ReLU below zero, as in PyTorch
SOFTPLUS_LINEAR = 20.0  # PyTorch's softplus is the identity beyond this


class Activation(NamedTuple):
    """φ, and φ′ from u and h = φ(u)."""

    value: Callable[[Array], Array]
    slope: Callable[[Array, Array], Array]


def _sigmoid(u: Array) -> Array:
    return 0.5 + 0.5 * np.tanh(0.5 * u)  # exp would overflow


def _softplus(u: Array) -> Array:
    return np.where(u > SOFTPLUS_LINEAR, u, np.log1p(np.exp(np.minimum(u, SOFTPLUS_LINEAR))))


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation(np.tanh, lambda _, h: 1 - h * h),
    "sigmoid": Activation(_sigmoid, lambda _, h: h * (1 - h)),
    "softplus": Activation(_softplus, lambda u, _: np.where(u > SOFTPLUS_LINEAR, 1.0, _sigmoid(u))),
    "elu": Activation(lambda u: np.where(u > 0, u, np.expm1(np.minimum(u, 0))), lambda u, _: np.exp(np.minimum(u, 0))),
    "leaky_relu": Activation(lambda u: np.where(u > 0, u, LEAK * u), lambda u, _: np.where(u > 0, 1.0, LEAK)),
}


class Network(NamedTuple):
    """The map x ↦ out_shift + out_scale · f((x − in_shift) / in_scale) of a multilayer perceptron f.

    Attributes
    ----------
    bent : list of (weight, bias)
        Layers with an activation behind them; a weight is (outputs, inputs).
    flat : list of (weight, bias)
        One or two affine layers at the end.
    skip : (n_out, n_in) array or None
        A linear map from input to output beside the layers.
    activation : str
    in_shift, in_scale, out_shift, out_scale : array
        One number, or one per feature.

    Examples
    --------
    >>> import numpy as np
    >>> layer = (np.array([[1.0, 2.0]]), np.array([0.5]))
    >>> network = Network([], [layer], None, "tanh", np.zeros(2), np.ones(2), np.zeros(1), np.ones(1))
    >>> len(network.bent), network.flat[0][0].shape
    (0, (1, 2))
    """

    bent: list[tuple[Array, Array]]
    flat: list[tuple[Array, Array]]
    skip: Array | None
    activation: str
    in_shift: Array
    in_scale: Array
    out_shift: Array
    out_scale: Array

    @property
    def layers(self) -> list[tuple[Array, Array]]:
        """All layers, from input to output."""
        return [*self.bent, *self.flat]

    @property
    def n_in(self) -> int:
        """Width of the input."""
        return self.layers[0][0].shape[1]

    @property
    def n_out(self) -> int:
        """Width of the output."""
        return self.layers[-1][0].shape[0]

    @property
    def widest(self) -> int:
        """Width of the widest layer, input and output included."""
        return max(self.n_in, *(weight.shape[0] for weight, _ in self.layers))

    def apply(self, points: Array) -> Array:
        """Apply the network to rows.

        Parameters
        ----------
        points : (n, n_in) array

        Returns
        -------
        (n, n_out) array
        """
        h = x = (points - self.in_shift) / self.in_scale
        phi = ACTIVATIONS[self.activation].value
        for weight, bias in self.bent:
            h = phi(h @ weight.T + bias)
        for weight, bias in self.flat:
            h = h @ weight.T + bias
        if self.skip is not None:
            h = h + x @ self.skip.T
        return np.asarray(self.out_shift + self.out_scale * h)

    def jacobian(self, points: Array) -> Array:
        """Compute the derivative at rows.

        Parameters
        ----------
        points : (n, n_in) array

        Returns
        -------
        (n, n_out, n_in) array
        """
        h = (points - self.in_shift) / self.in_scale
        phi = ACTIVATIONS[self.activation]
        slopes = []
        for weight, bias in self.bent:
            u = h @ weight.T + bias
            h = phi.value(u)
            slopes.append(phi.slope(u, h))
        back = self.flat[-1][0] if len(self.flat) == 1 else self.flat[1][0] @ self.flat[0][0]
        back = np.broadcast_to(back, (len(points), *back.shape))  # (n, n_out, width)
        for (weight, _), slope in zip(reversed(self.bent), reversed(slopes), strict=True):
            back = (back * slope[:, None]) @ weight
        if self.skip is not None:
            back = back + self.skip
        return np.asarray(back * np.reshape(self.out_scale, (-1, 1)) / self.in_scale)


def network_from_arrays(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_in: int, n_out: int) -> Network:
    """Build a network from its entry in the header of a model file and its weights.

    Parameters
    ----------
    facts : mapping
    arrays : mapping of str to array
        As PyTorch names them: ``layers.0.weight``, after ``network.`` between scalings.
    n_in, n_out : int
        Widths that it must have.

    Returns
    -------
    Network

    Raises
    ------
    ValueError
        If a weight is missing, is not finite or has another shape than the header says.
    """
    scaled = bool(facts["standardized"])
    inside = "network." if scaled else ""
    sizes = [int(size) for size in facts["sizes"]]
    tail = facts["linear_tail"]
    if tail:
        sizes[-1:] = [sizes[-1] if tail is True else int(tail), sizes[-1]]  # the width before the last layer
    if (sizes[0], sizes[-1]) != (n_in, n_out):
        raise ValueError(f"a network has widths {sizes[0]} → {sizes[-1]}; expected {n_in} → {n_out}")
    if facts["activation"] not in ACTIVATIONS:
        raise ValueError(f"activation {facts['activation']!r} is unknown")

    def weights(name: str, *shape: int) -> Array:
        array = arrays[f"{inside}{name}"]
        if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}; expected {shape} finite numbers")
        return np.ascontiguousarray(array, dtype=np.float64)

    names = [f"layers.{i}" for i in range(len(sizes) - 1)]
    if tail:
        names[-1] = "tail"
    layers = [
        (weights(f"{name}.weight", b, a), weights(f"{name}.bias", b))
        for name, a, b in zip(names, sizes[:-1], sizes[1:], strict=True)
    ]
    ends = {"in_shift": (n_in, 0.0), "in_scale": (n_in, 1.0), "out_shift": (n_out, 0.0), "out_scale": (n_out, 1.0)}
    return Network(
        bent=layers[: -2 if tail else -1],
        flat=layers[-2 if tail else -1 :],
        skip=weights("skip.weight", n_out, n_in) if facts["skip"] else None,
        activation=str(facts["activation"]),
        **{name: _end(arrays[name] if scaled else np.array(plain), width) for name, (width, plain) in ends.items()},
    )


def _end(array: NDArray[Any], width: int) -> Array:
    if array.shape not in ((), (width,)) or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError(f"a scaling has shape {array.shape}; expected one or {width} finite numbers")
    return array.astype(np.float64)
