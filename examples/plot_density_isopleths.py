"""
Isopleths of two densities
==========================

The same rows with two density estimators: SOSREP, the square of a sum of kernels, and
KDE, a sum of kernels.
"""

# %%
# Two half moons, and a few rows far away.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from isopleth import KDE, SOSREP

rng = np.random.default_rng(0)
moons, _ = make_moons(400, noise=0.08, random_state=0)
rows = np.vstack([moons, rng.uniform([-1.5, -1.2], [2.5, 1.7], size=(20, 2))])

# %%
# Both have the same length scale. The isopleth of 80 % surrounds the most likely region
# that holds 80 % of *new* rows: its level is a quantile of held-out log densities.

densities = {
    "SOSREP": SOSREP(length_scale=0.2, frame="scale").fit(rows),
    "KDE": KDE(length_scale=0.2, frame="scale").fit(rows),
}

fig, axes = plt.subplots(
    1, 2, figsize=(11, 4.4), layout="constrained", sharex=True, sharey=True
)
for ax, (name, density) in zip(axes, densities.items(), strict=True):
    density.plot(rows=rows, masses=(0.5, 0.8, 0.95), ax=ax)
    ax.set_title(name, loc="left")
plt.show()

# %%
# At the same length scale the square is narrower than the sum: the square of a Gaussian
# of length scale h is a Gaussian of length scale :math:`h/\sqrt 2`. A fair comparison
# uses the best length scale of each, measured on new rows.

new_rows, _ = make_moons(2000, noise=0.08, random_state=1)
scales = np.geomspace(0.05, 0.6, 12)

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for estimator, color in ((SOSREP, "#0072B2"), (KDE, "#D55E00")):
    gains = [
        estimator(length_scale=h, frame="scale").fit(moons).score(new_rows)
        / len(new_rows)
        for h in scales
    ]
    ax.plot(
        scales,
        gains,
        "o-",
        color=color,
        label=f"{estimator.__name__}: best {max(gains):.3f}",
    )
ax.set(
    xscale="log", xlabel="length scale", ylabel="mean log density of new rows (nats)"
)
ax.minorticks_off()
ax.set_xticks([0.05, 0.1, 0.2, 0.4], labels=["0.05", "0.1", "0.2", "0.4"])
ax.legend(frameon=False)
plt.show()
