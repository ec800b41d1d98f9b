"""How far to believe each burst: trust and error bars on the embedding."""

from __future__ import annotations

import numpy as np

from pyloca.plots import plot_agreement, plot_errors, plot_map
from pyloca.report._found import Found
from pyloca.report._page import Figure, Section
from pyloca.report._words import as_figure
from pyloca.thresholds import UNTRUSTED

__all__ = ["certainty"]


def certainty(found: Found) -> Section:
    """Draw trust as a map, and error bars if several fits were compared."""
    strange = int((found.trust < UNTRUSTED).sum())
    words = (
        "The trust in a burst is the fraction of held-out measurements that are at least as strange, by their round "
        "trip through the decoder and their distance to the training bursts. For measurements like those of the fit it "
        f"is uniform between 0 and 1; {strange:,} of {len(found.trust):,} bursts are below {UNTRUSTED:g}, where "
        f"{UNTRUSTED * len(found.trust):.3g} are expected."
    )
    trust = as_figure(
        plot_map(found.Z, found.trust, "trust"),
        "Map of the embedded bursts, coloured by trust.",
        "Trust on the embedding. Dark patches, rather than single dark dots, are regions that the training did not "
        "see, or where the decoder does not lead back.",
    )
    return Section("Trust and error bars", (words, _error_words(found)), figures=(trust, *_error_bars(found)))


def _error_words(found: Found) -> str:
    if found.agreement is None:
        return (
            "Error bars were not requested. They need a few more fits, to halves of the bursts: "
            "errors = pyloca.diagnostics.agreement(model, bursts), then user_report(model, bursts, agreement=errors)."
        )
    low, middle, high = np.quantile(found.agreement.standard_errors, [0.05, 0.5, 0.95])
    n = len(found.agreement.embeddings) // 2
    return (
        f"Error bars come from {n} pair{'s' * (n != 1)} of fits to disjoint halves of the bursts. The standard error "
        f"of a coordinate is {middle:.2g} (median; 5 % to 95 % of the bursts: {low:.2g} to {high:.2g}). Errors that "
        "both halves share, such as a wrong σ, are not included."
    )


def _error_bars(found: Found) -> list[Figure]:
    if found.agreement is None:
        return []
    errors, label = found.agreement.standard_errors, "standard error of a coordinate"
    figures = [
        as_figure(
            plot_map(found.Z, errors, label),
            "Map of the embedded bursts, coloured by their standard error.",
            "Standard error on the embedding. Where it is large, fits to the two halves of the data disagree.",
        )
    ]
    if found.Z.shape[1] < 2:
        return [*figures, as_figure(plot_errors(errors, label), "Histogram of the standard errors.")]
    return [
        *figures,
        as_figure(
            plot_agreement(found.Z, found.agreement.radius()),
            "The embedded bursts in circles that contain the true position with 95 % probability.",
            "Each circle contains the true position of its burst with 95 % probability.",
        ),
    ]
