"""`Rescaling`: the factor that known distances gave an embedding, and how well they determine it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyloca._html import html_card

__all__ = ["Rescaling"]


@dataclass(frozen=True)
class Rescaling:
    """Factor by which an embedding was multiplied to agree with known distances; ``print`` shows it.

    Attributes
    ----------
    factor : float
    standard_error : float
        Of the factor. Two of them hold the truth with about 95 %.
    pairs : tuple of (id, id)
        Bursts whose distance was given.
    distances : tuple of float
        Given distances.
    ratios : tuple of float
        Each distance divided by that in the embedding before: one factor per pair.

    Examples
    --------
    >>> print(Rescaling(1.0342, 0.0041, ((0, 7),), (2.5,), (1.0342,)))
    factor 1.034 ± 0.004, from 1 distance
    """

    factor: float
    standard_error: float
    pairs: tuple[tuple[Any, Any], ...] = field(repr=False)
    distances: tuple[float, ...] = field(repr=False)
    ratios: tuple[float, ...] = field(repr=False)

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Rescaling:
        """Invert ``vars``, also of what went through JSON.

        Parameters
        ----------
        facts : dict

        Returns
        -------
        Rescaling
        """
        pairs = tuple((one, other) for one, other in facts["pairs"])
        return cls(
            **(facts | {"pairs": pairs, "distances": tuple(facts["distances"]), "ratios": tuple(facts["ratios"])})
        )

    @property
    def relative_error(self) -> float:
        """Standard error divided by the factor: that of every distance in the embedding, by its scale alone."""
        return self.standard_error / self.factor

    def __str__(self) -> str:
        if 1e-3 < self.factor < 1e6:
            # One figure of the error, or two if the first is 1.
            digits = min(max(0, -int(np.floor(np.log10(self.standard_error / 2)))), 12)
            number = f"{self.factor:.{digits}f} ± {self.standard_error:.{digits}f}"
        else:
            number = f"{self.factor:.4g} ± {self.standard_error:.1g}"
        return f"factor {number}, from {len(self.ratios)} distance{'s' * (len(self.ratios) != 1)}"

    def _repr_html_(self) -> str:
        rows = {
            "factor": f"{self.factor:.6g}",
            "standard error": f"{self.standard_error:.1g} ({self.relative_error:.2%})",
        }
        rows |= {
            f"{one} – {other}": f"{distance:.4g}, a factor of {ratio:.4g}"
            for (one, other), distance, ratio in zip(self.pairs, self.distances, self.ratios, strict=True)
        }
        return html_card("Rescaling", rows)
