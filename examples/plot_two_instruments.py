"""
Two instruments, and one that drifts
====================================

**Physics.** An L-shaped hall of 2 × 3 m. A radio receiver reads six field strengths; a camera on the ceiling sees the
glow of a lamp in 256 pixels. They measure different quantities and were never calibrated against each other, but eight
places were visited with both. Later the radio is repaired, which changes its gains by up to 30 %.

**Hidden:** places. **Truth:** what the camera would have shown, and the places in metres.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import Isomap
from umap import UMAP

from pyloca import LOCA
from pyloca.bursts import from_function
from pyloca.matching import match, recalibrate
from pyloca.metrics import calibrate, foscttm, place_errors

TOWERS = np.array([[-1.0, 0.0], [3.0, 0.5], [0.5, 4.5], [-1.0, 3.0], [2.5, 2.5], [1.0, -1.5]])
PIXELS = np.stack(np.meshgrid(np.linspace(-0.5, 2.5, 16), np.linspace(-0.5, 3.5, 16)), axis=-1).reshape(-1, 2)


def radio(x, gains=1.0):
    return gains * np.log1p(4 / np.square(x[:, None] - TOWERS).sum(axis=-1))


def camera(x):
    return np.exp(-np.square(x[:, None] - PIXELS).sum(axis=-1) / 0.5)


def hall(n, seed):
    X = np.random.default_rng(seed).uniform((0, 0), (2, 3), size=(3 * n, 2))
    return X[(X[:, 0] < 0.8) | (X[:, 1] < 1)][:n]


def bursts_of(instrument, seed):
    return from_function(instrument, hall(400, seed), 0.02, n_points=20, random_state=seed).without_perturbations()


one, two = (LOCA(2, random_state=0).fit(bursts_of(f, seed)) for seed, f in enumerate((radio, camera), 1))
places = hall(8, 3)
found = match(one, two, anchors=(radio(places), camera(places)), names=("radio", "camera"))
print(found)

# %%
# The camera's picture from radio signals alone, beside the real one.

new = hall(300, 4)
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
pictures = {"predicted from the radio": found.a_to_b(radio(new))[0], "the camera": camera(new)[0]}
for ax, (title, picture) in zip(axes, pictures.items(), strict=False):
    ax.imshow(picture.reshape(16, 16), origin="lower")
    ax.set(title=title)
axes[2].scatter(*found.coordinates(radio(new), "radio").T, s=8)
axes[2].scatter(*found.coordinates(camera(new), "camera").T, s=8, marker="x")
axes[2].set(title="both in one map / m", aspect="equal")

# %%
# New bursts put the repaired radio back into the old coordinates. It has drifted; one that was not repaired has not.

gains = np.array([1.3, 0.9, 1.1, 0.8, 1.2, 1.0])
repaired, same = recalibrate(one, bursts_of(lambda x: radio(x, gains), 5)), recalibrate(one, bursts_of(radio, 6))
before, after = one.encode(radio(new)), repaired.model.encode(radio(new, gains))
print(f"drifted: {repaired.drifted}; without repair: {same.drifted}")
print(f"then and now agree to {place_errors(before, after, calibration=None).cep:.2g} m (median)")


def apart(method):  # one embedding is laid onto the other by the same eight anchors
    a, b = (method.fit_transform(instrument(np.r_[places, new])) for instrument in (radio, camera))
    return foscttm(calibrate(b[:8], a[:8], scale=True).apply(a[8:]), b[8:])


ours = foscttm(found.coordinates(radio(new), "radio"), found.coordinates(camera(new), "camera"))
scores = {"measure": "FOSCTTM", "shape": (400, 20, 256), "ours": ours, "isomap": apart(Isomap(n_components=2))}
scores |= {"umap": apart(UMAP(random_state=0, n_jobs=1)), "verdict": f"drift: {repaired.drifted}, {same.drifted}"}
scores["right"] = repaired.drifted and not same.drifted and ours < 0.05
