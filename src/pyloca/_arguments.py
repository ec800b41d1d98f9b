"""What numbers that a user gives must be, said in one way."""

from __future__ import annotations

import reprlib
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LARGEST",
    "as_numbers",
    "as_random",
    "brief",
    "check_count",
    "check_real",
    "check_seed",
    "is_finite",
    "is_integer",
    "is_positive",
    "refuse_masked",
    "refuse_text",
]

LARGEST = 1e100  # of a value that can be squared and summed
MOST = 2**31 - 1  # of things that are counted
LONG = 200  # characters of a value in a message


def is_integer(value: Any, least: int) -> bool:
    """Whether this is an integer of at least `least`; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_positive(value: Any) -> bool:
    """Whether this is a finite number > 0."""
    return is_finite(value) and float(value) > 0


def brief(value: Any) -> str:
    """Show a value in a message as Python does, but not a whole data set."""
    if isinstance(value, np.ndarray) or np.ndim(getattr(value, "shape", ())) > 1:
        return f"{type(value).__name__} of shape {np.shape(value)}"
    try:
        text = reprlib.repr(value) if isinstance(value, (str, bytes, list, tuple, dict, set)) else repr(value)
    except Exception:  # of a user's own class
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def refuse_masked(name: str, values: Any, error: type[ValueError] = ValueError) -> None:
    """Refuse a masked array, whose mask NumPy would forget."""
    if np.ma.isMaskedArray(values):
        raise error(
            f"{name} is a masked array, whose mask would be lost. Leave out what is masked (points of bursts with "
            "pyloca.bursts.drop_missing), or fill it: filled(np.nan) marks it as missing."
        )


def refuse_text(name: str, values: Any) -> None:
    """Refuse an array or a data frame that holds text, which scikit-learn would read as numbers, "1_5" as 15."""
    array = np.asarray(values)
    cells = array.ravel() if array.dtype.kind == "O" else ()
    if array.dtype.kind in "USV" or any(isinstance(cell, (str, bytes)) for cell in cells):
        raise ValueError(f"{name} holds text; expected real numbers. Convert it with astype(float).")


def as_numbers(name: str, values: Any, error: type[ValueError] = ValueError) -> NDArray[np.float64]:
    """Convert to an array of float64, without the silent liberties of NumPy.

    Parameters
    ----------
    name : str
        What the values are, for the message.
    values : array-like
        Masked arrays are refused, whose mask would be forgotten, and so are text and complex numbers.
    error : type
        What is raised: BurstError for data.

    Returns
    -------
    array of float64
    """
    refuse_masked(name, values, error)
    try:
        array = np.asarray(values)
    except Exception as caught:  # NumPy's, or those of a user's own class
        raise error(f"{name} is not an array of numbers ({brief(str(caught))[1:-1]}).") from caught
    if array.dtype.kind not in "fiu":
        objects = f" (of a {type(values).__name__})" if array.dtype.kind == "O" else ""
        raise error(f"{name} has dtype {array.dtype}{objects}; expected real numbers. Convert them with astype(float).")
    with np.errstate(over="ignore"):  # of a longer type; infinity is refused where values are looked at
        return array.astype(np.float64, copy=False)


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is not an integer of at least `least`, or counts more than can be."""
    if not is_integer(value, least) or value > MOST:
        most = f", at most {MOST:,}" if is_integer(value, least) else ""
        raise ValueError(f"{name} must be an integer of at least {least}{most}; got {brief(value)}.")


def check_seed(name: str, value: Any) -> None:
    """Refuse what is not a seed: an integer from 0 to 2³² − 1, a RandomState, or None."""
    known = value is None or isinstance(value, np.random.RandomState) or value is np.random
    if not known and not (is_integer(value, 0) and value < 2**32):
        raise ValueError(f"{name} must be an integer from 0 to 2**32 - 1, a RandomState, or None; got {brief(value)}.")


def as_random(random_state: int | np.random.RandomState | None, name: str = "random_state") -> np.random.RandomState:
    """Make a generator from a seed, or return the given one."""
    check_seed(name, random_state)
    return random_state if isinstance(random_state, np.random.RandomState) else np.random.RandomState(random_state)


def check_real(name: str, value: Any, *, positive: bool = True) -> None:
    """Refuse what is not a number > 0 whose square is one too, or ≥ 0 when it need not be positive."""
    if is_positive(value) and not 1 / LARGEST <= float(value) <= LARGEST:
        raise ValueError(f"{name} must be a number from {1 / LARGEST:g} to {LARGEST:g}; got {brief(value)}.")
    if not (is_positive(value) or (not positive and is_finite(value) and value == 0)):
        raise ValueError(f"{name} must be a number {'>' if positive else '≥'} 0; got {brief(value)}.")


def is_finite(value: Any) -> bool:
    """Whether this is a finite number; True and False are not."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except (OverflowError, ValueError, TypeError):  # an integer beyond floats, or a class of its own
        return False
