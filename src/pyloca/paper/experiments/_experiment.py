"""What every experiment is made of: settings that cannot change, figures of merit, and a result."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pyloca.bursts import Bursts
from pyloca.errors import TrustWarning
from pyloca.estimator import LOCA

__all__ = ["Experiment", "Merit", "Result", "Settings", "fit_loca"]

QUICK_LAYERS = (20,)
QUICK_EPOCHS = 300


@dataclass(frozen=True)
class Merit:
    """One figure of merit; less is better.

    Attributes
    ----------
    value : float
    bar : float, optional
        What this project asks of the median over seeds. None: shown, not judged.
    paper : float, optional
        The paper's own figure. None where it shows a picture only.
    exact : bool
        The value is right only when it equals the bar.
    unit : str
    """

    value: float
    bar: float | None = None
    paper: float | None = None
    exact: bool = False
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Networks of the fits. The fast solver has its defaults; Algorithm 1 has the networks of the paper's appendix."""

    hidden_layers: tuple[int, ...] = (50, 50)
    paper_layers: tuple[int, ...] = (50, 50)
    paper_decoder: str = "tanh"
    paper_epochs: int | None = None  # None: until the paper's rule ends it

    def parameters(self, solver: str) -> dict[str, Any]:
        """Of `LOCA`, for one of its solvers."""
        if solver == "paper":
            networks = {"hidden_layers": self.paper_layers, "decoder_activation": self.paper_decoder}
            return {"solver": solver, **networks, "max_iter": self.paper_epochs}
        return {"solver": solver, "hidden_layers": self.hidden_layers}


@dataclass(frozen=True)
class Result:
    """What one run of an experiment gave.

    Attributes
    ----------
    name, seed, solver, quick
        Which run it was.
    settings : frozen dataclass
    figures : dict of Merit
    seconds : float
        Of the fits of LOCA.
    trust_warnings : tuple of str
    scene : dict
        Data, models and embeddings for the pictures.
    """

    name: str
    seed: int
    solver: str
    quick: bool
    settings: Any
    figures: Mapping[str, Merit]
    seconds: float
    trust_warnings: tuple[str, ...] = ()
    scene: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """All but the scene, for a JSON file."""
        return {
            "name": self.name,
            "seed": self.seed,
            "solver": self.solver,
            "quick": self.quick,
            "settings": asdict(self.settings),
            "figures": {name: asdict(merit) for name, merit in self.figures.items()},
            "seconds": self.seconds,
            "trust_warnings": list(self.trust_warnings),
        }


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper: where it stands there, what it shows, its settings, and how it is run.

    Attributes
    ----------
    name, section, title, about : str
    full, quick : frozen dataclass
        The paper's settings, and small ones for a look.
    run : callable
        (seed, solver="fast", quick=False) → Result.
    """

    name: str
    section: str
    title: str
    about: str
    full: Any
    quick: Any
    run: Callable[..., Result] = field(repr=False)

    def settings(self, quick: bool) -> dict[str, Any]:
        """As `Result.to_dict` has them."""
        return asdict(self.quick if quick else self.full)


def fit_loca(
    bursts: Bursts, n_components: int, burst_std: float | None, settings: Settings, solver: str, seed: int
) -> tuple[LOCA, float]:
    """A fitted model and its seconds. Doubts are in ``model.diagnostics_.warnings``, not warned about."""
    model = LOCA(n_components, burst_std=burst_std, random_state=seed, **settings.parameters(solver))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        model.fit(bursts)
    return model, time.perf_counter() - start
