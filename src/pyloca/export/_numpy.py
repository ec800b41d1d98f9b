"""A model file with what prediction needs and nothing else, for `pyloca.predict`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca._sealed import MODEL, MODEL_VERSIONS, seal, unseal
from pyloca.export._certificate import Certificate
from pyloca.export._numbers import as_dtype
from pyloca.predict import PREDICTOR, PREDICTOR_VERSION, Predictor

__all__ = ["PredictorRunner", "to_numpy"]

Array = NDArray[np.float64]

KEPT = ("networks", "feature_names", "units", "burst_std_known", "trust_scale", "libraries")
FITTED = ("burst_std_", "intrinsic_dim_", "n_components_", "n_features_in_")


def to_numpy(content: bytes, training: Array, dtype: str, certificate: Certificate | None = None) -> bytes:
    """Take from a model file what prediction needs: no ids, no history, no bursts that were held out or left out.

    Parameters
    ----------
    content : bytes
        Of the model file.
    training : (n, d) array
        Embedded bursts of the training.
    dtype : {"float64", "float32"}
        Of the weights; computations are in float64.
    certificate : Certificate, optional

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If a number does not fit into `dtype`.
    """
    header, arrays = unseal(content, MODEL, MODEL_VERSIONS, "memory")
    kept: dict[str, NDArray[Any]] = {
        name: as_dtype(array, dtype, name)
        for name, array in arrays.items()
        if name.startswith(("encoder.", "decoder."))
    }
    kept |= {name: arrays[name] for name in ("feature_scale", "feature_shift", "trust_scores") if name in arrays}
    kept |= {
        "embedding": as_dtype(training, dtype, "the embedding"),
        "validation_indices": np.zeros(0, dtype=np.int64),
    }
    findings = [{"message": finding["message"]} for finding in header["diagnostics"]["findings"]]
    slim: dict[str, Any] = {name: header[name] for name in KEPT if name in header}
    slim["networks"] = {name: facts | {"dtype": dtype} for name, facts in header["networks"].items()}
    slim |= {
        "version": PREDICTOR_VERSION,
        "fitted": {name: header["fitted"][name] for name in FITTED},
        "diagnostics": {"findings": findings},
        "certificate": None if certificate is None else certificate.to_dict(),
    }
    return seal(PREDICTOR, slim, kept)


class PredictorRunner:
    """A predictor as a certificate runs it: with points as arrays."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self.name = f"numpy {np.__version__}"

    def encode(self, Y: Array) -> Array:
        """Run encode."""
        return self._predictor.encode(Y)

    def decode(self, Z: Array) -> Array:
        """Run decode."""
        return self._predictor.decode(Z)

    def jacobian(self, Y: Array) -> Array:
        """Run encode_with_jacobian."""
        return self._predictor.encode_with_jacobian(Y)[1]

    def trust(self, Y: Array) -> Array:
        """Run trust."""
        return self._predictor.trust(Y)
