"""Sensors that change during a recording: stuck, in other units or offset since some burst, or drifting."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import spsolve
from scipy.spatial.distance import pdist, squareform

from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.thresholds import (
    CHANGED,
    CHANGED_MOST,
    CHANGED_SLIGHTLY,
    CHANGED_TIMES,
    DRIFTING,
    FEW,
    GUILTY,
    MIXED,
    NEIGHBORS,
    ORDERED,
    PROBE,
    REORDERED,
    SENSORS,
    SPARSE,
    STUCK,
    UNIT_SCATTER,
    WANDERING,
)

__all__ = ["changed_sensor"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def changed_sensor(statistics: BurstStatistics, first: Finding | None = None) -> Finding | None:
    """Check whether one sensor reads otherwise since some burst, in the order in which the bursts came.

    Bursts are paired that are neighbours by all other sensors. The tangents at both ends foretell from the steps of the
    others by how much this one should change. If a sensor is as it was, nothing depends on when a burst was taken.

    Parameters
    ----------
    statistics : BurstStatistics
    first : Finding, optional
        What was found, if something was: then a slight change is enough to explain it.

    Returns
    -------
    Finding or None
        "changed", or None when nothing is wrong or the sensors are too few to tell.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca.geometry import BurstStatistics
    >>> random = np.random.RandomState(0)
    >>> x = random.uniform(size=(200, 1, 2)) + 0.01 * random.standard_normal((200, 20, 2))
    >>> readings = np.sin(x @ random.standard_normal((2, 5)))
    >>> changed_sensor(BurstStatistics.from_bursts(readings, 2)) is None
    True
    >>> readings[120:, :, 3] *= 25.4
    >>> print(changed_sensor(BurstStatistics.from_bursts(readings, 2)).message[:60])
    feature 3 changed during the recording: from about burst 120
    """
    varying = np.flatnonzero(statistics.means.std(axis=0) > 0)
    if len(statistics) < SPARSE or not statistics.intrinsic_dim + 2 <= len(varying) <= SENSORS:
        return None
    rows = sample_rows(len(statistics), PROBE)
    some = statistics[rows]
    # a sensor in other units since some burst must not make the others look as if they did not vary
    spread = some.means[:, varying].std(axis=0)
    means, tangents = some.means[:, varying] / spread, some.tangents[:, :, varying] / spread
    # Whitney: in fewer dimensions the others may read the same in different states. If these come one after the other,
    # the sensor that tells them apart seems to have changed.
    if len(varying) - 1 < 2 * statistics.intrinsic_dim + 1 and _succession(means) < WANDERING:
        return None
    squared = squareform(pdist(means, "sqeuclidean"))
    steps = [_Steps.of(means, tangents, squared, j) for j in range(len(varying))]
    if first is not None and first.name not in CAUSED:
        return None
    least = CHANGED if first is None else CHANGED_SLIGHTLY
    return _sudden(statistics, rows, varying, means, steps, least) or _slow(statistics, rows, varying, steps, least)


# What a sensor that changed may look like. Not the faults of all bursts alike, nor those of single ones.
CAUSED = {"few_bursts", "crossing", "folded", "round_trip", "poor_fit", "curved", "uneven_shape"}


def _sudden(
    statistics: BurstStatistics,
    rows: Rows,
    varying: Rows,
    means: Array,
    steps: list[_Steps],
    least: float,
) -> Finding | None:
    """Check for one burst since which the others foretell a sensor no longer."""
    changes = [_Change.of(one, len(rows)) for one in steps]
    worst = int(np.argmax([change.after for change in changes]))
    change = changes[worst]
    others = max(other.after for j, other in enumerate(changes) if j != worst)
    # A sensor that is wrong pairs bursts of different states for all others, which then seem to have changed a little.
    if change.times < CHANGED_TIMES or others > GUILTY * change.after or change.after < least:
        return None
    if change.score < ORDERED * _by_chance(steps[worst], len(rows)):
        return None
    readings = means[:, worst]
    if not change.first and _stuck(steps[worst], change, readings, 0):
        change = replace(change, first=True)
    label, advice = _named(statistics, int(varying[worst]))
    since = statistics.name_of(int(rows[change.since]))
    when = f"before about {since}" if change.first else f"from about {since} on"
    return Finding(
        "changed",
        f"{label} changed during the recording: {when} {_words(steps[worst], change, readings)}, by what all "
        f"other sensors say of the same states (it is off by {change.after:.0%} of its spread, median; by "
        f"{change.before:.1%} between bursts that this does not concern). {advice}, or fit only the bursts "
        f"{'after' if change.first else 'before'}.",
        tuple(int(i) for i in (rows[: change.since] if change.first else rows[change.since :])),
    )


def _by_chance(steps: _Steps, n: int) -> float:
    """Largest score of a change in bursts that come in another order.

    Where the other sensors read the same in different states, some steps are foretold badly, and by chance more of them
    at one end of the recording.
    """
    random = np.random.RandomState(0)
    return max(_Change.of(steps.in_order(random.permutation(n)), n).score for _ in range(REORDERED))


def _slow(statistics: BurstStatistics, rows: Rows, varying: Rows, steps: list[_Steps], least: float) -> Finding | None:
    """Check for a sensor that is off by an amount which follows the order of the bursts, and not their states."""
    sizes = [float(np.median(np.abs(one.errors))) for one in steps]
    worst = int(np.argmax(sizes))
    offsets = steps[worst].offsets(len(rows))
    size = float(offsets.std())
    if max(np.delete(sizes, worst)) > GUILTY * sizes[worst] or size < least:
        return None
    in_time = float(np.square(np.diff(offsets)).mean()) / (2 * size**2)
    among_states = float(np.square(offsets[steps[worst].tails] - offsets[steps[worst].heads]).mean()) / (2 * size**2)
    if among_states < MIXED or in_time > DRIFTING * among_states:
        return None
    label, advice = _named(statistics, int(varying[worst]))
    return Finding(
        "changed",
        f"{label} drifts during the recording: in the same states, by what all other sensors say, it is off by an "
        f"amount that changes slowly from burst to burst ({size:.0%} of its spread). {advice}.",
    )


def _named(statistics: BurstStatistics, feature: int) -> tuple[str, str]:
    """Name a sensor, and say how to do without it."""
    names = statistics.feature_names
    label, exclude = (f"feature {feature}", "[…]") if names is None else (repr(names[feature]), f"[{names[feature]!r}]")
    return label, f"Leave it out (exclude={exclude}, --exclude in the shell), correct its readings"


def _succession(means: Array) -> float:
    """Squared step from each burst to the next, over that between any two."""
    return float(np.square(np.diff(means, axis=0)).sum(axis=1).mean() / (2 * means.var(axis=0).sum()))


@dataclass(frozen=True)
class _Steps:
    """Steps of one sensor between bursts that are neighbours by the others, in units of its spread."""

    heads: Rows  # (E,) the earlier burst
    tails: Rows
    errors: Array  # (E,) what the others do not foretell
    moved: Array  # (E,)
    growth: Array  # (E,) logarithm by which its tangents grow

    @classmethod
    def of(cls, means: Array, tangents: Array, squared: Array, feature: int) -> _Steps:
        n, others, own = len(means), np.delete(np.arange(means.shape[1]), feature), means[:, feature]
        apart = squared - np.square(own[:, None] - own)
        np.fill_diagonal(apart, np.inf)
        near = np.argpartition(apart, NEIGHBORS, axis=1)[:, :NEIGHBORS]
        pairs = np.sort(np.c_[np.repeat(np.arange(n), NEIGHBORS), near.ravel()], axis=1)
        heads, tails = np.unique(pairs, axis=0).T
        steps = means[np.ix_(tails, others)] - means[np.ix_(heads, others)]
        foretold = np.zeros(len(heads))
        inverse = np.linalg.pinv(tangents[:, :, others])  # (n, D − 1, k)
        for ends in (heads, tails):
            along = np.einsum("edk,ed->ek", inverse[ends], steps)
            foretold += np.einsum("ek,ek->e", along, tangents[ends, :, feature]) / 2
        moved = means[tails, feature] - means[heads, feature]
        sizes = np.log(np.maximum(np.linalg.norm(tangents[:, :, feature], axis=1), np.finfo(float).tiny))
        return cls(heads, tails, moved - foretold, moved, sizes[tails] - sizes[heads])

    def in_order(self, order: Rows) -> _Steps:
        """Return the same steps if burst i had come at `order[i]`."""
        ends = np.sort([order[self.heads], order[self.tails]], axis=0)
        return replace(self, heads=ends[0], tails=ends[1])

    def offsets(self, n: int) -> Array:
        """By how much the sensor is off in each burst, (n,): the errors are differences of it, by least squares."""
        ends = np.r_[self.heads, self.tails], np.r_[self.tails, self.heads]
        degrees = (1 + 1e-6) * np.bincount(ends[0], minlength=n)  # pieces that do not touch have no offset
        laplacian = sp.diags(degrees) - sp.coo_matrix((np.ones(len(ends[0])), ends), shape=(n, n))
        jumps = np.bincount(self.tails, self.errors, n) - np.bincount(self.heads, self.errors, n)
        return np.asarray(spsolve(laplacian.tocsc(), jumps))


@dataclass(frozen=True)
class _Change:
    """The burst since which steps are foretold worst, compared with those between bursts that are alike."""

    since: int
    first: bool  # whether the bursts before it are the wrong ones
    after: float  # median error of steps that the change concerns
    before: float  # and of the others
    across: NDArray[np.bool_]  # (E,) whether a step leads across it
    score: float = 0.0  # difference of the mean errors of both, in units of what their numbers explain

    @property
    def times(self) -> float:
        return self.after / max(self.before, np.finfo(float).tiny)

    @classmethod
    def of(cls, steps: _Steps, n: int) -> _Change:
        errors = np.minimum(np.abs(steps.errors), CHANGED_MOST)
        none = cls(0, False, 0.0, 0.0, np.zeros(len(errors), dtype=bool))
        margin = max(FEW // 3, n // 10)
        earlier = _cumulated(steps.tails + 1, errors, n)  # both ends before burst h
        later = [part[-1] - part for part in _cumulated(steps.heads, errors, n)]
        whole = [part[-1] for part in earlier]
        best, kind = (0.0, 0), ""
        for name, (alike, total) in {
            "across": ([a + b for a, b in zip(earlier, later, strict=True)], whole),
            "since": (earlier, whole),
            "until": (later, whole),
        }.items():
            same, crossing = alike[1], total[1] - alike[1]
            with np.errstate(divide="ignore", invalid="ignore"):
                contrast = (total[0] - alike[0]) / crossing - alike[0] / same
                score = np.nan_to_num(contrast * np.sqrt(crossing * same / (crossing + same)))[margin : n - margin]
            if score.max(initial=0) > best[0]:
                best, kind = (float(score.max()), margin + int(score.argmax())), name
        if not kind:
            return none
        since = best[1]
        before, after = steps.tails < since, steps.heads >= since
        across = ~(before | after)
        part, none = since / n, replace(none, score=best[0])
        # Where bursts before and after lie in different places, no two of them have the same state.
        if across.mean() < MIXED * 2 * part * (1 - part):
            return none
        unchanged = {"across": ~across, "since": before, "until": after}[kind]
        if min(unchanged.sum(), across.sum()) < FEW:
            return none
        one, other = (float(np.median(np.abs(steps.errors[edges]))) for edges in (unchanged, across))
        return cls(since, kind == "until", other, one, across, best[0])


def _cumulated(ends: Rows, errors: Array, n: int) -> list[Array]:
    """Sum of the errors and number of the steps whose end is at most h, for all h from 0 to n."""
    return [np.cumsum(np.bincount(ends, weights, n + 1)) for weights in (errors, np.ones(len(errors)))]


def _words(steps: _Steps, change: _Change, readings: Array) -> str:
    """Say in what way it changed."""
    side = 0 if change.first else 1
    if _stuck(steps, change, readings, side):
        return "it hardly moves, as a sensor that is stuck or dead"
    growth = (1 if side else -1) * steps.growth[change.across]
    factor = float(np.median(growth))
    if _follows(steps, change, side) and abs(factor) > max(UNIT_SCATTER, 2 * np.median(np.abs(growth - factor))):
        return f"its readings are {np.exp(factor):.3g} times as large, as in another unit or with another gain"
    return "its readings are shifted, by an offset or a drift"


def _follows(steps: _Steps, change: _Change, side: int) -> bool:
    """Whether it still moves as foretold between the bursts before (0) or after (1) the change."""
    edges = steps.heads >= change.since if side else steps.tails < change.since
    moved, missed = (float(np.median(np.abs(part[edges]))) for part in (steps.moved, steps.errors))
    return missed < moved / 2


def _stuck(steps: _Steps, change: _Change, readings: Array, side: int) -> bool:
    """Whether it hardly moves on one side."""
    parts = readings[: change.since], readings[change.since :]
    wide = [float(np.ptp(np.quantile(part, [0.1, 0.9]))) for part in parts]
    return not _follows(steps, change, side) and wide[side] < STUCK * wide[1 - side]
