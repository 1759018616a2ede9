"""Hyvarinen losses of rows held out, for many strengths of a regulariser at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isopleth.score.base_measure import GaussianBase
from isopleth.score.spaces import Space
from isopleth.score.system import Accuracy, SampleSystem, Solution, lanczos_path, solve_path
from isopleth.solvers.regularizers import Regularizer, SpectralCutoff

ACCURACY = Accuracy(tol=1e-3, max_iter=300)
"""Of Krylov bases: far below what rows held out can tell."""

DENSE = 600
"""Unknowns up to which an eigendecomposition is quicker than a Krylov basis of that accuracy."""


class Held:
    """What all fits to some rows share, seen at other rows that were held out; in frame coordinates."""

    def __init__(self, space: Space, samples: np.ndarray, share: np.ndarray, x: np.ndarray) -> None:
        self.space, self.samples, self.share, self.x = space, samples, share, x
        self.product = space.operator(x, samples).store()
        self.zeta = space.zeta(x, samples, share)
        self.zeta_divergence = space.zeta_divergence(x, samples, share)

    def terms(self, coefficients: np.ndarray, factor: float, base: GaussianBase | None) -> np.ndarray:
        r""":math:`\operatorname{div} s + |s|^2/2` of each row, for coefficients of the kernels at the samples and of zeta."""
        value = self.product.matvec(coefficients) + factor * self.zeta
        divergence = self.space.divergence(self.x, self.samples, coefficients) + factor * self.zeta_divergence
        if base is not None:
            value = value + base.value(self.x)
            divergence = divergence + base.divergence(self.x)
        return divergence + 0.5 * np.sum(value * value, axis=1)


def held_out_terms(
    space: Space,
    z: np.ndarray,
    weights: np.ndarray,
    parts: Sequence[np.ndarray],
    bases: Sequence[str | None],
    regularizers: Sequence[Regularizer],
) -> np.ndarray:
    """Loss of each row by fits without its part, of shape (bases, regularisers, rows); inf where it is not finite.

    Parameters
    ----------
    space : Space
        Where scores are sought.
    z : ndarray of shape (n, d)
        Distinct rows in frame coordinates.
    weights : ndarray of shape (n,)
        Repetitions of each.
    parts : sequence of ndarray of shape (n,), bool
        The rows of each part; together all.
    bases, regularizers : sequences
        What to try. One eigendecomposition or, for each base, one Krylov basis a part serves all regularisers.
    """
    out = np.empty((len(bases), len(regularizers), len(z)))
    for part in parts:
        samples, left = z[~part], weights[~part]
        share = left / left.sum()
        if len(samples) < 2:
            out[..., part] = np.inf
            continue
        held = Held(space, samples, share, z[part])
        plain = SampleSystem(space, samples, share, whole=any(_sees_all(r) for r in regularizers))
        if plain.size <= DENSE:
            plain.spectrum  # noqa: B018 - computed once, for all bases
        for i, name in enumerate(bases):
            base = GaussianBase.fit(samples, left) if name == "gaussian" else None
            out[i][:, part] = _terms(plain, held, base, regularizers)
    return np.where(np.isfinite(out), out, np.inf)


def _sees_all(regularizer: Regularizer) -> bool:
    return isinstance(regularizer, SpectralCutoff) and regularizer.needs_all_eigenvalues


def _terms(
    plain: SampleSystem, held: Held, base: GaussianBase | None, regularizers: Sequence[Regularizer]
) -> np.ndarray:
    if base is None:
        system, of_base = plain, np.zeros_like(held.samples)
    else:
        at_base = base.value(held.samples)
        system, of_base = plain.on(at_base), held.share[:, None] * at_base

    def terms(solution: Solution) -> np.ndarray:
        coefficients = system.coefficients(solution.multipliers) + solution.factor * of_base
        return held.terms(coefficients, solution.factor, base)

    if DENSE < system.size and not any(_sees_all(r) for r in regularizers):
        solutions = lanczos_path(system, regularizers, ACCURACY)
    else:
        solutions = solve_path(system, regularizers, ACCURACY)
    return np.array([terms(solution) for solution in solutions])


def base_terms(z: np.ndarray, weights: np.ndarray, parts: Sequence[np.ndarray]) -> np.ndarray:
    """The same of the Gaussian base alone, of shape (n,)."""
    out = np.full(len(z), np.inf)
    for part in parts:
        if (~part).sum() < 2:
            continue
        base = GaussianBase.fit(z[~part], weights[~part])
        value = base.value(z[part])
        out[part] = base.divergence(z[part]) + 0.5 * np.sum(value * value, axis=1)
    return out
