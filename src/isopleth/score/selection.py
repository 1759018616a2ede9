"""Choice of the frame, the length scale, the base measure and the strength of a score by the loss of held-out rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from isopleth.core.arrays import NUMPY, Array, Backend, namespace, to_numpy
from isopleth.core.progress import Progress
from isopleth.core.rows import held_out_parts
from isopleth.core.scales import bounded
from isopleth.core.threads import ROWS_OF_ONE_THREAD, map_threads, slices
from isopleth.frames import Frame, FrameMap
from isopleth.frames.compose import chain, divided_by
from isopleth.score.field import GaussianBase, KernelTerm, ScoreField, Term, ZetaTerm
from isopleth.score.pullback import fit_map, hyvarinen_terms, mapped, without_far
from isopleth.score.spaces import Space
from isopleth.score.system import Accuracy, MemoryPlan, SampleSystem, multipliers_of_path, solving_backend
from isopleth.solvers.regularizers import IterativeRegularizer, Regularizer, SpectralCutoff, Tikhonov

# Multiples of the median distance to compare. On near-Gaussian data the best were 4 to 8, on separated modes 0.5 to 2.
FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)

# The grid of alphas: the largest, and the number of steps per decade.
LARGEST_ALPHA, STEPS_A_DECADE = 10.0, 4

# The smallest alpha, divided by the number of rows. Eigenvalues of K/M below 1/M are noise, which the loss of a few held-out
# rows does not always show.
FLOOR = 0.3

# An alpha so large that the kernels vanish and the base alone is left.
BASE_ALONE = 1e6

# Least improvement of the loss, in standard errors, for a less simple model: kernels instead of the base alone, a frame later in
# the list, and a smaller alpha. The first is the largest because about a hundred fits are compared, some of them wild.
BASE_ALONE_ERRORS, FRAME_ERRORS, ALPHA_ERRORS = 3.0, 1.0, 0.5

# Share of the rows with one value of a column from which on the Hyvarinen loss is that of this value.
NEARLY_CONSTANT = 0.8

# Most rows on which bases and length scales are compared.
COMPARED_ROWS = 512

# Folds are held out until they have this many rows together: their mean loss is accurate enough then, and each further fold
# costs one more fit to the other rows.
HELD_OUT = 2000


@dataclass(frozen=True)
class Candidates:
    """Values among which cross-validation chooses."""

    bases: tuple[str | None, ...]  # base measures
    factors: tuple[float, ...]  # multiples of a base scale
    regularizer: Regularizer | None = None  # regularizer, if it is fixed

    def regularizers(self, n: int) -> tuple[Regularizer, ...]:
        """Return the regularizers to compare for `n` rows, the strongest first."""
        if self.regularizer is not None:
            return (self.regularizer,)
        decades = math.log10(LARGEST_ALPHA * n / FLOOR)
        exponents = -np.arange(int(STEPS_A_DECADE * decades) + 1) / STEPS_A_DECADE
        return tuple(Tikhonov(float(LARGEST_ALPHA * 10.0**e), truncated=False) for e in exponents)

    @property
    def base_alone(self) -> bool:
        """Tell whether the Gaussian base without kernels is one of the candidates."""
        return self.regularizer is None and "gaussian" in self.bases


@dataclass(frozen=True)
class Rows:
    """Distinct rows of a fit in one frame, their folds, and the held-out losses of fits to them."""

    values: np.ndarray  # (n, d): rows, in the units of the data
    weights: np.ndarray  # (n,): repetitions of each
    frame: str | Frame  # frame, which is fitted without the rows that are held out
    base_scale: np.ndarray  # (d,): length scales in the frame that factors multiply
    unit: float  # unit of the loss over the base scale, the same for all columns
    cv: int  # number of folds
    backend: Backend = NUMPY  # backend on which fits run that are too large for one core

    @cached_property
    def counts(self) -> np.ndarray:
        """The weights, smaller for far rows."""
        return without_far(self.values, self.weights)

    @cached_property
    def maps(self) -> list[FrameMap]:
        """The map of the frame for each fold that is held out, fitted to the other rows; to all if a column is constant there."""
        fitted = [~fold if np.ptp(self.values[~fold], axis=0).all() else slice(None) for fold in self.held_out]
        return [fit_map(self.frame, self.values[rows], self.counts[rows]) for rows in fitted]

    def some(self, n: int) -> Rows:
        """Return at most `n` rows, drawn with a fixed seed."""
        if len(self.values) <= n:
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(len(self.values))[:n])
        return replace(self, values=self.values[chosen], weights=self.weights[chosen])

    @property
    def enough(self) -> bool:
        """Tell whether enough rows can be held out; if not, all losses are infinite and the strongest regulariser is taken."""
        return len(self.values) >= 2 * self.cv

    @cached_property
    def held_out(self) -> list[np.ndarray]:
        """Masks of the folds that are held out in turn: all folds, or the first few that have HELD_OUT rows together."""
        folds = held_out_parts(len(self.values), self.cv)
        return folds[: max(1, -(-HELD_OUT * len(folds) // len(self.values)))]

    @property
    def ever_held_out(self) -> np.ndarray:
        """Mask of the rows that are held out in some fold."""
        return np.any(self.held_out, axis=0)

    def losses(
        self,
        space: Space,
        factors: Sequence[float],
        bases: Sequence[str | None],
        regularizers: Sequence[Regularizer],
    ) -> np.ndarray:
        """Return the loss of each held-out row by each fit, of shape (bases, factors, regularizers, rows)."""
        out = np.full((len(bases), len(factors), len(regularizers), len(self.values)), np.inf)
        if not self.enough:
            return out[..., self.ever_held_out]
        tasks = list(product(range(len(factors)), range(len(self.held_out))))
        backend = solving_backend(space, self.values, self.backend)
        # One fit keeps a device busy, and also a library with threads of its own.
        workers = self._fits_at_once(space, len(tasks), len(bases) * len(regularizers)) if backend == NUMPY else 1
        # Several fits in parallel use more processors than threads within one fit, whose matrices are small.
        alone = workers == 1 and len(self.values) > ROWS_OF_ONE_THREAD
        one_fit = space if alone else replace(space, budget=space.budget.shared(workers))

        def work(task: tuple[int, int]) -> None:
            f, k = task
            z, fold = self._framed(factors[f], k), self.held_out[k]
            measures = [self._bases[k].over(factors[f]) if base == "gaussian" else None for base in bases]
            terms = held_out_terms(one_fit, z, self.weights, fold, measures, regularizers, backend)
            out[:, f, :, fold] = np.moveaxis(self._in_units(terms, factors[f]), -1, 0)
            tick()

        label = "search of a length scale and base" if len(factors) * len(bases) > 1 else "search of a strength"
        with Progress(label, len(tasks), space.budget.verbose) as tick:
            map_threads(work, tasks, workers)
        return out[..., self.ever_held_out]

    def _fits_at_once(self, space: Space, tasks: int, fits: int) -> int:
        """Return how many folds to fit in parallel, so that each has the memory to store its products."""
        rows, columns = self.values.shape
        if rows <= ROWS_OF_ONE_THREAD:
            return 1
        need = MemoryPlan.of(replace(space, budget=space.budget.alone), rows - rows // self.cv, columns, fits).to_store
        return max(1, min(space.budget.threads, tasks, int(space.budget.memory // need)))

    def base_losses(self) -> np.ndarray:
        """Return the loss of each held-out row by the Gaussian base alone."""
        out = np.full(len(self.values), np.inf)
        if self.enough:
            for k, fold in enumerate(self.held_out):
                out[fold] = self._in_units(
                    ScoreField((self._bases[k],)).hyvarinen_terms(self._framed(1.0, k)[fold]), 1.0
                )
        return out[self.ever_held_out]

    @cached_property
    def _bases(self) -> list[GaussianBase]:
        """The Gaussian base of each fold, fitted to the other rows, in the frame over the base scale."""
        outside = [~fold for fold in self.held_out]
        return [GaussianBase.fit(self._framed(1.0, k)[rows], self.counts[rows]) for k, rows in enumerate(outside)]

    def comparable_losses(
        self, space: Space, factor: float, base: str | None, regularizer: Regularizer, unit: np.ndarray
    ) -> np.ndarray:
        """Return the loss of each held-out row by one fit, in the coordinates x/unit whatever the frame."""
        out = np.full(len(self.values), np.inf)
        for k, fold in enumerate(self.held_out if self.enough else []):
            samples = self._framed(factor, k)[~fold]
            measure = self._bases[k].over(factor) if base == "gaussian" else None
            field = _fitted_field(space, samples, self.weights[~fold], measure, regularizer, self.backend)
            frame = chain(self.maps[k], divided_by(factor * self.base_scale))
            out[fold] = hyvarinen_terms(field, frame, self.values[fold], unit, space.budget)
        return out[self.ever_held_out]

    def better(self, losses: np.ndarray, simple: np.ndarray) -> np.ndarray:
        """Tell which mean losses beat that of a simple model by more than chance, corrected for skewness.

        Wild fits gain often and lose rarely but much, fits to heavy tails the opposite: Hall's transformation (J. R. Statist.
        Soc. B 54, 1992) of the t statistic accounts for it.
        """
        weights = self.counts[self.ever_held_out]
        n, share = len(weights), weights / weights.sum()
        with np.errstate(all="ignore"):  # of losses that are not finite, or equal to the simple ones
            gains = np.where(np.isfinite(simple), simple, 0.0) - losses
            mean = self.mean(gains)
            apart = gains - mean[..., None]
            skew = (apart**3 @ share) / (apart**2 @ share) ** 1.5
            t = mean / self.error(gains) / math.sqrt(n)
            corrected = t + skew * t**2 / 3.0 + skew**2 * t**3 / 27.0 + skew / (6.0 * n)
            return np.asarray(math.sqrt(n) * corrected > BASE_ALONE_ERRORS)

    def _in_units(self, terms: np.ndarray, factor: float) -> np.ndarray:
        """Return losses in units of the data, infinite where they overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.float64(self.unit / factor) ** 2 * terms
        return np.where(np.isfinite(out), out, np.inf)

    def _framed(self, factor: float, fold: int) -> np.ndarray:
        """Return all rows in the frame of the rows outside a fold, over the length scale."""
        with np.errstate(over="ignore"):
            return bounded(mapped(self.maps[fold], self.values) / (factor * self.base_scale))

    def mean(self, losses: np.ndarray) -> np.ndarray:
        """Return weighted means over the last axis, the held-out rows."""
        weights = self.counts[self.ever_held_out]
        return np.asarray(losses @ (weights / weights.sum()))

    def error(self, losses: np.ndarray) -> np.ndarray:
        """Return the standard error of :meth:`mean`; copies of a row count as one observation."""
        weights = self.counts[self.ever_held_out]
        n, share = len(weights), weights / weights.sum()
        with np.errstate(invalid="ignore", over="ignore"):  # infinite losses have none
            deviation = losses - self.mean(losses)[..., None]
            return np.asarray(np.sqrt(n / (n - 1) * (deviation**2 @ share**2)))


class FirstRound(NamedTuple):
    """Choices of the first round in one frame: the losses of bases and factors, the strengths with their losses, the choice."""

    rows: Rows
    compared: np.ndarray
    base: str | None
    factor: float
    regularizers: tuple[Regularizer, ...]
    terms: np.ndarray

    def chosen(self, candidates: Candidates) -> tuple[str | None, Regularizer]:
        """Return the base and the regularizer that the second round would choose on the same rows."""
        regularizers, _, _, best = _choose_strength(self.rows, self.regularizers, self.terms, candidates)
        return ("gaussian" if candidates.base_alone and best == 0 else self.base), regularizers[best]


def _first_round(space: Space, rows: Rows, candidates: Candidates) -> FirstRound:
    """Choose the base and the length scale of the smallest loss, if possible of fits better than the Gaussian base alone."""
    some = rows.some(COMPARED_ROWS)
    tried = candidates.regularizers(len(some.values))
    losses = some.losses(space, candidates.factors, candidates.bases, tried)
    means = some.mean(losses)
    better = some.better(losses, some.base_losses()) if candidates.base_alone else np.ones(means.shape, dtype=bool)
    b, f, _ = np.unravel_index(int(np.argmin(_allowed(means, better))), means.shape)
    return FirstRound(some, means.min(axis=-1), candidates.bases[b], candidates.factors[f], tried, losses[b, f])


def _allowed(losses: np.ndarray, better: np.ndarray) -> np.ndarray:
    """Return losses, infinite for all but the better fits if there are any."""
    return np.where(better | ~better.any(), losses, np.inf)


def choose_frame(
    space: Space, frames: Sequence[Rows], candidates: Candidates, unit: np.ndarray
) -> tuple[int, list[FirstRound], np.ndarray]:
    """Return the place of the first frame whose loss, in x/unit, is near the smallest, the first rounds, and the losses."""
    rounds = [_first_round(space, rows, candidates) for rows in frames]
    if len(rounds) == 1:
        return 0, rounds, np.array([np.nan])
    terms = []
    for one in rounds:
        base, regularizer = one.chosen(candidates)
        terms.append(one.rows.comparable_losses(space, one.factor, base, regularizer, unit))
    losses, _, place = _simplest(rounds[0].rows, np.array(terms), np.ones(len(terms), dtype=bool), FRAME_ERRORS)
    return place, rounds, losses


def select(space: Space, frames: Sequence[Rows], candidates: Candidates, unit: np.ndarray) -> SelectionPath:
    """Choose among candidates by the mean Hyvarinen loss of held-out rows, in two rounds.

    The first compares bases and length scales in each frame and takes the first frame within FRAME_ERRORS of the best; the
    second, on all rows, takes the largest alpha within ALPHA_ERRORS. Fits count only if they beat the Gaussian base alone, which
    is the strongest regularizer, by BASE_ALONE_ERRORS, errors being corrected for skewness.
    """
    place, rounds, frame_losses = choose_frame(space, frames, candidates, unit)
    rows, first = frames[place], rounds[place]
    if first.rows is rows:
        regularizers, terms = first.regularizers, first.terms
    else:
        regularizers = candidates.regularizers(len(rows.values))
        terms = rows.losses(space, (first.factor,), (first.base,), regularizers)[0, 0]
    regularizers, losses, errors, best = _choose_strength(rows, regularizers, terms, candidates)
    return SelectionPath(
        frames=tuple(one.frame for one in frames),
        frame_losses=frame_losses,
        frame=rows.frame,
        bases=candidates.bases,
        factors=np.asarray(candidates.factors),
        losses=first.compared,
        n_compared=len(first.rows.values),
        base="gaussian" if candidates.base_alone and best == 0 else first.base,
        length_scale=first.factor * rows.base_scale,
        regularizers=regularizers,
        path_losses=losses,
        path_errors=errors,
        best_index=best,
    )


def _choose_strength(
    rows: Rows, regularizers: tuple[Regularizer, ...], terms: np.ndarray, candidates: Candidates
) -> tuple[tuple[Regularizer, ...], np.ndarray, np.ndarray, int]:
    """Return regularizers, the base alone first if it is a candidate, losses, errors, and the index of the choice."""
    better = np.ones(len(terms), dtype=bool)
    if candidates.base_alone:
        alone = rows.base_losses()
        better = rows.better(terms, alone)
        regularizers = (Tikhonov(BASE_ALONE, truncated=False), *regularizers)
        terms, better = np.concatenate([alone[None], terms]), np.concatenate([[not better.any()], better])
    return regularizers, *_simplest(rows, terms, better, ALPHA_ERRORS)


def _simplest(rows: Rows, terms: np.ndarray, better: np.ndarray, within: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the losses, the errors of their differences to the smallest, and the index of the first within such errors."""
    losses = rows.mean(terms)
    allowed = _allowed(losses, better)
    smallest = int(np.argmin(allowed))
    with np.errstate(invalid="ignore"):
        errors = rows.error(terms - terms[smallest])
        near = allowed - losses[smallest] <= within * errors
    near[smallest] = True
    return losses, errors, int(np.argmax(near))


# Accuracy of Krylov bases: their errors are far below the standard errors of held-out losses.
ACCURACY = Accuracy(tol=1e-4, max_iter=300)

# Most unknowns for which an eigendecomposition is faster than a Krylov basis of that accuracy.
DENSE = 200


class Coefficients(NamedTuple):
    """Coefficients of several fits: those of the kernels at the samples, of shape (r, m, d), and factors of zeta, (r, 1)."""

    kernels: Array
    zeta: Array


class FitPath:
    """Fits to the same rows in frame coordinates for several bases and strengths, with one decomposition for all of them."""

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
        # Sums of kernels that interpolate the values at the samples need a much more accurate Krylov basis.
        cheap = all(_has_zeta(r) for r in regularizers)
        large = space.unknowns(*samples.shape) > DENSE
        self._single = cheap and large and not sees_all and _has_digits_in_single(samples)
        self._plain = SampleSystem(
            space, self._cast(samples), self._cast(self.share), whole=sees_all, beside=bases * len(regularizers)
        )
        self._dense = sees_all or (self._plain.small and not (cheap and large))
        self._accuracy = accuracy if cheap else Accuracy(accuracy.tol**2, accuracy.max_iter)
        if self._dense:
            self._plain.spectrum  # noqa: B018 - computed once, for all bases

    def _cast(self, a: Array) -> Array:
        """Return `a` in the precision of the system."""
        return namespace(a).astype(a, namespace(a).float32) if self._single else a

    def forget_system(self) -> MemoryPlan:
        """Free all but the samples and weights once all fits are made, and return the memory plan."""
        plan = self._plain.plan
        del self._plain
        return plan

    def on(self, base: GaussianBase | None) -> Coefficients:
        """Return the fit by each regularizer on top of a base."""
        xp = namespace(self.samples)
        at_base = None if base is None else base.value(self.samples)
        system = self._plain if at_base is None else self._plain.on(self._cast(at_base))
        multipliers, factors = multipliers_of_path(system, self._regularizers, self._accuracy, self._dense)
        kernels = xp.astype(system.coefficients(multipliers), self.samples.dtype)
        zeta = xp.asarray(factors, dtype=self.samples.dtype, device=self.samples.device)[:, None]
        if at_base is not None:
            kernels = kernels + zeta[:, :, None] * (self.share[:, None] * at_base)
        return Coefficients(kernels, zeta)


# Largest squared norm of rows whose distances single precision resolves well enough for ACCURACY.
_FARTHEST_IN_SINGLE = 1e3


def _has_digits_in_single(samples: Array) -> bool:
    """Tell whether a Krylov basis of these rows in single precision is more accurate than ACCURACY demands."""
    xp = namespace(samples)
    return bool(xp.max(xp.sum(samples * samples, axis=1)) <= _FARTHEST_IN_SINGLE)


def _has_zeta(regularizer: Regularizer) -> bool:
    if isinstance(regularizer, Tikhonov):
        return not regularizer.truncated
    return isinstance(regularizer, IterativeRegularizer)


class FitsAtRows:
    """Evaluation of fits to the same samples at rows `x`; kernel matrices are computed once for all fits."""

    def __init__(self, space: Space, path: FitPath, x: Array) -> None:
        # Tiles need little. The stored matrices share the rest: the products keep two numbers for each pair, the flux one.
        tiles = replace(space, budget=space.budget.within(space.budget.memory / 8))
        self._space, self._x = space, x
        self._product = tiles.operator(x, path.samples).store(space.budget.memory / 2)
        self._flux = tiles.flux(x, path.samples).store(space.budget.memory / 4)
        self._zeta = tiles.zeta(x, path.samples, path.share)
        self._zeta_divergence = tiles.zeta_divergence(x, path.samples, path.share)

    def value(self, fitted: Coefficients, base: GaussianBase | None) -> Array:
        """Return the score by each fit, of shape (r, n, d)."""
        value = self._product.matvecs(fitted.kernels) + fitted.zeta[:, :, None] * self._zeta
        return value if base is None else value + base.value(self._x)

    def hyvarinen_terms(self, fitted: Coefficients, base: GaussianBase | None) -> Array:
        r"""Return :math:`\operatorname{div} s + |s|^2/2` by each fit, of shape (r, n)."""
        divergence = self._space.divergences_by(self._flux, fitted.kernels) + fitted.zeta * self._zeta_divergence
        if base is not None:
            divergence = divergence + base.divergence(self._x)
        value = self.value(fitted, base)
        return divergence + 0.5 * namespace(value).sum(value**2, axis=2)


def held_out_terms(
    space: Space,
    z: np.ndarray,
    weights: np.ndarray,
    fold: np.ndarray,
    bases: Sequence[GaussianBase | None],
    regularizers: Sequence[Regularizer],
    backend: Backend = NUMPY,
) -> np.ndarray:
    """Return the loss, infinite for NaN, of each row of the mask `fold` by fits to the others: (bases, regularizers, rows)."""
    samples, held = z[~fold], z[fold]
    path = FitPath(space, backend.array(samples), backend.array(weights[~fold]), regularizers, bases=len(bases))
    measures = [None if base is None else base.at(backend) for base in bases]
    fits = [path.on(base) for base in measures]
    step = path.forget_system().rows_at_once(len(samples))
    out = np.empty((len(bases), len(regularizers), len(held)))
    for rows in slices(len(held), step):
        at_rows = FitsAtRows(space, path, backend.array(held[rows]))
        for b, base in enumerate(measures):
            out[b, :, rows] = to_numpy(at_rows.hyvarinen_terms(fits[b], base))
    return np.where(np.isfinite(out), out, np.inf)


def _leaves_base_alone(regularizer: Regularizer) -> bool:
    """Tell whether a regularizer is so strong that kernels vanish beside the base."""
    return isinstance(regularizer, Tikhonov) and regularizer.alpha >= BASE_ALONE


def _fitted_field(
    space: Space,
    samples: np.ndarray,
    weights: np.ndarray,
    base: GaussianBase | None,
    regularizer: Regularizer,
    backend: Backend,
) -> ScoreField:
    """Return the score that is fitted to samples in frame coordinates."""
    if base is not None and _leaves_base_alone(regularizer):
        return ScoreField((base,))
    backend = solving_backend(space, samples, backend)
    path = FitPath(space, backend.array(samples), backend.array(weights), (regularizer,))
    measure = None if base is None else base.at(backend)
    fitted = path.on(measure)
    terms: list[Term] = [KernelTerm(space, path.samples, fitted.kernels[0, :, :])]
    if _has_zeta(regularizer):
        terms.append(ZetaTerm(space, path.samples, path.share, float(fitted.zeta[0, 0])))
    return ScoreField((*terms, measure) if measure is not None else tuple(terms))


@dataclass(frozen=True, eq=False, repr=False)
class SelectionPath:
    r"""Held-out Hyvarinen losses of scores, lower being better, and the choice based on them.

    All losses are weighted means over held-out rows. Those of frames are in the coordinates x/unit (the fitted attribute
    ``unit_``), the others in the coordinates of the frame.

    Parameters
    ----------
    frames : tuple of Frame or str, length k
        The frames that were compared.
    frame_losses : ndarray of shape (k,)
        The loss of the best fit in each; NaN if there was one frame only.
    frame : Frame or str
        The frame chosen, to which the following belongs.
    bases : tuple of {None, "gaussian"}, length b
        Base measures that were compared.
    factors : ndarray of shape (f,)
        Multiples of the base scale that were compared.
    losses : ndarray of shape (b, f)
        For each base and factor the smallest loss over the regularizers.
    n_compared : int
        Number of rows on which bases and factors were compared.
    base : {None, "gaussian"}
        The base chosen.
    length_scale : ndarray of shape (d,)
        The length scale chosen, in the units of the frame.
    regularizers : tuple of Regularizer, length r
        The regularizers compared at the chosen base and length scale, the strongest first. If the base could be Gaussian and the
        strength was open, the first one is so strong that only the Gaussian is left, whatever base was chosen for the others.
    path_losses : ndarray of shape (r,)
        The held-out loss of each.
    path_errors : ndarray of shape (r,)
        Standard error of its difference to the smallest one. Losses of the same rows are correlated, so the difference has a
        smaller error than either loss.
    best_index : int
        Index of the chosen regularizer.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import KernelScore
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> KernelScore().fit(X).search_path_.base
    'gaussian'
    """

    frames: tuple[str | Frame, ...]
    frame_losses: np.ndarray
    frame: str | Frame
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
        """The chosen regularizer."""
        return self.regularizers[self.best_index]

    @property
    def base_alone(self) -> bool:
        """True if the Gaussian base alone was chosen: kernel, space and length scale then have no effect on the score."""
        return self.base == "gaussian" and _leaves_base_alone(self.regularizer)

    def __repr__(self) -> str:
        """Return tables of losses: by frame, by base and factor, and by regularizer at the chosen base and factor."""
        chosen = (
            "the Gaussian base alone, without kernels"
            if self.base_alone
            else f"base {self.base!r}, {self.regularizer!r}"
        )
        lines = [f"SelectionPath: frame {self.frame!r}, {chosen}"]
        if len(self.frames) > 1:
            lines += [f"{loss:>12.5g}  {one!r}" for loss, one in zip(self.frame_losses, self.frames, strict=True)]
        lines += [f"smallest loss, {self.n_compared} rows held out in turn:"]
        lines += [f"{'factor':>10}" + "".join(f"{f'base {base!r}':>18}" for base in self.bases)]
        for factor, losses in zip(self.factors, self.losses.T, strict=True):
            lines += [f"{factor:>10.4g}" + "".join(f"{loss:>18.5g}" for loss in losses)]
        lines += [f"{'loss':>12} {'std. error':>12}"]
        listed = zip(self.path_losses, self.path_errors, self.regularizers, strict=True)
        for i, (loss, error, regularizer) in enumerate(listed):
            name = "the Gaussian base alone" if _leaves_base_alone(regularizer) else repr(regularizer)
            lines += [f"{loss:>12.5g} {error:>12.2g}  {name}{'  <- chosen' if i == self.best_index else ''}"]
        return "\n".join(lines)
