"""
Colour vision: a plane in which differences look equal
======================================================

**Physics.** In 1942 MacAdam measured how far a colour must move before an eye sees a difference, around 25 colours.
In the CIE diagram these are ellipses of very different sizes and shapes. An ellipse is the covariance of a burst: the
perturbations are just noticeable differences, all equally large to the eye. So an encoder that makes the ellipses round
is a map of perceived colour.

**Hidden:** the plane of perception. **Measure:** the truth is not known, so each ellipse is held out in turn and
predicted from the other 24: how far from round is it? CIE u′v′ (1976) was designed for the same purpose.
"""

import matplotlib.pyplot as plt
import numpy as np
from colour.models.datasets.macadam_ellipses import DATA_MACADAM_1942_ELLIPSES as TABLE

from pyloca import LOCA, BurstStatistics

xy = TABLE[:, :2]
turn = np.deg2rad(TABLE[:, 4])
axes_of = np.stack([np.c_[np.cos(turn), -np.sin(turn)], np.c_[np.sin(turn), np.cos(turn)]], axis=1)
J = axes_of * (TABLE[:, None, 2:4] / 1000)  # (25, 2, 2): a circle of one just noticeable difference → its ellipse
C = J @ J.transpose(0, 2, 1)


def fit(rows):
    # counts: how exact the ellipses are taken to be; MacAdam gives no errors
    bursts = BurstStatistics.from_covariances(xy[rows], C[rows], 2, counts=50)
    return LOCA(2, burst_std=1, random_state=0).fit(bursts)


def uv(p):
    """CIE 1976"""
    return np.stack([4 * p[..., 0], 9 * p[..., 1]], axis=-1) / (-2 * p[..., :1] + 12 * p[..., 1:] + 3)


def roundness(pushed):
    """Long over short axis"""
    long, short = np.linalg.svd(pushed, compute_uv=False).T
    return long / short


held_out = []
for i in range(25):
    _, slope = fit(np.arange(25) != i).encode_with_jacobian(xy[i : i + 1])
    held_out.append(roundness(slope @ J[i : i + 1])[0])
slope_uv = np.stack([(uv(xy + step) - uv(xy - step)) / 2e-6 for step in 1e-6 * np.eye(2)], axis=-1)
ours, cie = np.median(held_out), np.median(roundness(slope_uv @ J))
print(
    f"long over short axis, median: in xy {np.median(roundness(J)):.2f}, CIE u′v′ {cie:.2f}, LOCA held out {ours:.2f}"
)

# %%
# All ellipses, enlarged ten times: in the CIE diagram, in u′v′, and in the plane of the encoder.

model = fit(np.arange(25))
print(model.diagnostics_)
ring = np.stack([np.cos(np.linspace(0, 7, 60)), np.sin(np.linspace(0, 7, 60))])
_, slope = model.encode_with_jacobian(xy)
figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
maps = {"CIE xy": (xy, J), "CIE u′v′": (uv(xy), slope_uv @ J), "LOCA": (model.embedding_, slope @ J)}
for ax, (title, (centres, shapes)) in zip(panels, maps.items(), strict=True):
    for centre, shape in zip(centres, shapes, strict=True):
        ax.plot(*(centre[:, None] + 10 * shape @ ring), lw=1)
    ax.set(title=title, aspect="equal")

# %%
# Isomap and UMAP cannot be compared here: they see 25 points, not ellipses.

faults = model.diagnostics_.findings
scores = {"measure": f"axis ratio, held out (u′v′: {cie:.2f})", "shape": (25, 50, 2), "ours": ours}
scores |= {"verdict": faults, "right": (not faults) == (ours < cie)}
