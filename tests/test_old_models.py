"""Model files of earlier versions load and give the same numbers (tests/data/models_0_1: written by 0.1.0)."""

from pathlib import Path

import numpy as np
import pytest

from pyloca import LOCA

FOLDER = Path(__file__).parent / "data" / "models_0_1"


@pytest.mark.parametrize("name", ["mushroom", "named"])
def test_models_of_0_1_load(name):
    model = LOCA.load(FOLDER / f"{name}.safetensors")
    then = np.load(FOLDER / f"{name}.npz", allow_pickle=False)
    np.testing.assert_allclose(model.encode(then["Y"]), then["Z"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.decode(then["Z"]), then["decoded"], rtol=1e-12, atol=1e-12)


def test_models_of_0_1_keep_their_names():
    model = LOCA.load(FOLDER / "named.safetensors")
    assert list(model.feature_names_in_) == ["pressure", "temperature", "current"]
