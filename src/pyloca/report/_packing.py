"""Arrays in a page: their little-endian bytes in base64, as the script of the page reads them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["pack"]


def pack(array: NDArray[Any] | torch.Tensor, dtype: str) -> dict[str, Any]:
    """Pack an array of numbers for JSON."""
    values = array.detach().numpy() if isinstance(array, torch.Tensor) else array
    raw = np.ascontiguousarray(values, dtype=f"<{dtype}")
    return {"dtype": dtype, "shape": list(raw.shape), "data": base64.b64encode(raw.tobytes()).decode()}
