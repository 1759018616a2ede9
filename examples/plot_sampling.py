"""
Drawing samples
===============

Exact draws from a density, and draws by Markov chains from a score.
"""

# %%
# Two half moons. SOSREP draws exactly, for every kernel.

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from isopleth import SOSREP, KernelScore, Search
from isopleth.sampling import sample

rows, _ = make_moons(500, noise=0.08, random_state=0)
density = SOSREP(kernel="matern52", length_scale=Search(), frame="scale").fit(rows)
score = KernelScore().fit(rows)
chains = sample(score, 500, random_state=0)

fig, axes = plt.subplots(
    1, 3, figsize=(11, 3.2), layout="constrained", sharex=True, sharey=True
)
drawn = [rows, density.sample(500, random_state=0), chains.rows]
names = ["rows", "drawn from SOSREP", "drawn from KernelScore"]
for ax, name, points in zip(axes, names, drawn, strict=True):
    ax.plot(*points.T, ".", color="#0072B2", markersize=3)
    ax.set_title(name, loc="left")
plt.show()

# %%
# The chains report how far they can be trusted.

print(chains)
