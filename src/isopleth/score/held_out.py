"""Hyvarinen losses of rows held out, for many strengths of a regulariser at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from isopleth._namespace import HOST, Array, Home, namespace, to_numpy
from isopleth.score.base_measure import GaussianBase
from isopleth.score.solution import Accuracy, lanczos_path, solve_path
from isopleth.score.spaces import Space
from isopleth.score.system import SampleSystem
from isopleth.solvers.regularizers import IterativeRegularizer, Regularizer, SpectralCutoff, Tikhonov

ACCURACY = Accuracy(tol=1e-4, max_iter=300)
"""Of Krylov bases: below what rows held out can tell."""

DENSE = 600
"""Unknowns up to which an eigendecomposition is quicker than a Krylov basis of that accuracy."""


class Coefficients(NamedTuple):
    """Of a fitted score: those of the kernels at the samples, of shape (m, d), and the factor of zeta."""

    kernels: Array
    zeta: float


class FitPath:
    """Fits to some rows in frame coordinates, for several bases and strengths, that share what can be shared.

    Parameters
    ----------
    space : Space
        Where scores are sought.
    samples : array of shape (m, d)
        Distinct rows.
    weights : array of shape (m,)
        Repetitions of each.
    regularizers : sequence of Regularizer
        What to fit with.
    accuracy : Accuracy
        Of Krylov bases.
    """

    def __init__(
        self,
        space: Space,
        samples: Array,
        weights: Array,
        regularizers: Sequence[Regularizer],
        accuracy: Accuracy = ACCURACY,
    ) -> None:
        self._regularizers = regularizers
        self.samples, self.share = samples, weights / namespace(weights).sum(weights)
        sees_all = any(isinstance(r, SpectralCutoff) and r.needs_all_eigenvalues for r in regularizers)
        self._plain = SampleSystem(space, samples, self.share, whole=sees_all)
        # Sums of kernels that interpolate the values at the samples want far more of a Krylov basis.
        cheap = all(_has_zeta(r) for r in regularizers)
        self._dense = sees_all or (self._plain.small and not (cheap and self._plain.size > DENSE))
        self._accuracy = accuracy if cheap else Accuracy(accuracy.tol**2, accuracy.max_iter)
        if self._dense:
            self._plain.spectrum  # noqa: B018 - once, for all bases

    def on(self, base: GaussianBase | None) -> list[Coefficients]:
        """The fit by each regulariser, on top of a base."""
        at_base = namespace(self.samples).zeros_like(self.samples) if base is None else base.value(self.samples)
        system = self._plain if base is None else self._plain.on(at_base)
        solver = solve_path if self._dense else lanczos_path
        return [
            Coefficients(system.coefficients(s.multipliers) + s.factor * self.share[:, None] * at_base, s.factor)
            for s in solver(system, self._regularizers, self._accuracy)
        ]


def _has_zeta(regularizer: Regularizer) -> bool:
    if isinstance(regularizer, Tikhonov):
        return not regularizer.truncated
    return isinstance(regularizer, IterativeRegularizer)


class View:
    """Fitted scores seen at some rows `x`; what all fits to the same samples share is computed once."""

    def __init__(self, space: Space, path: FitPath, x: Array) -> None:
        # Each may keep its matrices: they share the memory limit.
        half = replace(space, memory_limit=space.memory_limit / 2)
        self._space, self._x = space, x
        self._product = half.operator(x, path.samples).store()
        self._flux = half.flux(x, path.samples).store()
        self._zeta = space.zeta(x, path.samples, path.share)
        self._zeta_divergence = space.zeta_divergence(x, path.samples, path.share)

    def value(self, fitted: Coefficients, base: GaussianBase | None) -> Array:
        """The score, of shape (n, d)."""
        value = self._product.matvec(fitted.kernels) + fitted.zeta * self._zeta
        return value if base is None else value + base.value(self._x)

    def hyvarinen_terms(self, fitted: Coefficients, base: GaussianBase | None) -> Array:
        r""":math:`\operatorname{div} s + |s|^2/2`, of shape (n,)."""
        divergence = self._space.divergence_by(self._flux, fitted.kernels) + fitted.zeta * self._zeta_divergence
        if base is not None:
            divergence = divergence + base.divergence(self._x)
        value = self.value(fitted, base)
        return divergence + 0.5 * namespace(value).sum(value**2, axis=1)


def held_out_terms(
    space: Space,
    z: np.ndarray,
    weights: np.ndarray,
    part: np.ndarray,
    bases: Sequence[str | None],
    regularizers: Sequence[Regularizer],
    home: Home = HOST,
) -> np.ndarray:
    """Loss of each row of a part by fits without it, of shape (bases, regularisers, rows); inf where it is not finite.

    Parameters
    ----------
    space : Space
        Where scores are sought.
    z : ndarray of shape (n, d)
        Distinct rows in frame coordinates.
    weights : ndarray of shape (n,)
        Repetitions of each.
    part : ndarray of shape (n,), bool
        The rows held out.
    bases, regularizers : sequences
        What to try.
    home : Home
        Where to.
    """
    path = FitPath(space, home.send(z[~part]), home.send(weights[~part]), regularizers)
    view = View(space, path, home.send(z[part]))

    def terms(name: str | None) -> list[np.ndarray]:
        base = GaussianBase.fit(z[~part], weights[~part]).at(home) if name == "gaussian" else None
        return [to_numpy(view.hyvarinen_terms(fitted, base)) for fitted in path.on(base)]

    out = np.array([terms(name) for name in bases])
    return np.where(np.isfinite(out), out, np.inf)


def base_terms(z: np.ndarray, weights: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The same of the Gaussian base alone, of shape (rows,)."""
    base = GaussianBase.fit(z[~part], weights[~part])
    return np.asarray(base.divergence(z[part]) + 0.5 * np.sum(base.value(z[part]) ** 2, axis=1))
