"""Parts of every experiment: frozen settings, figures of merit, and a result."""

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
    """One figure of merit; smaller is better.

    Attributes
    ----------
    value : float
    bar : float, optional
        Largest acceptable median over seeds; None: shown but not judged.
    paper : float, optional
        The paper's value; None if it shows a figure only.
    exact : bool
        Whether the value must equal the bar.
    unit : str

    Examples
    --------
    >>> Merit(2e-6, bar=3e-6, paper=1.5e-5).value
    2e-06
    """

    value: float
    bar: float | None = None
    paper: float | None = None
    exact: bool = False
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Networks: the defaults for the fast solver, those of the paper's appendix for Algorithm 1."""

    hidden_layers: tuple[int, ...] = (50, 50)
    paper_layers: tuple[int, ...] = (50, 50)
    paper_decoder: str = "tanh"
    paper_epochs: int | None = None  # None: until the paper's stopping rule applies

    def parameters(self, solver: str) -> dict[str, Any]:
        """Return the parameters of `LOCA` for one of its solvers."""
        if solver == "paper":
            networks = {"hidden_layers": self.paper_layers, "decoder_activation": self.paper_decoder}
            return {"solver": solver, **networks, "max_iter": self.paper_epochs}
        return {"solver": solver, "hidden_layers": self.hidden_layers}


@dataclass(frozen=True)
class Result:
    """Result of one run of an experiment.

    Attributes
    ----------
    name, seed, solver, quick
        Identify the run.
    settings : frozen dataclass
    figures : dict of Merit
        Figures of merit, by name.
    seconds : float
        Duration of the fits of LOCA.
    trust_warnings : tuple of str
    scene : dict
        Data, models and embeddings from which figures are drawn.

    Examples
    --------
    >>> from pyloca.paper.experiments import EXPERIMENTS
    >>> result = EXPERIMENTS["mushroom"].run(seed=0, quick=True)
    >>> result.name, result.seed
    ('mushroom', 0)
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
        """Return everything but the scene, for a JSON file.

        Returns
        -------
        dict
        """
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
    """An experiment of the paper.

    Attributes
    ----------
    name : str
    section : str
        Where it is in the paper.
    title, about : str
        What it shows.
    full, quick : frozen dataclass
        The paper's settings, and smaller ones for a quick run.
    run : callable
        ``run(seed, solver="fast", quick=False)`` returns a `Result`.

    Examples
    --------
    >>> from pyloca.paper.experiments import EXPERIMENTS
    >>> EXPERIMENTS["mushroom"].section
    '6.1'
    >>> EXPERIMENTS["mushroom"].settings(quick=True)["n_bursts"]
    300
    """

    name: str
    section: str
    title: str
    about: str
    full: Any
    quick: Any
    run: Callable[..., Result] = field(repr=False)

    def settings(self, quick: bool) -> dict[str, Any]:
        """Return the settings as in `Result.to_dict`.

        Parameters
        ----------
        quick : bool

        Returns
        -------
        dict
        """
        return asdict(self.quick if quick else self.full)


def fit_loca(
    bursts: Bursts, n_components: int, burst_std: float | None, settings: Settings, solver: str, seed: int
) -> tuple[LOCA, float]:
    """Fit a model; return it and the seconds. Trust warnings are only in ``model.diagnostics_.warnings``."""
    model = LOCA(n_components, burst_std=burst_std, random_state=seed, **settings.parameters(solver))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        model.fit(bursts)
    return model, time.perf_counter() - start
