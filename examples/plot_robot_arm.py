"""
Joint angles of a robot arm, from pixels
========================================

**Physics.** An arm with two hinges (MuJoCo's kinematics) in front of a camera with 32 × 32 pixels. In each of 600
poses the motors dither by 0.02 rad while 12 frames are taken. MuJoCo's own renderer needs a graphics library on the
machine, so we draw its capsules ourselves, anti-aliased: with soft edges, as a lens makes them, pixels respond to
small steps.

**Hidden:** two joint angles. **Truth:** the angles, in radians.
"""

import matplotlib.pyplot as plt
import mujoco
import numpy as np
from scipy.special import expit
from sklearn.manifold import Isomap
from umap import UMAP

from pyloca import LOCA
from pyloca.bursts import from_function
from pyloca.metrics import calibrate, place_errors

ARM = """<mujoco><worldbody><body>
  <joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .5" size=".09"/>
  <body pos="0 0 .5"><joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .45" size=".07"/></body>
</body></worldbody></mujoco>"""
robot = mujoco.MjModel.from_xml_string(ARM)
state = mujoco.MjData(robot)
grid = np.stack(np.meshgrid(np.linspace(-1.1, 1.1, 32), np.linspace(1.2, -1.0, 32)), axis=-1).reshape(-1, 2)


def camera(angles):
    """(n, 2) → (n, 1024) pixels"""
    frames = []
    for state.qpos[:] in angles:
        mujoco.mj_forward(robot, state)
        dark = np.ones(len(grid))
        for centre, axes, (radius, half, _) in zip(state.geom_xpos, state.geom_xmat, robot.geom_size, strict=True):
            along = axes.reshape(3, 3)[[0, 2], 2]
            steps = grid - centre[[0, 2]]
            reach = np.clip(steps @ along, -half, half)
            gap = np.linalg.norm(steps - reach[:, None] * along, axis=1) - radius
            dark *= expit(gap / 0.08)
        frames.append(1 - dark)
    return np.array(frames)


X = np.random.default_rng(0).uniform([-1, 0.4], [1, 2], size=(600, 2))
bursts = from_function(camera, X, burst_std=0.02, n_points=12, random_state=0).without_perturbations()
model = LOCA(2, burst_std=0.02, random_state=0)
Z = model.fit_transform(bursts)
print(model.diagnostics_)

# %%
# A frame, and the recovered angles against the true ones.

found = calibrate(X, Z).apply(Z)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
axes[0].imshow(camera(X[:1]).reshape(32, 32), cmap="gray")
axes[0].set(title="a frame", xticks=[], yticks=[])
for ax, points, title in ((axes[1], X, "angles (hidden)"), (axes[2], found, "LOCA, from pixels")):
    ax.scatter(*points.T, c=X[:, 1], s=6)
    ax.set(title=title, xlabel="shoulder / rad", ylabel="elbow / rad", aspect="equal")

# %%
pixels, ours = camera(X), place_errors(X, Z).cep
isomap = place_errors(X, Isomap(n_components=2).fit_transform(pixels), calibration="similar").cep
umap = place_errors(X, UMAP(random_state=0, n_jobs=1).fit_transform(pixels), calibration="similar").cep
print(f"median error: LOCA {ours:.2g} rad, Isomap {isomap:.2g} rad, UMAP {umap:.2g} rad")
faults = model.diagnostics_.findings
scores = {"measure": "median error, rad", "shape": (600, 12, 1024), "ours": ours, "isomap": isomap, "umap": umap}
scores |= {"verdict": faults, "right": (not faults) == (ours < 0.05)}
