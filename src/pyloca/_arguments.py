"""What numbers that a user gives must be, said in one way."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["check_count", "check_real", "is_finite", "is_integer", "is_positive"]


def is_integer(value: Any, least: int) -> bool:
    """Whether this is an integer of at least `least`; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_positive(value: Any) -> bool:
    """Whether this is a finite number > 0."""
    return is_finite(value) and float(value) > 0


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is not an integer of at least `least`."""
    if not is_integer(value, least):
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.")


def check_real(name: str, value: Any, *, positive: bool = True) -> None:
    """Refuse what is not a finite number > 0, or ≥ 0 when it need not be positive."""
    if not (is_positive(value) or (not positive and is_finite(value) and value == 0)):
        raise ValueError(f"{name} must be a number {'>' if positive else '≥'} 0; got {value!r}.")


def is_finite(value: Any) -> bool:
    """Whether this is a finite number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))
