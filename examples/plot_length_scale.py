"""
Choosing a length scale
=======================

Choose a length scale by held-out rows: by their likelihood, or by the Hyvärinen loss,
exact or with random probes.
"""

# %%
# Two clusters of different width in three columns.

import matplotlib.pyplot as plt
import numpy as np

from isopleth import SOSREP, Search
from isopleth.density import hutchinson_loss

rng = np.random.default_rng(0)
rows = np.vstack([rng.normal(0, 1, size=(300, 3)), rng.normal(3, 0.5, size=(150, 3))])

# %%
# Pass a ``Search`` instead of a length scale. Its result is a table and a picture.

searches = {
    name: SOSREP(length_scale=Search(criterion=name), frame="scale").fit(rows)
    for name in ("hyvarinen", "likelihood")
}
print(searches["hyvarinen"].search_path_)

fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for ax, density in zip(axes, searches.values(), strict=True):
    density.search_path_.plot(ax=ax)
plt.show()

# %%
# A scale that is too small fits the rows and not their distribution; a scale that is
# too large fits neither. Both criteria find the same region. The Hyvärinen loss does
# not need the normaliser of the density.
#
# The loss is exact: :math:`2\,\mathrm{E}\,\Delta f/f`, one more sum of kernels. If only
# values of a log density are known, it can be estimated by random probes, as in the
# paper. Probes of random signs are unbiased:

density = searches["hyvarinen"]
new_rows = np.vstack(
    [rng.normal(0, 1, size=(200, 3)), rng.normal(3, 0.5, size=(100, 3))]
)
estimate = hutchinson_loss(
    density.score_samples, new_rows, unit=density.unit_, n_probes=50, random_state=0
)
print(f"exact {density.hyvarinen_loss(new_rows):.4f}")
print(f"by 50 probes a row {estimate.value:.4f} ± {estimate.standard_error:.4f}")

# %%
# Probes drawn from {-1, 0, 1}, as in algorithm 6 of the paper, have covariance 2/3: a
# third of the trace is lost, while the gradients count in full. That moves the minimum.

factors = density.search_path_.factors
exact, squares = [], []
for scale in density.search_path_.length_scales:
    fitted = SOSREP(length_scale=scale, frame="scale").fit(rows)
    exact.append(fitted.hyvarinen_loss(new_rows))
    squares.append(
        0.5
        * np.mean(
            np.sum((fitted.grad_log_density(new_rows) * fitted.unit_) ** 2, axis=1)
        )
    )
exact, squares = np.array(exact), np.array(squares)
biased = 2 / 3 * (exact - squares) + squares

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, loss, color in (
    ("exact", exact, "#0072B2"),
    ("with probes from {-1, 0, 1}", biased, "#D55E00"),
):
    ax.plot(
        factors,
        loss,
        "o-",
        color=color,
        label=f"{name}: best at {factors[loss.argmin()]:.2f}",
    )
ax.set(
    xscale="log",
    xlim=(0.3, 9),
    ylim=(exact.min() - 1, 5),
    xlabel="multiple of Scott's rule",
    ylabel="Hyvärinen loss of new rows",
)
ax.minorticks_off()
ax.set_xticks([0.5, 1, 2, 4, 8], labels=["0.5", "1", "2", "4", "8"])
ax.legend(frameon=False)
plt.show()
