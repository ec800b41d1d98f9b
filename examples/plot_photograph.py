"""
A camera over a photograph
==========================

**Physics.** A camera hangs over a photograph (a Chinese temple, from scikit-learn's samples) and looks through a
window of 24 × 24 pixels. At each of 900 positions it trembles by 0.3 pixels while it takes 12 frames. A frame is 576
grey values.

**Hidden:** where the camera is, two coordinates. **Truth:** the positions.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image
from sklearn.manifold import Isomap
from umap import UMAP

from pyloca import LOCA
from pyloca.bursts import from_image_patches
from pyloca.metrics import calibrate, place_errors

picture = load_sample_image("china.jpg").mean(axis=-1)[60:260, 200:400]
scene = gaussian_filter(picture, 8)  # the lens; with 6 instead of 8, some sets of positions are not enough: `folded`
X = np.random.default_rng(0).uniform(60, 140, size=(900, 2))
bursts = from_image_patches(scene, X, window=24, jitter=0.3, n_points=12, random_state=0)
model = LOCA(2, burst_std=0.3, random_state=0)
Z = model.fit_transform(bursts)
print(model.diagnostics_)

# %%
# The scene, one frame, and the recovered positions.

found = calibrate(X, Z).apply(Z)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
axes[0].imshow(picture, cmap="gray")
axes[0].set(title="the scene")
axes[1].imshow(bursts[0][0].reshape(24, 24), cmap="gray")
axes[1].set(title="a frame")
axes[2].scatter(found[:, 1], found[:, 0], c=X[:, 0], s=6)
axes[2].set(title="positions, recovered from frames", aspect="equal")
axes[2].invert_yaxis()
for ax in axes:
    ax.set_axis_off()

# %%
# Median error in pixels of the scene.

means = np.stack([burst.mean(axis=0) for burst in bursts])
ours = place_errors(X, Z)
isomap = place_errors(X, Isomap(n_components=2).fit_transform(means), calibration="similar")
umap = place_errors(X, UMAP(random_state=0, n_jobs=1).fit_transform(means), calibration="similar")
print(f"LOCA {ours.cep:.2g} px, Isomap {isomap.cep:.2g} px, UMAP {umap.cep:.2g} px")
scores = {
    "measure": "median error, px of 80",
    "shape": (900, 12, 576),
    "ours": ours.cep,
    "isomap": isomap.cep,
    "umap": umap.cep,
    "verdict": model.diagnostics_.findings,
    "right": (not model.diagnostics_.findings) == (ours.cep < 2),
}
