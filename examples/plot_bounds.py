"""
Columns with bounds
===================

Durations are positive and shares lie between 0 and 1. The parameter ``bounds`` tells a
density so.
"""

# %%
# Waiting times, many of them short. Without a bound, the density puts some probability
# on negative times, and too little where most rows are.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from isopleth import KDE, SOSREP

rng = np.random.default_rng(0)
hours = rng.lognormal(0, 0.8, size=(400, 1))
grid = np.linspace(-1.5, 8, 1000)[:, None]

fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for ax, estimator in zip(axes, (SOSREP, KDE), strict=True):
    for bounds, color, name in (
        (None, "#D55E00", "no bound"),
        ({0: (0, None)}, "#0072B2", "bound at 0"),
    ):
        density = estimator(bounds=bounds).fit(hours)
        p = np.exp(density.score_samples(grid))
        beyond = np.trapezoid(p[grid[:, 0] < 0], grid[grid[:, 0] < 0, 0])
        ax.plot(grid, p, color=color, label=f"{name}: {beyond:.1%} below 0")
    shown = hours[hours < 8]
    ax.plot(shown, np.full(len(shown), -0.02), "|", color="0.5", markersize=6)
    ax.set_title(estimator.__name__, loc="left")
    ax.set_xlabel("hours")
    ax.legend(frameon=False)
axes[0].set_ylabel("density")
plt.show()

# %%
# A column with one bound is fitted as a logarithm, a column with two bounds as a logit.
# As a consequence the density is 0 at the bound, and close to it, where logarithms
# change fast, single rows can make narrow peaks. Do not use a bound if many rows lie
# exactly on it.
#
# An amount has one bound, a share has two. Samples and isopleths stay inside.

amount = rng.lognormal(0, 0.8, size=600)
share = rng.beta(3 + 2 * amount, 6)
table = pd.DataFrame({"amount": amount, "share": share})
density = SOSREP(bounds={"amount": (0, None), "share": (0, 1)}).fit(table)
drawn = density.sample(600, random_state=0)
print(
    "smallest and largest sampled share:",
    drawn[:, 1].min().round(3),
    drawn[:, 1].max().round(3),
)

fig, axes = plt.subplots(
    1, 2, figsize=(11, 4.2), layout="constrained", sharex=True, sharey=True
)
density.plot(rows=table, ax=axes[0])
axes[0].set_title("the rows", loc="left")
density.plot(rows=pd.DataFrame(drawn, columns=table.columns), ax=axes[1])
axes[1].set_title("as many samples", loc="left")
plt.show()
