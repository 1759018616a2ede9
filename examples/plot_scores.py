"""
Scores and their log density
============================

The score of a density is the gradient of its logarithm: the direction in which it
increases, and how steeply. It is estimated from rows alone.
"""

# %%
# Two clusters of different width with a known density. The estimates should equal its
# score.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp

from isopleth import KernelScore
from isopleth.score import SSGE

CENTRES, WIDTHS = np.array([[-1.5, -0.5], [1.5, 0.8]]), np.array([0.9, 0.6])


def draw(n, rng):
    which = rng.integers(2, size=n)
    return CENTRES[which] + WIDTHS[which, None] * rng.normal(size=(n, 2))


def truth(x):
    """Log density and score of the mixture."""
    apart = x[:, None] - CENTRES
    logs = -np.sum(apart**2, axis=2) / (2 * WIDTHS**2) - np.log(
        2 * 2 * np.pi * WIDTHS**2
    )
    total = logsumexp(logs, axis=1)
    shares = np.exp(logs - total[:, None]) / WIDTHS**2
    return total, -np.einsum("nk,nkd->nd", shares, apart)


rng = np.random.default_rng(0)
rows = draw(400, rng)

# %%
# :class:`~isopleth.KernelScore` fits a curl-free field and chooses length scale and
# strength by held-out rows; with a Gaussian base measure, its log density can be
# normalised. :class:`~isopleth.score.SSGE` is the spectral estimator with a diagonal
# kernel and fixed parameters.

scores = {
    "KernelScore": KernelScore(base="gaussian").fit(rows),
    "SSGE, diagonal": SSGE(kernel="gaussian", energy=0.99).fit(rows),
}
new_rows = draw(2000, rng)
true_score = truth(new_rows)[1]
mean_square = np.mean(np.sum(true_score**2, axis=1))
print(f"mean square of the true score {mean_square:.2f}")
for name, score in scores.items():
    error = np.mean(
        np.sum((score.grad_log_density(new_rows) - true_score) ** 2, axis=1)
    )
    print(f"{name:15s} mean squared error {error:.3f}")

# %%
# Arrows point in the direction in which the density increases. They are drawn where the
# density is not small.

gx, gy = np.meshgrid(np.linspace(-4, 3.6, 20), np.linspace(-3.2, 3, 17))
grid = np.column_stack([gx.ravel(), gy.ravel()])
log_density, true_arrows = truth(grid)
near = log_density > -6

fig, axes = plt.subplots(
    1, 3, figsize=(12, 3.7), layout="constrained", sharex=True, sharey=True
)
fields = {"Truth": true_arrows} | {
    name: score.grad_log_density(grid) for name, score in scores.items()
}
for ax, (name, arrows) in zip(axes, fields.items(), strict=True):
    ax.plot(*rows.T, ".", color="#BBBBBB", markersize=3)
    ax.quiver(
        *grid[near].T,
        *arrows[near].T,
        color="#0072B2",
        angles="xy",
        scale=55,
        width=0.004,
    )
    ax.set_title(name, loc="left")
    ax.set_aspect("equal")
plt.show()

# %%
# A curl-free score is the gradient of a log density. The Gaussian base measure
# determines its tails, and samples from it estimate the normalising constant. The
# effective number of samples says how far to trust that estimate.

score = scores["KernelScore"]
normalizer = score.log_normalizer(random_state=0)
effective = normalizer.effective_sample_size
print(
    f"log normaliser {normalizer.log_value:.3f}, from {effective:.0f} effective draws"
)

fx, fy = np.meshgrid(np.linspace(-4.2, 3.8, 90), np.linspace(-3.4, 3.2, 80))
fine = np.column_stack([fx.ravel(), fy.ravel()])
levels = np.arange(-8, 0, 1)

fig, axes = plt.subplots(
    1, 2, figsize=(9.4, 4.5), layout="constrained", sharex=True, sharey=True
)
estimate = score.log_density(fine) - normalizer.log_value
for ax, (name, values) in zip(
    axes, (("Truth", truth(fine)[0]), ("KernelScore", estimate)), strict=True
):
    ax.plot(*rows.T, ".", color="#BBBBBB", markersize=3, zorder=0)
    lines = ax.contour(
        fx, fy, values.reshape(fx.shape), levels=levels, cmap="viridis", linewidths=1.4
    )
    ax.clabel(lines, fmt="%d", fontsize=8)
    ax.set_title(f"{name}: log density in nats", loc="left")
    ax.set_aspect("equal")
plt.show()
