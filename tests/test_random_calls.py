"""Whatever the public API is given: its own errors in few words, or finite results."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyloca import BurstError, TrustWarning
from pyloca._arguments import as_numbers, brief
from random_calls import CALLS, CHANGES, POINTS, complaint, nasty

EXAMPLES = int(os.environ.get("PYLOCA_RANDOM_CALLS", "250"))  # more of them by hand, now and then


def name_of(call):
    return getattr(call, "__name__", None) or call.func.__name__


@pytest.mark.parametrize(("call", "arguments"), CALLS, ids=[name_of(call) for call, _ in CALLS])
def test_the_arguments_are_good(call, arguments):
    """Otherwise the test below would show nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        call(**arguments)


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_nasty_arguments(data):
    call, arguments = data.draw(st.sampled_from(CALLS))
    names = data.draw(st.lists(st.sampled_from(sorted(arguments)), min_size=1, max_size=2, unique=True))
    changed = {name: nasty(arguments[name], data.draw(st.integers(0, 2000))) for name in names}
    found = complaint(call, {**arguments, **changed})
    assert not found, f"{name_of(call)}({brief(changed)}): {found}"


@pytest.mark.parametrize("change", ["masked", "complex", "text", "objects", "truths"])
def test_no_silent_conversion(change):
    with pytest.raises(BurstError, match=r"points (is a masked array|has dtype .*; expected real numbers)"):
        as_numbers("points", CHANGES[change](POINTS), BurstError)
    assert as_numbers("points", POINTS.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("value", [list(range(10**6)), "x" * 10**6, np.zeros(10**6), {1: "y" * 10**6}, object()])
def test_a_value_in_a_message_is_short(value):
    assert 0 < len(brief(value)) <= 201
