"""
Thermal camera over a laser-heated surface
==========================================

**Physics.** The opening figure of the LOCA paper: a laser heats one small round spot after another on a curved
surface, and a thermal camera above takes one frame per flash. In the picture a spot is an ellipse, the flatter the
more the surface is tilted.

**Hidden:** the surface in space, of which the camera sees only a projection. **Truth:** the dome.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import Isomap
from umap import UMAP

from pyloca import LOCA, datasets
from pyloca.metrics import calibrate, place_errors

data = datasets.thermal_surface("dome", n_spots=400, random_state=0)
bursts = data.bursts  # made by pyloca.bursts.from_spots of 400 frames, 128 × 128 pixels with noise
model = LOCA(3, burst_std=data.burst_std, random_state=0)
Z = model.fit_transform(bursts)
print(model.diagnostics_)

# %%
# One frame, all spots as the camera sees them, and the recovered surface.

surface = calibrate(data.X, Z).apply(Z)
figure = plt.figure(figsize=(10, 3.6), layout="constrained")
ax = figure.add_subplot(131, title="one flash")
ax.imshow(data.extras["frames"][0], cmap="inferno")
means = np.stack([burst.mean(axis=0) for burst in bursts])
figure.add_subplot(132, title="spots in the picture", aspect="equal").scatter(*means.T, c=data.X[:, 2], s=6)
space = figure.add_subplot(133, projection="3d", title="LOCA, from the picture alone")
space.scatter(*surface.T, c=data.X[:, 2], s=6)
space.set_aspect("equal")

# %%
# Median error in units of the dome's radius. Isomap and UMAP see a flat disc of points, and nothing of the dome.

ours = place_errors(data.X, Z)
rivals = {"isomap": Isomap(n_components=3), "umap": UMAP(n_components=3, random_state=0, n_jobs=1)}
errors = {name: place_errors(data.X, m.fit_transform(means), calibration="similar").cep for name, m in rivals.items()}
print(f"LOCA {ours.cep:.2g}", {name: f"{error:.2g}" for name, error in errors.items()})
scores = {
    "measure": "median error / radius",
    "shape": (len(bursts), 8, 2),
    "ours": ours.cep,
    **errors,
    "verdict": model.diagnostics_.findings,
    "right": (not model.diagnostics_.findings) == (ours.cep < 0.05),
}
