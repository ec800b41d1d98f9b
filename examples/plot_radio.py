"""
Radio floor plan
================

**Physics.** A receiver is carried through a building with 17 transmitters, whose signals fade with distance. At 1500
places a ring of six antennas, half a pixel wide, reads all of them. Nobody writes down where.

**Hidden:** two coordinates on the floor. **Truth:** the floor plan, 600 × 1000 px.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap
from umap import UMAP

from pyloca import LOCA, datasets
from pyloca.metrics import calibrate, place_errors

data = datasets.wifi(1500, random_state=0)
model = LOCA(2, burst_std=data.burst_std, random_state=0)
Z = model.fit_transform(data.bursts)
print(model.diagnostics_)

# %%
# What the receiver sees, the true places, and what comes out. The embedding is turned and shifted onto the plan but not
# scaled: the radius of the ring is the only length that was given.

figure, axes = plt.subplots(1, 3, figsize=(10, 5), layout="constrained")
panels = {
    "signals (PCA)": PCA(2).fit_transform(data.Y),
    "places (hidden)": data.X,
    "LOCA": calibrate(data.X, Z).apply(Z),
}
for ax, (title, points) in zip(axes, panels.items(), strict=True):
    ax.scatter(*points.T, c=data.X[:, 1], s=4)
    ax.set(title=title, aspect="equal")
    ax.set_axis_off()

# %%
# The median error in pixels. Isomap and UMAP are scaled by the best factor.

ours = place_errors(data.X, Z)
isomap = place_errors(data.X, Isomap(n_components=2).fit_transform(data.Y), calibration="similar")
umap = place_errors(data.X, UMAP(random_state=0, n_jobs=1).fit_transform(data.Y), calibration="similar")
print(f"LOCA {ours.cep:.2g} px, Isomap {isomap.cep:.2g} px, UMAP {umap.cep:.2g} px")
scores = {
    "measure": "median error, px of 1000",
    "shape": (*data.bursts.to_array().shape,),
    "ours": ours.cep,
    "isomap": isomap.cep,
    "umap": umap.cep,
    "verdict": model.diagnostics_.findings,
    "right": (not model.diagnostics_.findings) == (ours.cep < 10),
}
