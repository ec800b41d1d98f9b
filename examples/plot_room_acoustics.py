"""
A loudspeaker's place, from four microphones
============================================

**Physics.** A room of 6 × 4 × 3 m with reflecting walls (image sources by pyroomacoustics). A loudspeaker clicks at
400 places, 12 times at each, displaced by 2 cm or so every time; four microphones record 60 ms. Below 150 Hz a sound
wave is longer than 2 m, so neighbouring places sound alike, and the map is smooth.

**Hidden:** the place of the loudspeaker. **Truth:** metres on the floor.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pyroomacoustics as pra
from scipy.ndimage import gaussian_filter1d
from sklearn.manifold import Isomap
from umap import UMAP

from pyloca import LOCA
from pyloca.bursts import from_function
from pyloca.metrics import calibrate, place_errors

MICROPHONES = np.array([[0.3, 0.3, 1.2], [5.6, 0.5, 1.4], [5.5, 3.6, 1.0], [0.5, 3.5, 1.6]]).T
RATE = 8000


def record(places):
    """(n, 2) metres → (n, 4 · 480) samples of sound pressure"""
    sound = np.zeros((len(places), 4, 480))
    for row, (x, y) in zip(sound, places, strict=True):
        room = pra.ShoeBox([6, 4, 3], fs=RATE, materials=pra.Material(0.3), max_order=3)
        room.add_source([x, y, 1.5])
        room.add_microphone_array(MICROPHONES)
        room.compute_rir()
        for heard, (response,) in zip(row, room.rir, strict=True):
            heard[: len(response)] = response[:480]
    return sound.reshape(len(places), -1)


def below(cutoff, sound):
    """Low-pass by a Gaussian, one sample per millisecond: (…, 1920) → (…, 240)"""
    shape = (*sound.shape[:-1], 4, 480)
    return gaussian_filter1d(sound.reshape(shape), RATE / (2 * np.pi * cutoff))[..., ::8].reshape(*shape[:-2], -1)


X = np.random.default_rng(0).uniform([1, 1], [5, 3], size=(400, 2))
sound = from_function(record, X, burst_std=0.02, n_points=12, random_state=0).to_array()
model = LOCA(2, burst_std=0.02, random_state=0)
Z = model.fit_transform(below(150, sound))
print(model.diagnostics_)

# %%
# The same with sound up to 600 Hz: records of neighbouring places are now unlike each other, and the fit says so.

with warnings.catch_warnings(action="ignore"):  # a TrustWarning, which is printed here instead
    print(
        [found.name for found in LOCA(2, burst_std=0.02, random_state=0).fit(below(600, sound)).diagnostics_.findings]
    )

figure, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
axes[0].plot(below(150, sound)[0, 0])
axes[0].set(title="one record: four microphones, 60 ms each", xlabel="sample")
axes[1].scatter(*calibrate(X, Z).apply(Z).T, c=X[:, 0], s=8)
axes[1].set(title="places / m, from sound", aspect="equal")

# %%
seen, ours = below(150, sound).mean(axis=1), place_errors(X, Z).cep
isomap = place_errors(X, Isomap(n_components=2).fit_transform(seen), calibration="similar").cep
umap = place_errors(X, UMAP(random_state=0, n_jobs=1).fit_transform(seen), calibration="similar").cep
print(f"median error: LOCA {100 * ours:.0f} cm, Isomap {100 * isomap:.0f} cm, UMAP {100 * umap:.0f} cm")
faults = model.diagnostics_.findings
scores = {"measure": "median error, m", "shape": (400, 12, 240), "ours": ours, "isomap": isomap, "umap": umap}
scores |= {"verdict": faults, "right": (not faults) == (ours < 0.1)}
