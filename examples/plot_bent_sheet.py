"""
A bent sheet, flattened from its photograph
===========================================

**Physics.** A sheet of paper with a printed grid of round spots is bent and photographed. Each spot looks like an
ellipse, which tells how the paper is tilted there.

**Hidden:** the position of each spot on the flat sheet. **Truth:** the grid. The size of a spot is not known, so the
result is right up to one factor.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import Isomap
from umap import UMAP

from pyloca import LOCA, datasets
from pyloca.bursts import from_image
from pyloca.metrics import calibrate, place_errors

photo = datasets.bent_sheet(random_state=0)
bursts = from_image(photo.image, threshold=0.45)
print(bursts.provenance)
model = LOCA(2, random_state=0)
Z = model.fit_transform(bursts)
print(model.diagnostics_)

# %%
# To judge the result, find out which spot of the grid each burst is. The fit does not use this.

means = np.stack([burst.mean(axis=0) for burst in bursts])
nearest = np.square(means[:, None] - photo.Y).sum(axis=-1).argmin(axis=1)
X = photo.X[nearest]
flat = calibrate(X, Z, scale=True).apply(Z)
figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
axes[0].imshow(photo.image, cmap="gray")
axes[0].set(title="the photograph")
axes[1].scatter(*flat.T, c=X[:, 0], s=5)
axes[1].set(title="the sheet, flat", aspect="equal")
for ax in axes:
    ax.set_axis_off()

# %%
# Median error in units of the sheet's side; all three methods are scaled by the best factor.

rivals = {"isomap": Isomap(n_components=2), "umap": UMAP(random_state=0, n_jobs=1)}
errors = {name: place_errors(X, m.fit_transform(means), calibration="similar").cep for name, m in rivals.items()}
errors["ours"] = place_errors(X, Z, calibration="similar").cep
print({name: f"{error:.2g}" for name, error in errors.items()})
scores = {
    "measure": "median error / side",
    "shape": (len(bursts), int(np.median(bursts.counts)), 2),
    **errors,
    "verdict": model.diagnostics_.findings,
    "right": (not model.diagnostics_.findings) == (errors["ours"] < 0.02),
}
