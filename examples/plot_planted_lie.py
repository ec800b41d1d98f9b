"""
A planted lie: what the tool says of shuffled, folded and noisy data
====================================================================

**Physics.** None: this is about honesty. Bursts are fitted as they are, and spoilt in six ways that happen in
laboratories. An embedding comes out nearly every time; the question is whether you are warned.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import Isomap
from umap import UMAP

from pyloca import LOCA, datasets
from pyloca.errors import PylocaError
from pyloca.metrics import place_errors

data = datasets.mushroom(400, 40, random_state=0)
clean, random, order = data.bursts.to_array(), np.random.default_rng(0), np.random.default_rng(1).permutation(400)
middle = clean.mean(axis=1, keepdims=True)
lift = np.array([[1.0, 0.3, 0.2, 0.5, -0.4, 0.1], [0.2, 1.0, -0.3, 0.1, 0.4, 0.6]])
six = np.tanh(clean @ lift)  # six sensors in place of two
states = random.uniform(size=(600, 1, 2)) + 0.01 * random.standard_normal((600, 40, 2))
eight = np.stack([np.sin(6.2 * states[..., 0]), np.sin(12.4 * states[..., 0]) / 2, states[..., 1]], axis=-1)
sphere = datasets.sphere(random_state=0).bursts
grown = np.where(np.arange(400)[:, None, None] % 10, clean, middle + 4 * (clean - middle)[..., ::-1])
cases = {
    "as measured": clean,
    "bursts shuffled": clean[order] - middle[order] + middle,
    "a tenth turned and grown": grown,
    "undeclared noise": six + 0.01 * random.standard_normal(six.shape),
    "sheet crosses itself": eight,
    "sphere pressed flat": sphere,
    "nothing ever moved": six.mean(axis=1, keepdims=True) + 0.01 * random.standard_normal(six.shape),
}

# %%
# Each is fitted with the same call. A `PylocaError` is a refusal before any training; a finding is a warning that
# comes with the result.

said, embeddings = {}, {}
for name, bursts in cases.items():
    with warnings.catch_warnings(action="ignore"):
        try:
            model = LOCA(2, burst_std=0.01, random_state=0).fit(bursts)
        except PylocaError as error:
            said[name] = "refused"
            print(f"{name}: refused, {str(error).split(':')[0]}")
            continue
    said[name] = ", ".join(found.name for found in model.diagnostics_.findings)
    embeddings[name] = model.embedding_
    print(f"{name}: {said[name] or 'no fault found'}")

figure, axes = plt.subplots(2, 4, figsize=(10, 5.6), layout="constrained")
for ax, name in zip(axes.flat, cases, strict=False):
    if name in embeddings:
        ax.scatter(*embeddings[name].T, s=3)
    ax.set_title(f"{name}:\n{said[name] or 'no fault found'}", fontsize=9)
for ax in axes.flat:
    ax.set_axis_off()

# %%
# Isomap and UMAP return a picture for all seven cases without a word of warning. The error is that of the clean case.

isomap = place_errors(data.X, Isomap(n_components=2).fit_transform(data.Y), calibration="similar").cep
umap = place_errors(data.X, UMAP(random_state=0, n_jobs=1).fit_transform(data.Y), calibration="similar").cep
ours = place_errors(data.X, embeddings["as measured"]).cep
told = [bool(said[name]) == (name != "as measured") for name in cases]
print(f"right in {sum(told)} of {len(told)} cases; clean error: LOCA {ours:.2g}, Isomap {isomap:.2g}, UMAP {umap:.2g}")
scores = {"measure": "median error of the clean case", "shape": (400, 40, 2), "ours": ours, "isomap": isomap}
scores |= {"umap": umap, "verdict": f"{sum(told)} of {len(told)} right", "right": all(told)}
