"""
Kernels
=======

How similar are two rows at a given distance? Profiles and spectra of the kernels.
"""

# %%
# A kernel is a function of the distance. Kernels differ in smoothness at 0 and in their
# tails: the Laplacian has a kink, SDO has negative values, and the inverse multiquadric
# decreases so slowly that its integral is infinite.

import matplotlib.pyplot as plt
import numpy as np

from isopleth import SOSREP
from isopleth.kernels import IMQ, SDO, Gaussian, Laplacian, Matern

kernels = {
    "Gaussian": Gaussian(dim=2),
    "Matérn 5/2": Matern(dim=2, nu=2.5),
    "Laplacian": Laplacian(dim=2),
    "inverse multiquadric": IMQ(dim=2),
    "SDO, order 3": SDO(dim=2, order=3),
}
colors = ["#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"]
u = np.linspace(0, 8, 600)

fig, (near, far) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for (name, kernel), color in zip(kernels.items(), colors, strict=True):
    near.plot(u, kernel(u**2), color=color, label=name)
    far.plot(u, np.abs(kernel(u**2)), color=color)
near.axhline(0, color="0.7", linewidth=0.8)
near.set(xlabel="distance in length scales", ylabel="kernel")
near.legend(frameon=False)
far.set(
    yscale="log",
    ylim=(1e-6, 1.5),
    xlabel="distance in length scales",
    ylabel="size of the kernel",
)
plt.show()

# %%
# A kernel is also a mean of cosines, :math:`\varphi(|x|^2) = \mathrm{E} \cos(\omega
# \cdot x)`. The distribution of the frequency vectors :math:`\omega` is its spectrum:
# the faster it decreases, the smoother the kernel. That of SDO is flat up to 1 and then
# decreases steeply.

rng = np.random.default_rng(0)
bins = np.geomspace(0.05, 50, 60)

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (name, kernel), color in zip(kernels.items(), colors, strict=True):
    length = np.linalg.norm(kernel.sample_frequencies(200_000, rng), axis=1)
    count, _ = np.histogram(length, bins)
    ring = np.pi * np.diff(bins**2)  # per area, so that flat looks flat
    ax.plot(
        np.sqrt(bins[1:] * bins[:-1]),
        np.where(count > 20, count, np.nan) / 200_000 / ring,
        color=color,
        label=name,
    )
ax.set(
    xscale="log",
    yscale="log",
    xlabel="length of the frequency vector",
    ylabel="density of the spectrum",
    ylim=(1e-6, 10),
)
ax.legend(frameon=False)
plt.show()

# %%
# SOSREP of the same rows with three of the kernels. A rough kernel gives peaks at the
# rows; SDO gives the smoothest curve.

rows = np.sort(np.r_[rng.normal(-2, 0.5, 40), rng.normal(1, 1, 60)])[:, None]
grid = np.linspace(-5, 5, 500)[:, None]

fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
for ax, name in zip(axes, ("gaussian", "laplacian", "sdo"), strict=True):
    density = SOSREP(kernel=name, length_scale=0.7, frame="scale").fit(rows)
    ax.plot(grid, np.exp(density.score_samples(grid)), color="#0072B2")
    ax.plot(rows, np.full(len(rows), -0.01), "|", color="0.4")
    ax.set_title(name, loc="left")
plt.show()
