"""The page of `pyloca report`: a fitted model, judged by bursts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pyloca.checks import push
from pyloca.diagnostics import Agreement
from pyloca.estimator import LOCA, Data
from pyloca.findings import Diagnostics
from pyloca.plots import plot_ellipses, plot_errors, plot_map, plot_spectrum, plot_training, plot_whitening
from pyloca.report._certainty import certainty
from pyloca.report._colours import Columns
from pyloca.report._explorer import explorer
from pyloca.report._found import Found, find
from pyloca.report._page import Figure, Page, Section, Table, versions
from pyloca.report._sensors import embedding, sensor_table
from pyloca.report._words import as_figure, counts_words, numbers, percent, plural

__all__ = ["user_report"]

Array = NDArray[np.float64]

WORST = 10  # bursts in the table
MANY = 20  # features without names of which there is no table
NOT_A_SETTING = {"callbacks", "verbose", "device", "encoder", "decoder"}


def user_report(
    model: LOCA,
    bursts: Data,
    *,
    labels: Sequence[str] | None = None,
    columns: Columns | None = None,
    agreement: Agreement | None = None,
    name: str = "",
) -> Page:
    """Make the page of a fitted model: what it found, how far to believe it, and the model itself to explore.

    Parameters
    ----------
    model : LOCA
        Fitted, or loaded from a file.
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics, or path
        The bursts of the fit, or others from the same instrument; the page says which.
    labels : sequence of N str, optional
        Further text for each burst; the page names bursts by their ids.
    columns : mapping of str to N numbers or texts, optional
        What else the reader can colour the embedding by, such as ``{"operator": [...]}``. `read_colours` reads them
        from a CSV file.
    agreement : Agreement, optional
        ``pyloca.diagnostics.agreement(model, bursts)``, which gives the page error bars.
    name : str, default=""
        Title of the page.

    Returns
    -------
    Page
        For `render`.

    Raises
    ------
    BurstError
        If the bursts cannot be used, or there is not one label per burst.
    ValueError
        If `columns` or `agreement` have a different number of bursts.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
    >>> page = user_report(model, data.bursts, columns={"height": data.X[:, 1]})
    >>> page.sections[0].title
    'Explore the model'
    """
    check_is_fitted(model)
    found = find(model, bursts, labels, columns, agreement)
    warnings = found.diagnostics.warnings
    if found.held_out is None:
        # A doubt about the fit itself remains with other data.
        warnings = (*model.diagnostics_.warnings, *(w for w in warnings if w not in model.diagnostics_.warnings))
    return Page(
        title=name or "Standardized coordinates",
        lead=_lead(found, warnings),
        sections=(
            _explore(found),
            _overview(found),
            embedding(found),
            _whitening(found),
            _reconstruction(found),
            certainty(found),
            _training(found),
            _bursts(found),
        ),
        settings=_settings(model),
        versions=versions(),
        warnings=warnings,
    )


# -- sections ---------------------------------------------------------------------------------------------------------


def _lead(found: Found, warnings: Sequence[str]) -> str:
    low, high = found.diagnostics.stretch
    verdict = (
        "A check says that this result should not be believed as it stands."
        if warnings
        else f"No check found a fault: bursts are {low:.3f} to {high:.3f} times as long as they should be (5 % to 95 % "
        f"of all directions){_sampling_words(found.diagnostics)}."
    )
    noise = f" Measurement noise {found.diagnostics.noise}." if found.diagnostics.noise else ""
    shape = f" Shape: {found.diagnostics.shape}." if found.diagnostics.shape else ""
    aside = f" Set aside: {found.diagnostics.set_aside}." if found.diagnostics.set_aside else ""
    cut = f" {found.diagnostics.clipped}." if found.diagnostics.clipped else ""
    out = f" {plural(len(found.strays), 'burst')} of {len(found.Z) + len(found.strays):,} left out: see below."
    return (
        f"{len(found.Z):,} bursts with {plural(found.statistics.n_features, 'feature')}, reduced to "
        f"{plural(found.Z.shape[1], 'coordinate')} by LOCA. "
        f"{verdict}{shape}{noise}{aside}{cut}{out * bool(found.strays)}"
    )


def _sampling_words(checked: Diagnostics) -> str:
    if checked.sampling_stretch is None:
        return ""
    low, high = checked.sampling_stretch
    return f", where the sampling of their points alone gives {low:.3f} to {high:.3f}"


def _explore(found: Found) -> Section:
    maps = {"whitening loss": found.loss, "reconstruction error": found.error, "trust": found.trust}
    if found.agreement is not None:
        maps["standard error"] = found.agreement.standard_errors
    play = explorer(
        found.model,
        found.means,
        title="From the embedding",
        ids=found.statistics.ids,
        labels=found.labels,
        columns=found.columns,
        maps=maps,
    )
    return Section("Explore the model", explorers=(play,))


def _overview(found: Found) -> Section:
    model, statistics = found.model, found.statistics
    checked = found.diagnostics
    which = "held-out bursts" if found.held_out is not None and len(found.held_out) else "all bursts here"
    rows = [
        ("N, bursts", f"{len(statistics):,}"),
        ("M, points per burst", counts_words(statistics.counts)),
        ("D, features", f"{statistics.n_features:,}"),
        ("k, directions that a burst spans", str(statistics.intrinsic_dim)),
        ("d, coordinates", str(model.n_components_)),
        ("σ, size of a burst in the coordinates", f"{model.burst_std_:.4g} ({_scale(model)})"),
        (
            f"whitening loss, {which}",
            f"{checked.whitening_loss:.3g} ({checked.median_of_all:.3g} is the median of all bursts)",
        ),
        ("… of which sampling explains", _floor_words(found, checked.sampling_floor)),
        (
            "local stretch, 5 % to 95 %",
            f"{checked.stretch[0]:.3f} to {checked.stretch[1]:.3f}{_sampling_words(checked)}",
        ),
        ("reconstruction error, median", f"{percent(np.median(found.error))} of the size of the data"),
        *([] if checked.gap is None else [("largest gap", str(checked.gap).capitalize())]),
        ("training", f"{model.n_iter_:,} iterations, {'converged' if model.converged_ else 'did not converge'}"),
    ]
    paragraphs = (
        "LOCA looks for coordinates in which every burst is a round cloud of standard deviation σ. Where it succeeds, "
        "distances between the coordinates are distances between the states that were measured.",
        _whose(found),
    )
    return Section("At a glance", paragraphs, (Table(("quantity", "value"), tuple(rows)), *_left_out(found)))


def _left_out(found: Found) -> list[Table]:
    if not found.strays:
        return []
    rows = tuple((str(one.name), one.reason, numbers(one.place)) for one in found.strays)
    caption = (
        "Bursts that were left out (max_strays). Nothing below is about them; the encoder gives them coordinates that "
        "are not to be trusted"
    )
    return [Table(("burst", "why", "embedded at"), rows, caption)]


def _whitening(found: Found) -> Section:
    k = found.statistics.intrinsic_dim
    score = found.loss / found.floors if found.sampled else found.loss
    label = "whitening loss / what sampling leaves" if found.sampled else "whitening loss"
    explained = (
        "A burst of few points is never exactly white: sampling alone leaves k (k + 1) / (2 (M − 1)) of the loss on "
        "average. Where the histogram follows the black curve, the encoder is as good as these bursts can tell."
        if found.sampled
        else "Sampling explains none of this loss: the local geometry is known exactly, or the points of a burst are a "
        "fixed array and not random."
    )
    return Section(
        "Whitening: is every burst round?",
        (
            "The whitening loss of a burst is tr G − log det G − k, where G is its covariance after the encoder, "
            f"divided by σ². It is 0 for a burst that is round and of the right size. {explained}",
        ),
        (_worst(found, score),),
        (
            as_figure(
                plot_whitening(found.loss, found.floors, k, found.held_out),
                f"Histogram of the whitening loss of the bursts; median {np.median(score):.3g}.",
                "Whitening loss of every burst"
                + (", in units of what sampling leaves on average." if found.sampled else "."),
            ),
            as_figure(
                plot_map(found.Z, score, label, log=True),
                "Map of the embedded bursts, coloured by their whitening loss.",
                "The same on the embedding. Bright patches, rather than single bright dots, are regions to distrust: "
                "an edge, a fold, or a measurement that is nearly blind there.",
            ),
            *_ellipses(found),
        ),
    )


def _ellipses(found: Found) -> list[Figure]:
    if found.Z.shape[1] < 2:
        return []
    return [
        as_figure(
            plot_ellipses(found.Z, push(found.seen.encoder, found.statistics, found.model.burst_std_)[1].numpy()),
            "Some bursts after the encoder, drawn as ellipses on the embedding.",
            "Some bursts after the encoder, greatly enlarged. They should be round and of the size of the dashed "
            "circle; where elongated ones lie side by side, distances are wrong in that direction.",
        )
    ]


def _worst(found: Found, score: Array) -> Table:
    rows = []
    # The largest and the smallest stretch of a burst: which way it fails to be round.
    for i in np.argsort(-score, kind="stable")[:WORST]:
        burst = [str(found.statistics.ids[i])] + ([] if found.labels is None else [str(found.labels[i])])
        held = "" if found.held_out is None else "yes" if i in found.held_out else "no"
        cells = (f"{found.loss[i]:.3g}", f"{score[i]:.3g}" if found.sampled else "", held)
        stretch = f"{found.stretch[i].min():.3f} to {found.stretch[i].max():.3f}"
        rows.append(
            (*burst, numbers(found.Z[i]), stretch, *(cell for cell in cells if cell), f"{percent(found.error[i])}")
        )
    names = ("burst",) if found.labels is None else ("burst", "label")
    header = [*names, "embedded at", "stretch", "loss"]
    header += ["loss / sampling"] * found.sampled + ["held out"] * (found.held_out is not None) + ["reconstruction"]
    return Table(tuple(header), tuple(rows), f"The {len(rows)} bursts that are least round")


def _reconstruction(found: Found) -> Section:
    label = "reconstruction error / size of the data"
    far = int((found.error > 0.1).sum())
    return Section(
        "Reconstruction: does it come back?",
        (
            "The mean of every burst goes through the encoder and back through the decoder. The error is the distance "
            "of the result from the mean, as a fraction of the data's size (root mean square distance from the "
            f"centre). The median is {percent(np.median(found.error))}, the worst is {percent(found.error.max())}; "
            f"{far:,} of {len(found.error):,} bursts are off by more than 10 %.",
        ),
        figures=(
            as_figure(
                plot_errors(found.error, label),
                f"Histogram of the reconstruction error; median {np.median(found.error):.3g}.",
                "Reconstruction error of every burst mean.",
            ),
            as_figure(
                plot_map(found.Z, found.error, label, log=True),
                "Map of the embedded bursts, coloured by their reconstruction error.",
                "The same on the embedding. Where two distant measurements are embedded at the same point, no decoder "
                "can tell them apart, and it shows here.",
            ),
        ),
    )


def _training(found: Found) -> Section:
    history = found.model.history_
    if not history:
        return Section("Training", ("There is no record of the training: it ended before its first check.",))
    return Section(
        "Training",
        (
            f"{found.model.n_iter_:,} iterations in {history[-1]['seconds']:.1f} s with the solver "
            f"“{found.model.solver}”. Each stage has its own objective, so only values of one stage can be compared.",
        ),
        figures=(
            as_figure(
                plot_training(history),
                f"Loss against iterations of the training, {len(history)} checks.",
                "Loss at every check of the training, on the training bursts and on those held out.",
            ),
        ),
    )


def _bursts(found: Found) -> Section:
    k = found.statistics.intrinsic_dim
    spectra = found.statistics.spectra
    off = float(np.median(found.statistics.residuals / (spectra.sum(axis=1) + found.statistics.residuals)))
    beyond = (
        f"a clear drop after them means that the bursts are flat patches. {percent(off)} of a burst's variance lies "
        "off its tangents (median): noise and curvature."
        if k < found.statistics.n_features
        else "here these are all directions."
    )
    sensors = (sensor_table(found),) if found.named or found.statistics.n_features <= MANY else ()
    return Section(
        "The bursts themselves",
        (f"Median eigenvalues of the burst covariances. The first k = {k} belong to the tangents; {beyond}",),
        (
            *sensors,
            Table(
                ("eigenvalue", "median", "meaning"),
                tuple(
                    (str(i + 1), f"{value:.3g}", "tangent" if i < k else "noise and curvature")
                    for i, value in enumerate(found.spectrum)
                ),
            ),
        ),
        (
            as_figure(
                plot_spectrum(found.spectrum, k),
                f"The {len(found.spectrum)} leading median eigenvalues, of which {k} are tangent.",
            ),
        ),
    )


# -- words -------------------------------------------------------------------------------------------------------------


def _settings(model: LOCA) -> dict[str, str]:
    values = {name: value for name, value in model.get_params(deep=False).items() if name not in NOT_A_SETTING}
    return {name: _setting(value) for name, value in sorted(values.items())}


def _setting(value: Any) -> str:
    if value is None:
        return "not set"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _whose(found: Found) -> str:
    if found.held_out is None:
        return "These are not the bursts that the model was fitted to: everything below is about new data."
    held = len(found.held_out)
    if not held:
        return "These are the bursts that the model was fitted to; none were held out."
    return f"These are the bursts of the fit; {held:,} of them were held out and only used to decide when to stop."


def _scale(model: LOCA) -> str:
    if hasattr(model, "rescaling_"):
        return f"from known distances: {model.rescaling_}"
    return "given" if model.burst_std_known_ else "estimated: coordinates are right up to one factor"


def _floor_words(found: Found, floor: float) -> str:
    return f"{floor:.3g}" if found.sampled else "nothing: see below"
