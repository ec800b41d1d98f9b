"""
A molecule: two torsions from distances
=======================================

**Physics.** Alanine dipeptide in vacuum (OpenMM, AMBER14) can turn about two bonds, φ and ψ: its states form a torus.
From each of 800 states, set by a spring on both torsions, it is released 16 times with thermal velocities. After
0.06 ps, the distances between its heavy atoms are averaged over 0.08 ps. The vibrations of all bonds are in them too.

**Hidden:** φ and ψ. **Measure:** R² of their sines and cosines, by the eight nearest neighbours in the embedding.
"""

import matplotlib.pyplot as plt
import numpy as np
import openmm as mm
from openmm import app
from scipy.spatial.distance import pdist
from sklearn.manifold import Isomap
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from umap import UMAP

from pyloca import LOCA

molecule = app.PDBFile("alanine_dipeptide.pdb")  # 22 atoms, beside this script
heavy = [atom.index for atom in molecule.topology.atoms() if atom.element.symbol != "H"]
system = app.ForceField("amber14-all.xml").createSystem(molecule.topology, constraints=app.HBonds)
spring = mm.CustomTorsionForce("pull * (1 - cos(theta - goal))")
spring.addGlobalParameter("pull", 0)
spring.addPerTorsionParameter("goal")
spring.addTorsion(4, 6, 8, 14, [0])  # φ
spring.addTorsion(6, 8, 14, 16, [0])  # ψ
system.addForce(spring)
motion = mm.LangevinMiddleIntegrator(300, 5, 0.002)
motion.setRandomNumberSeed(1)
world = mm.Context(system, motion, mm.Platform.getPlatformByName("Reference"))


def move(steps):
    motion.step(steps)
    return world.getState(getPositions=True).getPositions(asNumpy=True)._value


random, bursts = np.random.default_rng(0), np.zeros((800, 16, 45))
angles = random.uniform(-np.pi, np.pi, size=(800, 2))
for burst, (phi, psi) in zip(bursts, angles, strict=True):
    spring.setTorsionParameters(0, 4, 6, 8, 14, [phi])
    spring.setTorsionParameters(1, 6, 8, 14, 16, [psi])
    spring.updateParametersInContext(world)
    world.setParameter("pull", 400)
    world.setPositions(molecule.positions)
    mm.LocalEnergyMinimizer.minimize(world, 10, 100)
    start = move(300)
    world.setParameter("pull", 0)
    for seen in burst:
        world.setPositions(start)
        world.setVelocitiesToTemperature(300, random.integers(2**30))
        move(30)
        seen += np.mean([pdist(move(4)[heavy]) for _ in range(10)], axis=0)
model = LOCA(4, intrinsic_dim=2, random_state=0)  # a flat torus needs four coordinates
Z = model.fit_transform(bursts)
print(model.diagnostics_)

# %%
# The finding is right: distances between bonded atoms vibrate and say nothing about φ and ψ. The embedding follows the
# torsions about as well as Isomap and UMAP do; which of them is best depends on the seed. It is not an isometry of
# (φ, ψ), because thermal steps are not equally long everywhere.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, angle, name in zip(axes, angles.T, "φψ", strict=True):
    ax.scatter(*Z[:, :2].T, c=angle, cmap="twilight", s=8)
    ax.set(title=f"two of four coordinates, colour {name}", aspect="equal")
means, truth, near = bursts.mean(axis=1), np.c_[np.cos(angles), np.sin(angles)], KNeighborsRegressor(8)
rivals = {"isomap": Isomap(n_neighbors=8, n_components=4), "umap": UMAP(n_components=4, random_state=0, n_jobs=1)}
points = {"ours": Z, **{name: rival.fit_transform(means) for name, rival in rivals.items()}}
scores = {name: 1 - cross_val_score(near, found, truth, scoring="r2").mean() for name, found in points.items()}
print({name: f"R² {1 - score:.3f}" for name, score in scores.items()})
scores |= {"measure": "1 − R² of φ, ψ", "shape": bursts.shape, "verdict": model.diagnostics_.findings}
scores["right"] = "columns" in [found.name for found in model.diagnostics_.findings]
