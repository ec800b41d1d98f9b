"""`Diagnostics`: what was measured of a fit, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyloca._html import html_card, text_card
from pyloca.findings._gaps import Gap
from pyloca.thresholds import FEW, HEAVY, SPARSE, SUSPECT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Diagnostics", "Finding", "Stray"]

Array = NDArray[np.float64]

UNKNOWABLE = (
    "Not knowable from bursts, and not claimed: the scale comes from σ alone; bursts with the same anisotropy "
    "everywhere are a linear change of the coordinates, and a size that changes slowly often looks like another change "
    "of coordinates; parts of the latent space with identical readings look like one part; with more components than "
    "intrinsic dimensions, the shape in space where it can bend without stretching, as curves and open surfaces can."
)


@dataclass(frozen=True)
class Finding:
    """One reason not to believe a fit.

    Attributes
    ----------
    name : str
        Identifier for programs: "columns", "few_points", "scale", "unrelated", "crossing", "outliers", "noise",
        "units", "more_tangents", "large_bursts", "collapsed", "curved", "uneven_size", "uneven_shape", "folded",
        "poor_fit", "round_trip", "unfinished", "distances", "no_displacement", "clipped", "bendable", "few_bursts",
        "imprecise", "path".
    message : str
        What is wrong, the number that shows it, and what to do.
    bursts : tuple of int
        Positions in the data of the bursts that show it most, if only some do.

    Examples
    --------
    >>> Finding("scale", "all bursts are 1.2 times too large; σ is probably 0.012, not 0.01.").name
    'scale'
    """

    name: str
    message: str
    bursts: tuple[int, ...] = ()


class Stray(NamedTuple):
    """A burst that was left out of the training.

    Attributes
    ----------
    burst : int
        Its position in the data.
    reason : str
        Why, such as "has no spread: its points are identical, to rounding".

    Examples
    --------
    >>> Stray(17, "lies apart: its nearest neighbour is 200 burst sizes away").burst
    17
    """

    burst: int
    reason: str


@dataclass(frozen=True)
class Diagnostics:
    """Whitening of bursts that the training did not see (of all, when none were held out), and what it means.

    Attributes
    ----------
    whitening_loss, median_loss : float
        Mean and median over bursts of tr G − log det G − k.
    sampling_floor : float
        The part that sampling alone explains, k(k+1)/2 divided by M − 1, on average, times `tails`.
    stretch : (float, float)
        5 % and 95 % quantiles of the factors by which the encoder stretches tangents: (1, 1) is an isometry.
    findings : tuple of Finding
        Reasons not to believe the fit, the most likely cause first; empty when there is none.
    restarts : tuple of str
        What was wrong with each start that the solver abandoned before this one.
    round_trip : (float, float) or None
        Median and largest error of burst means that went through encoder and decoder, as fractions of the data's size.
    sampling_stretch : (float, float) or None
        What `stretch` would be for a perfect encoder, by sampling alone.
    gap : Gap or None
        The largest hole or notch in the embedding; None when there is no wide one, or when it was not looked for
        (d > k or d > 3).
    set_aside : str
        How many points were set aside as spikes, and where, in words; empty when none were.
    noise : str
        The measurement noise that was taken into account, in words; empty when none was.
    clipped : str
        Which bursts are clipped and were used all the same, in words; empty when none were.
    shape : str
        What is not determined of the shape of a closed curve or tube in space (d > k), or how many components hold
        nothing, in words; empty otherwise.
    tails : float
        How many times as much sampling explains as for Gaussian bursts: more where points are one-sided or have heavy
        tails, by the bursts' own fourth moments.
    precision : float or None
        Standard error of a typical distance as a part of it, by the number of bursts and points, their size, and the
        bends between them; None where something else is wrong.
    tangents : str
        How k was chosen where bursts left it open, and why; empty where they did not.
    notes : tuple of str
        What was done with the data before the fit, such as columns that were left out, and where training ran if there
        were Dask workers; no reason for distrust.
    losses, p_values, conditions, errors, trust : (N,) array
        Maps to draw over the embedding: the whitening loss of every burst, its probability by sampling alone, the ratio
        of its longest stretch to its shortest, its round-trip error, and the trust in its mean. The first three are
        nan and the trust is 0 for bursts that were left out.
    ids : (N,) array
        Ids of the bursts.
    strays : tuple of Stray
        Bursts that were left out of the training.

    Examples
    --------
    >>> found = Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0), (Finding("scale", "all bursts are too large."),))
    >>> found.warnings
    ('all bursts are too large.',)
    """

    whitening_loss: float
    median_loss: float
    sampling_floor: float
    stretch: tuple[float, float]
    findings: tuple[Finding, ...] = ()
    restarts: tuple[str, ...] = ()
    round_trip: tuple[float, float] | None = None
    sampling_stretch: tuple[float, float] | None = None
    gap: Gap | None = None
    set_aside: str = ""
    noise: str = ""
    clipped: str = ""
    shape: str = ""
    tails: float = 1.0
    precision: float | None = None
    tangents: str = ""
    notes: tuple[str, ...] = ()
    losses: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    p_values: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    conditions: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    errors: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    trust: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    ids: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)
    strays: tuple[Stray, ...] = ()

    ARRAYS = ("losses", "p_values", "conditions", "errors", "trust")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Messages of the findings."""
        return tuple(finding.message for finding in self.findings)

    @property
    def median_of_all(self) -> float:
        """Median whitening loss of all bursts, held out or not: what `poor_fit` and `scale` are decided by."""
        return float(np.nanmedian(self.losses)) if np.isfinite(self.losses).any() else self.median_loss

    @property
    def suspects(self) -> NDArray[np.int64]:
        """Positions of bursts whose loss sampling does not explain, the worst first."""
        rows = np.flatnonzero(self.p_values < SUSPECT)
        return rows[np.argsort(-self.losses[rows], kind="stable")]

    def _called(self, rows: NDArray[np.int64]) -> list[Any]:
        return self.ids[rows].tolist() if len(self.ids) else rows.tolist()

    def with_finding(self, finding: Finding) -> Diagnostics:
        """Return a copy with one more finding.

        Parameters
        ----------
        finding : Finding

        Returns
        -------
        Diagnostics
        """
        return replace(self, findings=(*self.findings, finding))

    def among(
        self, rows: NDArray[np.int64], strays: Mapping[int, str], ids: NDArray[Any], errors: Array
    ) -> Diagnostics:
        """Lay out the judgement of some bursts over all, of which the others were left out.

        Parameters
        ----------
        rows : (n,) array of int
            Positions of the bursts that were judged.
        strays : mapping of int to str
            Positions of the others, and why they were left out.
        ids : (N,) array
            Ids of all bursts.
        errors : (N − n,) array
            Round-trip errors of the strays.

        Returns
        -------
        Diagnostics

        Examples
        --------
        >>> judged = Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0), losses=np.array([0.1, 0.2]))
        >>> judged.among(np.array([0, 2]), {1: "has 1 point"}, np.arange(3), np.array([5.0])).losses
        array([0.1, nan, 0.2])
        """
        lost = np.array(list(strays), dtype=np.int64)
        missing: dict[str, Any] = dict.fromkeys(("losses", "p_values", "conditions"), np.nan)
        missing |= {"errors": errors, "trust": 0.0}
        maps: dict[str, Any] = {}
        for name, value in missing.items():
            if len(getattr(self, name)):
                maps[name] = np.empty(len(ids))
                maps[name][rows], maps[name][lost] = getattr(self, name), value
        findings = tuple(replace(f, bursts=tuple(int(rows[i]) for i in f.bursts)) for f in self.findings)
        told = tuple(Stray(int(row), why) for row, why in strays.items())
        return replace(self, findings=findings, strays=told, ids=ids, **maps)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the arrays, ready for JSON.

        Returns
        -------
        dict
        """
        facts = {name: value for name, value in vars(self).items() if name not in (*self.ARRAYS, "ids")}
        gap = None if self.gap is None else vars(self.gap)
        return facts | {
            "findings": [vars(finding) for finding in self.findings],
            "gap": gap,
            "strays": [stray._asdict() for stray in self.strays],
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any], **arrays: Array) -> Diagnostics:
        """Invert `to_dict`.

        Parameters
        ----------
        facts : dict
            As `to_dict` returns it, or as a file of an earlier version has it.
        **arrays : (N,) array
            The maps, and ``ids``.

        Returns
        -------
        Diagnostics
        """
        findings = tuple(
            Finding(str(f["name"]), str(f["message"]), tuple(int(i) for i in f["bursts"])) for f in facts["findings"]
        )
        lists: dict[str, Any] = {name: tuple(facts[name]) for name in ("stretch", "restarts")}
        # files of earlier versions do not have these
        gap = facts.get("gap")
        pairs = {name: facts.get(name) for name in ("round_trip", "sampling_stretch")}
        lists |= {name: None if pair is None else tuple(pair) for name, pair in pairs.items()}
        lists |= {
            "findings": findings,
            "strays": tuple(Stray(int(s["burst"]), str(s["reason"])) for s in facts.get("strays", ())),
            "notes": tuple(facts.get("notes", ())),
            "gap": None if gap is None else Gap(tuple(gap["centre"]), gap["radius"], gap["spacing"]),
        }
        return cls(**(facts | lists | arrays))

    def _facts(self) -> list[tuple[str, str]]:
        """List the lines of the summary, each a name and a text."""
        facts = [
            (
                "whitening loss",
                f"{self.whitening_loss:.3g} (sampling alone leaves {self.sampling_floor:.3g}); "
                f"{self.median_of_all:.3g} is the median of all bursts",
            ),
            (
                "local stretch",
                f"{_range(self.stretch)} (5 % and 95 % of all directions"
                + (
                    ")" if self.sampling_stretch is None else f"; sampling alone gives {_range(self.sampling_stretch)})"
                ),
            ),
        ]
        if self.precision is not None:
            heavy = "; the bursts have heavy tails or lean to one side, so that it may be some times as much"
            facts.append(
                (
                    "precision",
                    f"distances have a standard error of about {self.precision:.1%}, by the number of bursts and "
                    "points, their size, and the bends between them" + (heavy if self.tails > HEAVY else ""),
                )
            )
        if self.round_trip is not None:
            middle, most = self.round_trip
            facts.append(("round trip", f"{middle:.2%} of the size of the data (median), {most:.2%} (worst burst)"))
        if self.gap is not None:
            facts.append(("largest gap", str(self.gap)))
        if self.shape:
            facts.append(("shape", self.shape))
        if self.noise:
            facts.append(("noise", self.noise))
        if self.strays:
            facts.append(("left out", self.left_out()))
        if len(self.p_values):
            worst = ", ".join(str(i) for i in self._called(self.suspects[:5]))
            facts.append(
                (
                    "suspect bursts",
                    f"{len(self.suspects)} of {len(self.p_values) - len(self.strays)} that sampling does not explain"
                    + (f" (worst: {worst})" if worst else ""),
                )
            )
        if self.restarts:
            times = {1: "once", 2: "twice"}.get(len(self.restarts), f"{len(self.restarts)} times")
            facts.append(("restarted", f"{times}, from another alignment (before it: {', '.join(self.restarts)})"))
        if self.tangents:
            facts.append(("tangents", self.tangents))
        facts += [("training" if note.startswith("trained ") else "columns", note) for note in self.notes]
        facts += self.verdict()
        return [*facts, ("note", UNKNOWABLE)]

    def left_out(self, most: int = 5) -> str:
        """Name the bursts that were left out of the training, and why.

        Parameters
        ----------
        most : int, default=5
            Further ones are only counted.

        Returns
        -------
        str
            "" if there are none.

        Examples
        --------
        >>> Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0), losses=np.zeros(60), strays=(Stray(7, "has 1 point"),)).left_out()
        '1 of 60 bursts is not used: 7 (has 1 point)'
        """
        if not self.strays:
            return ""
        named = zip(self._called(np.array([stray.burst for stray in self.strays[:most]])), self.strays, strict=False)
        more = f" and {len(self.strays) - most} more" if len(self.strays) > most else ""
        verb = "is" if len(self.strays) == 1 else "are"
        listed = "; ".join(f"{name!r} ({stray.reason})" for name, stray in named)
        return f"{len(self.strays)} of {len(self.losses)} bursts {verb} not used: {listed}{more}"

    def verdict(self) -> list[tuple[str, str]]:
        """Return the findings, or a statement that there are none, as pairs (name, sentence).

        Returns
        -------
        list of (str, str)

        Examples
        --------
        >>> Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0)).verdict()
        [('verdict', 'no fault found')]
        """
        aside = [("set aside", self.set_aside)] if self.set_aside else []
        if self.clipped and not any(finding.name == "clipped" for finding in self.findings):
            aside.append(("clipped", self.clipped))
        if self.findings:
            return [*aside, *(("WARNING", finding.message) for finding in self.findings)]
        but = ", but look at the suspect bursts" if len(self.suspects) else ""
        facts = [*aside, ("verdict", f"no fault found{but}")]
        n = len(self.losses) - len(self.strays)
        if 0 < n < SPARSE:
            what = "shuffled bursts and crossing sheets"
            what = f"folds, outliers, uneven sizes, {what}" if n < FEW else what
            facts.append(
                (
                    "not checked",
                    f"{n} bursts are too few to compare neighbours, which would show {what}",
                )
            )
        return facts

    def __str__(self) -> str:
        return text_card(self._facts())

    def _repr_html_(self) -> str:
        return html_card("Diagnostics", self._facts())

    def plot(self) -> Figure:
        """Draw whitening losses against sampling, stretches, and the round trip.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ValueError
            If the maps are missing, as in model files of earlier versions.
        """
        if not len(self.losses):
            raise ValueError(
                "these Diagnostics have no value per burst (a model file of an earlier version); use "
                "pyloca.diagnostics.diagnose(model, bursts).plot()."
            )
        from pyloca.plots import plot_diagnostics

        sound = np.delete(np.arange(len(self.losses)), [stray.burst for stray in self.strays])
        return plot_diagnostics(
            self.losses[sound],
            self.errors[sound],
            suspect=self.p_values[sound] < SUSPECT,
            sampling_floor=self.sampling_floor,
            stretch=self.stretch,
            sampling_stretch=self.sampling_stretch,
        )


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.3f} to {ends[1]:.3f}"
