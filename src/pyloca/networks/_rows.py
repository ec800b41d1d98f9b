"""A network on any number of points, in blocks."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pyloca._forks import COMPUTING
from pyloca._threads import after_fork

__all__ = ["apply_rows", "jacobian_rows"]

TILE = 192  # a multiple of the tiles into which matrix products are cut, also when 2, 4 or 8 threads share them
BLOCK = 12 * TILE  # rows at a time: few enough for the cache


@COMPUTING
def apply_rows(module: nn.Module, points: NDArray[np.float64], n_out: int) -> NDArray[np.float64]:
    """Run a module on rows, block by block.

    Every block consists of whole tiles, the last one being padded: a matrix product rounds the rows of an incomplete
    tile differently, and the coordinates of a point must not depend on the other points in the batch.

    Parameters
    ----------
    module : torch.nn.Module
    points : (…, a) array
    n_out : int
        Width of the output.

    Returns
    -------
    (…, n_out) array

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> apply_rows(nn.Linear(3, 2).double(), np.ones((4, 3)), 2).shape
    (4, 2)
    """
    after_fork()
    flat = points.reshape(-1, points.shape[-1])
    dtype = next(module.parameters()).dtype
    out = np.empty((len(flat), n_out))
    filled = torch.zeros(min(BLOCK, -(-len(flat) // TILE) * TILE), flat.shape[1], dtype=dtype)
    with torch.inference_mode():
        for start in range(0, len(flat), BLOCK):
            rows = flat[start : start + BLOCK]
            filled.numpy()[: len(rows)] = rows
            out[start : start + BLOCK] = module(filled)[: len(rows)].numpy()
    return out.reshape(*points.shape[:-1], n_out)


@COMPUTING
def jacobian_rows(module: nn.Module, points: NDArray[np.float64], n_out: int) -> NDArray[np.float64]:
    """Compute ∂ module / ∂ input at rows, block by block.

    Rows do not influence each other, so the gradient of the sum over rows of one output contains all of them.

    Parameters
    ----------
    module : torch.nn.Module
    points : (…, a) array
    n_out : int
        Width of the output.

    Returns
    -------
    (…, n_out, a) array

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> jacobian_rows(nn.Linear(3, 2).double(), np.ones((4, 3)), 2).shape
    (4, 2, 3)
    """
    after_fork()
    flat = points.reshape(-1, points.shape[-1])
    dtype = next(module.parameters()).dtype
    out = np.empty((len(flat), n_out, flat.shape[1]))
    for start in range(0, len(flat), BLOCK):
        rows = torch.tensor(flat[start : start + BLOCK], dtype=dtype, requires_grad=True)
        output = module(rows)
        for axis in range(n_out):
            (slope,) = torch.autograd.grad(output[:, axis].sum(), rows, retain_graph=axis + 1 < n_out)
            out[start : start + BLOCK, axis] = slope.numpy()
    return out.reshape(*points.shape[:-1], n_out, flat.shape[1])
