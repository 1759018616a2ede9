"""Choosing the scale, the base and the strength of a score by what they do for rows held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from isopleth.backend import NUMPY, Array, Backend, namespace, to_numpy
from isopleth.frame import bounded
from isopleth.operators.threads import effective_n_jobs, map_threads
from isopleth.rows import held_out_parts
from isopleth.score.field import GaussianBase
from isopleth.score.memory import MemoryPlan
from isopleth.score.spaces import Space
from isopleth.score.system import Accuracy, SampleSystem, lanczos_path, solve_path, solving_backend
from isopleth.solvers.regularizers import IterativeRegularizer, Regularizer, SpectralCutoff, Tikhonov

# Of the median distance. On near-Gaussian data the best were 4 to 8, on separated modes 0.5 to 2.
FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)

LARGEST_ALPHA, STEPS_A_DECADE = 10.0, 4
# Over the number of rows: the smallest alpha. Eigenvalues of K/M below 1/M are noise, and a few rows held out do not
# always tell that.
FLOOR = 0.3

# An alpha at which nothing is left but the base.
ALONE = 1e6

# Standard errors by which a smaller loss has to be smaller: for any kernel at all, and for a smaller alpha. The first
# is the larger, since the smallest of some hundred losses is smaller than it should be.
ALONE_ERRORS, ALPHA_ERRORS = 1.5, 0.5

# Bases and scales are compared on so many rows at most.
COMPARED_ROWS = 512

# No more parts are held out than have so many rows together: a mean over them is known well enough, and a fit to the
# others is what takes the time.
HELD_OUT = 2000


@dataclass(frozen=True)
class Candidates:
    """What is left to the folds.

    Parameters
    ----------
    bases : tuple of {None, "gaussian"}
        Base measures.
    factors : tuple of float
        Multiples of a base scale.
    regularizer : Regularizer, optional
        If the choice of strength is made already.
    """

    bases: tuple[str | None, ...]
    factors: tuple[float, ...]
    regularizer: Regularizer | None = None

    def regularizers(self, n: int) -> tuple[Regularizer, ...]:
        """For `n` rows, the strongest first."""
        if self.regularizer is not None:
            return (self.regularizer,)
        decades = math.log10(LARGEST_ALPHA * n / FLOOR)
        exponents = -np.arange(int(STEPS_A_DECADE * decades) + 1) / STEPS_A_DECADE
        return tuple(Tikhonov(float(LARGEST_ALPHA * 10.0**e), truncated=False) for e in exponents)

    @property
    def alone(self) -> bool:
        """Whether the Gaussian base without any kernel is one of them."""
        return self.regularizer is None and "gaussian" in self.bases


@dataclass(frozen=True)
class Rows:
    """Distinct rows, in a unit of each column.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        Centred rows, in the units of the data.
    weights : ndarray of shape (n,)
        Repetitions of each.
    base_scale : ndarray of shape (d,)
        The length scales that factors multiply.
    unit : float
        Units of the loss in base scales, the same for all columns.
    folds : int
        The number of folds.
    backend : Backend
        Where fits are made that the host has not done at once.
    """

    values: np.ndarray
    weights: np.ndarray
    base_scale: np.ndarray
    unit: float
    folds: int
    backend: Backend = NUMPY

    def some(self, n: int) -> Rows:
        """At most `n` of them, at random and always the same."""
        if len(self.values) <= n:
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(len(self.values))[:n])
        return replace(self, values=self.values[chosen], weights=self.weights[chosen])

    @property
    def enough(self) -> bool:
        """Whether rows held out tell anything; if not, all losses are infinite and the strongest regulariser is taken."""
        return len(self.values) >= 2 * self.folds

    @property
    def parts(self) -> list[np.ndarray]:
        """Which are held out in turn: all of them, or the first few parts where these have HELD_OUT rows together."""
        parts = held_out_parts(len(self.values), self.folds)
        return parts[: max(1, -(-HELD_OUT * len(parts) // len(self.values)))]

    @property
    def judged(self) -> np.ndarray:
        """Which are held out at all."""
        return np.any(self.parts, axis=0)

    def losses(
        self,
        space: Space,
        factors: Sequence[float],
        bases: Sequence[str | None],
        regularizers: Sequence[Regularizer],
    ) -> np.ndarray:
        """Loss of each row that is held out by each fit, of shape (bases, factors, regularisers, rows)."""
        out = np.full((len(bases), len(factors), len(regularizers), len(self.values)), np.inf)
        if not self.enough:
            return out[..., self.judged]
        tasks = list(product(range(len(factors)), self.parts))
        backend = solving_backend(space, self.values, self.backend)
        # A device, or a library with threads of its own, is kept busy by one fit.
        workers = self._at_once(space, len(tasks), len(bases) * len(regularizers)) if backend == NUMPY else 1
        # Fits beside one another keep more processors busy than the small matrices of one fit do.
        alone = replace(space, n_jobs=1, memory_limit=space.memory_limit / workers) if workers > 1 else space

        def work(task: tuple[int, np.ndarray]) -> None:
            f, part = task
            terms = held_out_terms(alone, self._framed(factors[f]), self.weights, part, bases, regularizers, backend)
            out[:, f, :, part] = np.moveaxis(self._in_units(terms, factors[f]), -1, 0)

        map_threads(work, tasks, workers)
        return out[..., self.judged]

    def _at_once(self, space: Space, tasks: int, fits: int) -> int:
        """Parts that are fitted beside one another: no more than leave each the memory to store its products."""
        rows, columns = self.values.shape
        need = MemoryPlan.of(replace(space, n_jobs=1), rows - rows // self.folds, columns, fits).to_store
        return max(1, min(effective_n_jobs(space.n_jobs), tasks, int(space.memory_limit // need)))

    def base_losses(self) -> np.ndarray:
        """Loss of each row that is held out by the Gaussian alone."""
        out = np.full(len(self.values), np.inf)
        if self.enough:
            z = self._framed(1.0)
            for part in self.parts:
                out[part] = self._in_units(base_terms(z, self.weights, part), 1.0)
        return out[self.judged]

    def _in_units(self, terms: np.ndarray, factor: float) -> np.ndarray:
        """Losses in units of the data, inf where they are beyond all numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.float64(self.unit / factor) ** 2 * terms
        return np.where(np.isfinite(out), out, np.inf)

    def _framed(self, factor: float) -> np.ndarray:
        with np.errstate(over="ignore"):
            return bounded(self.values / (factor * self.base_scale))

    def mean(self, losses: np.ndarray) -> np.ndarray:
        """Weighted means over the last axis, the rows held out."""
        weights = self.weights[self.judged]
        return np.asarray(losses @ (weights / weights.sum()))

    def error(self, losses: np.ndarray) -> np.ndarray:
        """Standard error of :meth:`mean`, copies of a row being one observation."""
        weights = self.weights[self.judged]
        n, share = len(weights), weights / weights.sum()
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite losses there is none
            apart = losses - self.mean(losses)[..., None]
            return np.asarray(np.sqrt(n / (n - 1) * (apart**2 @ share**2)))


def select(space: Space, rows: Rows, candidates: Candidates) -> SelectionPath:
    r"""Choose by the mean Hyvarinen loss of rows held out, in two rounds.

    First bases and scales, each with its best strength: the smallest loss wins. Then, with all rows, the strength: the largest
    alpha whose loss is within ALPHA_ERRORS standard errors of the smallest one. The error is that of the difference of the two,
    row by row. The Gaussian base alone is the strongest regulariser of all, whatever base the first round has chosen, and is
    taken if it is within ALONE_ERRORS.

    Parameters
    ----------
    space : Space
        Where scores are sought.
    rows : Rows
        What to fit.
    candidates : Candidates
        What to choose from.

    Returns
    -------
    SelectionPath
    """
    some = rows.some(COMPARED_ROWS)
    tried = candidates.regularizers(len(some.values))
    found = some.losses(space, candidates.factors, candidates.bases, tried)
    compared = some.mean(found).min(axis=-1)
    b, f = np.unravel_index(int(np.argmin(compared)), compared.shape)
    base, factor = candidates.bases[b], candidates.factors[f]
    if some is rows:
        regularizers, terms = tried, found[b, f]
    else:
        regularizers = candidates.regularizers(len(rows.values))
        terms = rows.losses(space, (factor,), (base,), regularizers)[0, 0]
    allowed = np.full(len(regularizers), ALPHA_ERRORS)
    if candidates.alone:
        regularizers = (Tikhonov(ALONE, truncated=False), *regularizers)
        terms = np.concatenate([rows.base_losses()[None], terms])
        allowed = np.concatenate([[ALONE_ERRORS], allowed])
    losses, errors, best = _strongest(rows, terms, allowed)
    return SelectionPath(
        bases=candidates.bases,
        factors=np.asarray(candidates.factors),
        losses=compared,
        n_compared=len(some.values),
        base="gaussian" if candidates.alone and best == 0 else base,
        length_scale=factor * rows.base_scale,
        regularizers=regularizers,
        path_losses=losses,
        path_errors=errors,
        best_index=best,
    )


def _strongest(rows: Rows, terms: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Losses, errors of their differences to the smallest, and the place of the first that is within the errors allowed."""
    losses = rows.mean(terms)
    smallest = int(np.argmin(losses))
    with np.errstate(invalid="ignore"):
        errors = rows.error(terms - terms[smallest])
        near = losses - losses[smallest] <= allowed * errors
    near[smallest] = True
    return losses, errors, int(np.argmax(near))


# Of Krylov bases: below what rows held out can tell.
ACCURACY = Accuracy(tol=1e-4, max_iter=300)

# Unknowns up to which an eigendecomposition is quicker than a Krylov basis of that accuracy.
DENSE = 600


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
    bases : int, default=1
        For how many bases fits are kept at a time.
    """

    def __init__(
        self,
        space: Space,
        samples: Array,
        weights: Array,
        regularizers: Sequence[Regularizer],
        accuracy: Accuracy = ACCURACY,
        bases: int = 1,
    ) -> None:
        self._regularizers = regularizers
        self.samples, self.share = samples, weights / namespace(weights).sum(weights)
        sees_all = any(isinstance(r, SpectralCutoff) and r.needs_all_eigenvalues for r in regularizers)
        self._plain = SampleSystem(space, samples, self.share, whole=sees_all, beside=bases * len(regularizers))
        # Sums of kernels that interpolate the values at the samples want far more of a Krylov basis.
        cheap = all(_has_zeta(r) for r in regularizers)
        self._dense = sees_all or (self._plain.small and not (cheap and self._plain.size > DENSE))
        self._accuracy = accuracy if cheap else Accuracy(accuracy.tol**2, accuracy.max_iter)
        if self._dense:
            self._plain.spectrum  # noqa: B018 - once, for all bases

    def forget_system(self) -> MemoryPlan:
        """Keep no more than samples and weights, once all fits are made; answers with the plan of the memory."""
        plan = self._plain.plan
        del self._plain
        return plan

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
        # Tiles are small; stored matrices share the rest, two numbers a pair for one and one for the other.
        tiles = replace(space, memory_limit=space.memory_limit / 8)
        self._space, self._x = space, x
        self._product = tiles.operator(x, path.samples).store(space.memory_limit / 2)
        self._flux = tiles.flux(x, path.samples).store(space.memory_limit / 4)
        self._zeta = tiles.zeta(x, path.samples, path.share)
        self._zeta_divergence = tiles.zeta_divergence(x, path.samples, path.share)

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
    backend: Backend = NUMPY,
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
    backend : Backend
        Where to.
    """
    samples, held = z[~part], z[part]
    path = FitPath(space, backend.array(samples), backend.array(weights[~part]), regularizers, bases=len(bases))
    gaussian = GaussianBase.fit(samples, weights[~part]).at(backend) if "gaussian" in bases else None
    measures = [gaussian if name == "gaussian" else None for name in bases]
    fits = [path.on(base) for base in measures]
    step = path.forget_system().rows_at_once(len(samples))
    out = np.empty((len(bases), len(regularizers), len(held)))
    for start in range(0, len(held), step):
        rows = slice(start, start + step)
        view = View(space, path, backend.array(held[rows]))
        for b, base in enumerate(measures):
            for r, fitted in enumerate(fits[b]):
                out[b, r, rows] = to_numpy(view.hyvarinen_terms(fitted, base))
    return np.where(np.isfinite(out), out, np.inf)


def base_terms(z: np.ndarray, weights: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The same of the Gaussian base alone, of shape (rows,)."""
    base = GaussianBase.fit(z[~part], weights[~part])
    return np.asarray(base.divergence(z[part]) + 0.5 * np.sum(base.value(z[part]) ** 2, axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class SelectionPath:
    r"""Held-out Hyvarinen losses of scores, smaller being better, and the choice made by them.

    All losses are weighted means over rows held out, in the coordinates x/unit (the fitted attribute ``unit_``).

    Parameters
    ----------
    bases : tuple of {None, "gaussian"}, length b
        Base measures that were compared.
    factors : ndarray of shape (f,)
        Multiples of the base scale that were compared.
    losses : ndarray of shape (b, f)
        For each base and factor the smallest loss that a regulariser reaches.
    n_compared : int
        Rows that bases and factors were compared on.
    base : {None, "gaussian"}
        The base chosen.
    length_scale : ndarray of shape (d,)
        The length scale chosen, in the units of the data.
    regularizers : tuple of Regularizer, length r
        Those compared at the base and the length scale chosen, the strongest first. Where a Gaussian base and its strength were
        free, the first is so strong that the Gaussian is left alone, whatever base was chosen for the others.
    path_losses : ndarray of shape (r,)
        The loss of each, on the rows that were held out of fits to all others.
    path_errors : ndarray of shape (r,)
        Standard error of its difference to the smallest one: losses of the same rows have much in common, so their differences
        are known better than they are themselves.
    best_index : int
        Place of the regulariser chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import KernelScore
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> KernelScore().fit(X).search_path_.base
    'gaussian'
    """

    bases: tuple[str | None, ...]
    factors: np.ndarray
    losses: np.ndarray
    n_compared: int
    base: str | None
    length_scale: np.ndarray
    regularizers: tuple[Regularizer, ...]
    path_losses: np.ndarray
    path_errors: np.ndarray
    best_index: int

    @property
    def regularizer(self) -> Regularizer:
        """The regulariser chosen."""
        return self.regularizers[self.best_index]

    def __repr__(self) -> str:
        """Two tables: bases by factors, and the regularisers at what was chosen of these."""
        lines = [f"SelectionPath: base {self.base!r}, {self.regularizer!r}"]
        lines += [f"smallest loss, of {self.n_compared} rows held out in turn:"]
        lines += [f"{'factor':>10}" + "".join(f"{f'base {base!r}':>18}" for base in self.bases)]
        for factor, losses in zip(self.factors, self.losses.T, strict=True):
            lines += [f"{factor:>10.4g}" + "".join(f"{loss:>18.5g}" for loss in losses)]
        lines += [f"{'loss':>12} {'std. error':>12}"]
        listed = zip(self.path_losses, self.path_errors, self.regularizers, strict=True)
        for i, (loss, error, regularizer) in enumerate(listed):
            lines += [f"{loss:>12.5g} {error:>12.2g}  {regularizer!r}{'  <- chosen' if i == self.best_index else ''}"]
        return "\n".join(lines)
