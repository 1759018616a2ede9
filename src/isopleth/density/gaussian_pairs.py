"""Exact sampling of the square of a Gaussian expansion."""

from __future__ import annotations

from typing import Any

import numpy as np

from isopleth._namespace import Home, namespace, to_numpy
from isopleth.expansion import KernelExpansion
from isopleth.operators import Operator
from isopleth.operators.blocks import Matrix


def sample_pairs(expansion: KernelExpansion, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    r"""Rows of :math:`f^2/Z` for a Gaussian kernel at unit length scale.

    :math:`f^2` is a mixture over pairs of centres, of weights :math:`\alpha_i \alpha_j e^{-|c_i - c_j|^2/4}`, means
    the midpoints and variance 1/2: draw i from the weights summed over j, then j given i, then the Gaussian.

    Parameters
    ----------
    expansion : KernelExpansion
        With positive coefficients.
    n_samples : int
        Number of rows.
    rng : Generator
        Where chance comes from.

    Returns
    -------
    array of shape (n_samples, d)
    """
    centers, alpha = expansion.centers, to_numpy(expansion.coefficients)
    convolution = expansion.kernel.self_convolution()
    block = Matrix("pair weights", lambda kernel: convolution.psi)
    budget: dict[str, Any] = {"memory_limit": expansion.memory_limit, "n_jobs": expansion.n_jobs}
    sums = Operator(expansion.kernel, centers, block=block, **budget).matvec(expansion.coefficients)
    first = alpha * to_numpy(sums)
    i = np.sort(rng.choice(len(alpha), size=n_samples, p=first / first.sum()))
    j = np.empty_like(i)
    chosen, start = np.unique(i, return_index=True)
    step = max(1, int(expansion.memory_limit / (32 * len(alpha))))
    for lo in range(0, len(chosen), step):
        part = chosen[lo : lo + step]
        some = namespace(centers).take(centers, Home.of(centers).send(part), axis=0)
        weights = to_numpy(Operator(expansion.kernel, some, centers, block=block, **budget).dense())
        cumulative = np.cumsum(weights * alpha, axis=1)
        stops = np.append(start, n_samples)[lo : lo + len(part) + 1]
        for row, a, b in zip(cumulative, stops[:-1], stops[1:], strict=True):
            j[a:b] = np.searchsorted(row, rng.uniform(size=b - a) * row[-1])
    centers = to_numpy(centers)
    z = 0.5 * (centers[i] + centers[j]) + rng.normal(scale=np.sqrt(0.5), size=(n_samples, centers.shape[1]))
    return rng.permutation(z)
