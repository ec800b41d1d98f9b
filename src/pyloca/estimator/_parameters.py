"""Checks of the parameters of `LOCA` that need no data."""

from __future__ import annotations

import copy
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import nn

from pyloca._arguments import LARGEST, as_numbers, brief, check_seed, is_integer, is_positive
from pyloca.networks import ACTIVATIONS
from pyloca.solvers import SOLVERS

__all__ = ["check_modules", "check_parameters", "choose_device"]


def check_parameters(p: Any) -> None:
    """Raise if a parameter of an estimator is invalid, whatever the data.

    Parameters
    ----------
    p : LOCA

    Raises
    ------
    ValueError
        If a parameter is invalid; the message names it, what was expected and what arrived.

    Examples
    --------
    >>> from pyloca import LOCA
    >>> check_parameters(LOCA(n_components=0))
    Traceback (most recent call last):
    ...
    ValueError: n_components must be an integer of at least 1, or "auto"; got 0.
    """

    def refuse(name: str, expected: str) -> None:
        raise ValueError(f"{name} must be {expected}; got {brief(getattr(p, name))}.")

    auto = isinstance(p.n_components, str) and p.n_components == "auto"
    if not auto and not is_integer(p.n_components, 1):
        refuse("n_components", 'an integer of at least 1, or "auto"')
    if p.burst_std is not None and not (is_positive(p.burst_std) and 1 / LARGEST <= float(p.burst_std) <= LARGEST):
        refuse("burst_std", "a number > 0, or None to estimate it")
    if p.intrinsic_dim is not None and not is_integer(p.intrinsic_dim, 1):
        refuse("intrinsic_dim", "an integer of at least 1, or None")
    if not isinstance(p.solver, str) or p.solver not in SOLVERS:
        refuse("solver", f"one of {', '.join(SOLVERS)}")
    if p.max_iter is not None and not is_integer(p.max_iter, 1):
        refuse("max_iter", "an integer of at least 1, or None")
    if p.tol is not None and (not isinstance(p.tol, Real) or not 0 <= float(p.tol) < 1):
        refuse("tol", "in [0, 1), or None")
    if not isinstance(p.validation_fraction, Real) or not 0 <= float(p.validation_fraction) < 1:
        refuse("validation_fraction", "in [0, 1)")
    layers = p.hidden_layers
    if isinstance(layers, str) or not hasattr(layers, "__iter__") or not all(is_integer(n, 1) for n in layers):
        refuse("hidden_layers", "integers of at least 1")
    for name in ("activation", "decoder_activation"):
        value = getattr(p, name)
        if value is None and name == "decoder_activation":
            continue
        if not isinstance(value, str) or value not in ACTIVATIONS:
            refuse(name, f"one of {', '.join(sorted(ACTIVATIONS))}")
    check_seed("random_state", p.random_state)
    _check_scale(p.feature_scale)
    noise = p.measurement_noise  # arrays are checked against the data
    if isinstance(noise, (str, bool)) and noise != "estimate":
        refuse("measurement_noise", 'None, "estimate", a number ≥ 0 or an array of these')
    if isinstance(noise, Real) and not (is_positive(noise) or noise == 0):
        refuse("measurement_noise", 'None, "estimate", a number ≥ 0 or an array of these')
    if not isinstance(p.max_strays, Real) or isinstance(p.max_strays, bool) or not 0 <= float(p.max_strays) < 0.5:
        refuse("max_strays", "a fraction of the bursts in [0, 0.5)")
    if isinstance(p.callbacks, str) or not hasattr(p.callbacks, "__iter__"):
        raise ValueError(f"callbacks must be a sequence of functions; got {brief(p.callbacks)}. Pass [function].")
    for name in ("encoder", "decoder"):
        if getattr(p, name) is not None and not isinstance(getattr(p, name), nn.Module):
            refuse(name, "an instance of torch.nn.Module, or None")


def _check_scale(scale: Any) -> None:
    if scale is None or (isinstance(scale, str) and scale == "auto"):
        return
    try:
        values = as_numbers("feature_scale", scale)
    except ValueError:
        values = np.empty(0)
    labelled = hasattr(scale, "iloc")  # the labels of a Series might say another order
    usable = values.ndim == 1 and len(values) > 0 and bool(np.all((values > 0) & (values < np.inf)))
    if isinstance(scale, str) or labelled or not usable:
        raise ValueError(
            f'feature_scale must be "auto", None, or a number > 0 for each feature, in order; got {brief(scale)}.'
        )


def check_modules(p: Any, n_features: int, d: int) -> None:
    """Try the user's modules on two points before any training: they must map (n, D) to (n, d) and back."""
    for name, module, n_in, n_out in (("encoder", p.encoder, n_features, d), ("decoder", p.decoder, d, n_features)):
        if module is None:
            continue
        copied = copy.deepcopy(module).double().eval()
        try:
            with torch.no_grad():
                output = copied(torch.zeros(2, n_in, dtype=torch.float64))
        except Exception as error:  # whatever the user's code raises means the same here
            raise ValueError(f"the {name} does not take points of shape (n, {n_in}): {error}") from error
        if not isinstance(output, torch.Tensor):
            raise ValueError(f"the {name} returns a {type(output).__name__}; expected one tensor (n, {n_out}).")
        if tuple(output.shape) != (2, n_out):
            raise ValueError(f"the {name} maps (2, {n_in}) to {tuple(output.shape)}; expected (2, {n_out}).")


def choose_device(device: str | torch.device, solver: str) -> torch.device:
    """Choose the requested device if it works here; "auto" takes the best one that the solver can use."""
    if isinstance(device, torch.device) or device != "auto":
        try:
            chosen = torch.device(device)
            if chosen.type != "mps":  # which has its own message below
                torch.empty(0, device=chosen)
        except (TypeError, RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"device {brief(device)} cannot be used here ({reason}).") from error
        if chosen.type == "mps" and solver == "fast":
            raise ValueError('the fast solver needs float64, which MPS lacks; use device="cpu" or solver="paper".')
        return chosen
    if torch.cuda.is_available():
        return torch.device("cuda")
    if solver == "paper" and torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
