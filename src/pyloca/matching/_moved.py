"""A fitted model in other coordinates: the rigid map goes into the weights, so that it is a plain model again."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from pyloca.errors import MatchError
from pyloca.estimator import LOCA
from pyloca.matching._rigid import inverse
from pyloca.metrics import RigidMap
from pyloca.networks import MLP, Standardized, in_units

__all__ = ["moved_model", "plain_networks"]

Array = NDArray[np.float64]


def plain_networks(model: LOCA) -> dict[str, Standardized]:
    """Return the encoder and decoder of `model`, for measurements as the fit saw them; refuse modules of your own."""
    scaled, found = not np.all(model.feature_scale_ == 1), {}
    for name in ("encoder", "decoder"):
        module = getattr(model, f"{name}_")
        module = module.network if scaled else module
        if not isinstance(module, Standardized) or not isinstance(module.network, MLP):
            raise MatchError(
                f"the {name} is a module of your own, into which a rigid map cannot be put. Use the Match instead, "
                "whose coordinates() applies it."
            )
        found[name] = module
    return found


def moved_model(model: LOCA, rigid: RigidMap) -> LOCA:
    """Return a copy of `model` whose coordinates are rigid(z), c z R + t, with everything that has their unit."""
    out = copy.copy(model)
    scale = None if np.all(model.feature_scale_ == 1) else model.feature_scale_
    inside = copy.deepcopy(plain_networks(model))
    out.encoder_ = in_units(_turned_encoder(inside["encoder"], rigid), in_scale=scale)
    shift = model.decoder_.out_shift.numpy() if scale is not None else 0.0
    decoder = _turned_decoder(inside["decoder"], inverse(rigid))
    out.decoder_ = in_units(decoder, out_scale=scale, out_shift=shift)
    factor = rigid.scale
    out.embedding_ = rigid.apply(model.embedding_)
    out.burst_std_ = factor * model.burst_std_
    out.trust_scale_ = replace(model.trust_scale_, gap=factor * model.trust_scale_.gap)
    gap = model.diagnostics_.gap
    if gap is not None:
        centre = tuple(rigid.apply(np.array([gap.centre]))[0].tolist())
        gap = replace(gap, centre=centre, radius=factor * gap.radius, spacing=factor * gap.spacing)
    out.diagnostics_ = replace(model.diagnostics_, gap=gap)
    return out


def _turned_encoder(encoder: Standardized, rigid: RigidMap) -> Standardized:
    """Turn s + o·net(x) into c (s + o·net(x)) R + t: R goes into the last layer, c and t into the scaling."""
    network = encoder.network
    assert isinstance(network, MLP)
    turn = torch.tensor(rigid.rotation)
    last = network.tail if network.tail is not None else network.linear_layers()[-1]
    with torch.no_grad():
        dtype = last.weight.dtype
        last.weight.copy_((turn.T @ last.weight.double()).to(dtype))
        last.bias.copy_((turn.T @ last.bias.double()).to(dtype))
        if network.skip is not None:
            network.skip.weight.copy_((turn.T @ network.skip.weight.double()).to(dtype))
    ends = _ends(encoder)
    out = rigid.apply(np.broadcast_to(ends[2], (len(rigid.shift),)))
    return Standardized(network, ends[0], ends[1], out, rigid.scale * ends[3]).to(dtype).eval()


def _turned_decoder(decoder: Standardized, back: RigidMap) -> Standardized:
    """Turn net((z − i)/s) into net((c z R + t − i)/s): R goes into the first layer, c and t into the scaling."""
    network = decoder.network
    assert isinstance(network, MLP)
    turn = torch.tensor(back.rotation)
    first = network.linear_layers()[0]
    with torch.no_grad():
        dtype = first.weight.dtype
        first.weight.copy_((first.weight.double() @ turn.T).to(dtype))
        if network.skip is not None:
            network.skip.weight.copy_((network.skip.weight.double() @ turn.T).to(dtype))
    ends = _ends(decoder)
    # (c z R + t − i)/s = (z − z0) R c / s with z0 = (i − t) Rᵀ / c
    origin = (np.broadcast_to(ends[0], (len(back.shift),)) - back.shift) @ back.rotation.T / back.scale
    return Standardized(network, origin, ends[1] / back.scale, ends[2], ends[3]).to(dtype).eval()


def _ends(module: Standardized) -> list[Array]:
    buffers = (module.in_shift, module.in_scale, module.out_shift, module.out_scale)
    return [buffer.double().cpu().numpy() for buffer in buffers]
