"""Settings of all tests: one thread, and property tests that draw the same examples every time."""

import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile(
    "pyloca",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # no clock: a busy machine is not a fault of the code
    derandomize=True,
    max_examples=25,
)
settings.load_profile("pyloca")
