"""Cross-validation of length scale and ridge: fits to the training folds, their losses, and the search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from isopleth.core.arrays import Array, Backend, namespace
from isopleth.core.budget import Budget
from isopleth.core.progress import Progress
from isopleth.core.threads import map_threads
from isopleth.difference.gaussian_system import PenalizedSpectrum, over_volume, quotient, smallest

# Ridge over the volume below which systems count as nearly singular.
LEAST_ALPHA = 1e-3

# Ridge over the volume of estimates of the distance: larger ones shrink the distance more than they reduce its variance.
DISTANCE_ALPHA = 0.3


@dataclass(frozen=True)
class Split:
    """Two samples in folds."""

    weights: np.ndarray  # (m, 2, T): weights by row, sample and fold
    # (b, 2, T): weights of the rows that are centres, from which follows which centres the training folds contain; None
    # if all centres may always be used
    units: np.ndarray | None

    @property
    def folds(self) -> int:
        """Number of folds."""
        return int(self.weights.shape[2])

    @property
    def counts(self) -> np.ndarray:
        """Sums of weights by sample and fold."""
        return self.weights.sum(axis=0)


@dataclass(frozen=True)
class FoldSums:
    """Sums of the functions over the rows of each sample and fold; sums over different rows can be added."""

    sums: np.ndarray  # (b, 2, T): sum of each function by sample and fold
    counts: np.ndarray  # (2, T): sums of the weights
    # (b, 2, T): weights of the rows that are centres, from which follows which centres the training folds contain; None
    # if all centres may always be used
    units: np.ndarray | None

    def __add__(self, other: FoldSums) -> FoldSums:
        """Return the sums over the rows of both."""
        units = None if self.units is None or other.units is None else self.units + other.units
        return FoldSums(self.sums + other.sums, self.counts + other.counts, units)

    @property
    def folds(self) -> int:
        """Number of folds."""
        return int(self.counts.shape[1])

    def missing(self, out: Sequence[int]) -> np.ndarray:
        """Return the indices of the centres that are not in the training folds."""
        if self.units is None:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(self._train(self.units, out).sum(axis=1) == 0)

    def held_out(self, fold: int) -> np.ndarray:
        """Return the mean over the first sample less the mean over the second, in one fold."""
        return _difference(self._held_out_means(fold))

    def held_out_middle(self, fold: int) -> np.ndarray:
        """Return the average of the means over both samples, in one fold."""
        return np.asarray(self._held_out_means(fold).mean(axis=1))

    def _held_out_means(self, fold: int) -> np.ndarray:
        return np.asarray(self.sums[:, :, fold] / self.counts[:, fold])

    def _train(self, array: np.ndarray, out: Sequence[int]) -> np.ndarray:
        return np.delete(array, list(out), axis=-1).sum(axis=-1)

    def trained(self, out: Sequence[int]) -> np.ndarray:
        """Return the difference of means over all folds except those in `out`."""
        return _difference(self._trained_means(out))

    def trained_middle(self, out: Sequence[int]) -> np.ndarray:
        """Return the average of the means over both samples, over all folds except those in `out`."""
        return np.asarray(self._trained_means(out).mean(axis=1))

    def _trained_means(self, out: Sequence[int]) -> np.ndarray:
        return self._train(self.sums, out) / self._train(self.counts, out)

    def trained_without_self(self, out: Sequence[int]) -> np.ndarray:
        """Return :meth:`trained` with each function averaged over all rows except the one that is its centre."""
        if self.units is None:
            return self.trained(out)
        own = self._train(self.units, out)
        own = own / np.maximum(np.ceil(own * (1.0 - 1e-12)), 1.0)
        total = self._train(self.counts, out)
        own[:, total - own.max(axis=0) <= 1e-9 * total] = 0.0  # a single draw cannot be left out
        return _difference((self._train(self.sums, out) - own) / (total - own))


def _difference(means: np.ndarray) -> np.ndarray:
    return np.asarray(means[:, 0] - means[:, 1])


@dataclass(frozen=True)
class FoldTables:
    """Scores of every ridge, times the volume of the system."""

    losses: np.ndarray  # (T, a): cross-validation losses by held-out fold
    cross: np.ndarray  # (T, a): cross-fitted dual estimates of the squared L2 distance
    density: np.ndarray  # (T, a): cross-validation losses of fits to the average of both densities
    # (T, T, a): losses in the first fold of fits to all folds except the first and the second
    paired: np.ndarray | None


@dataclass(frozen=True)
class FoldFit:
    """Fit with the centres that some folds contain."""

    spectrum: PenalizedSpectrum  # decomposition of their inner products and norm
    kept: np.ndarray | None  # their indices; None for all centres

    def coordinates(self, columns: list[np.ndarray]) -> np.ndarray:
        """Return right-hand sides in the coordinates of the eigenvectors."""
        h = np.column_stack(columns)
        return self.spectrum.coordinates(h if self.kept is None else h[self.kept])

    def coefficients(self, coordinates: np.ndarray, alpha: float, centers: int) -> np.ndarray:
        """Return the coefficients for one right-hand side; 0 for centres that are not kept."""
        solved = self.spectrum.combined(coordinates / (self.spectrum.values + alpha))
        if self.kept is None:
            return solved
        out = np.zeros(centers)
        out[self.kept] = solved
        return out


@dataclass(frozen=True)
class FoldSystems:
    """Sums, inner products and norm for fits to all folds but some. One decomposition of a set of folds serves all ridges."""

    sums: FoldSums
    gram: Array
    norm: Array | None

    @cached_property
    def spectrum(self) -> PenalizedSpectrum:
        """Decomposition of the inner products of all centres."""
        return PenalizedSpectrum.of(self.gram, self.norm)

    def leaves_out_self(self, alpha: float) -> bool:
        """Tell whether means leave out a function at its own centre, a jump that nearly singular systems would amplify."""
        return self.norm is None and alpha >= LEAST_ALPHA * (1.0 - 1e-12)

    def fit(self, out: Sequence[int], least_alpha: float) -> FoldFit:
        """Return the fit without the folds `out`, whose system must be regular at the smallest ridge."""
        missing = self.sums.missing(out)
        if len(missing):
            kept = np.delete(np.arange(self.gram.shape[0]), missing)
            norm = None if self.norm is None else _block(self.norm, kept)
            fit = FoldFit(PenalizedSpectrum.of(_block(self.gram, kept), norm), kept)
        else:
            fit = FoldFit(self.spectrum, None)
        fit.spectrum.check(least_alpha)
        return fit


def _block(matrix: Array, kept: np.ndarray) -> Array:
    """Return the rows and columns of the kept centres."""
    xp, places = namespace(matrix), Backend.of(matrix).array(kept)
    return xp.take(xp.take(matrix, places, axis=0), places, axis=1)


def fold_coefficients(systems: FoldSystems, alpha: float) -> np.ndarray:
    """Return the coefficients of the fits without each fold, of shape (b, T)."""
    columns = []
    for t in range(systems.sums.folds):
        fit = systems.fit((t,), alpha)
        columns.append(
            fit.coefficients(fit.coordinates([systems.sums.trained((t,))])[:, 0], alpha, systems.gram.shape[0])
        )
    return np.column_stack(columns)


def fold_tables(systems: FoldSystems, alphas: np.ndarray, nested: bool) -> FoldTables:
    """Compute scores by fold and ridge and, with `nested`, the losses of fits without two folds."""
    sums, least = systems.sums, float(alphas.min())
    folds = range(sums.folds)
    tests = [sums.held_out(t) for t in folds]
    losses, cross, density = np.empty((3, len(folds), len(alphas)))
    for t in folds:
        fit = systems.fit((t,), least)
        columns = [sums.trained((t,)), sums.trained_without_self((t,)), tests[t]]
        h, alone, test, middle, middle_test = fit.coordinates(
            [*columns, sums.trained_middle((t,)), sums.held_out_middle(t)]
        ).T
        losses[t] = _losses(fit, alphas, h, test)
        density[t] = _losses(fit, alphas, middle, middle_test)
        # 2 h'Gk - h'GHGk, h over the held-out fold and k over the others
        k = [alone if systems.leaves_out_self(alpha) else h for alpha in alphas]
        cross[t] = [(test * k[a]) @ fit.spectrum.dual_weights(alpha) for a, alpha in enumerate(alphas)]
    if not nested:
        return FoldTables(losses, cross, density, None)
    paired = np.full((len(folds), len(folds), len(alphas)), np.nan)
    for s, t in combinations(folds, 2):
        fit = systems.fit((s, t), least)
        h, test_s, test_t = fit.coordinates([sums.trained((s, t)), tests[s], tests[t]]).T
        paired[s, t], paired[t, s] = _losses(fit, alphas, h, test_s), _losses(fit, alphas, h, test_t)
    return FoldTables(losses, cross, density, paired)


def _losses(fit: FoldFit, alphas: np.ndarray, h: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Return theta'H theta - 2 test'theta for every ridge."""
    solved = h[:, None] / (fit.spectrum.values[:, None] + alphas)
    return np.asarray(fit.spectrum.values @ solved**2 - 2.0 * test @ solved)


@dataclass(frozen=True)
class CrossFitted:
    """Result of cross-validation: the search path, and estimates of the squared L2 distance times the chosen volume."""

    path: DifferenceSearchPath
    cross_fitted: float
    lower_bound: float


def _nested_choice(paired: np.ndarray, log_volumes: np.ndarray, fold: int) -> tuple[int, ...]:
    """Return the grid point with the least mean loss plus standard error in the other folds: chance favours large variance."""
    others = np.delete(paired[:, fold], fold, axis=0)
    score = others.mean(axis=0) + others.std(axis=0, ddof=1) / np.sqrt(len(others))
    return smallest(score, log_volumes)


def _as_good(losses: np.ndarray, log_volumes: np.ndarray, best: int) -> np.ndarray:
    """Tell which length scales, at their best ridges, lose at most one standard error more than the best, paired by fold."""
    ridges = losses.mean(axis=0).argmin(axis=1)
    at = over_volume(losses[:, np.arange(len(ridges)), ridges], log_volumes - log_volumes[best])
    with np.errstate(invalid="ignore", over="ignore"):
        excess = at - at[:, [best]]
        return np.asarray(excess.mean(axis=0) <= excess.std(axis=0, ddof=1) / np.sqrt(len(excess)))


def _below_by_half_octave(sizes: np.ndarray, size: float) -> int:
    """Return the place of the largest of some log sizes at most `size` over the root of 2, else of the smallest."""
    small = np.flatnonzero(sizes <= size - 0.5 * np.log(2.0) + 1e-9)
    return int(small[np.argmax(sizes[small])] if len(small) else np.argmin(sizes))


def cross_validate(
    systems_at: Callable[[int, int], tuple[float, FoldSystems]],
    length_scales: np.ndarray,
    alphas: np.ndarray,
    budget: Budget,
    counts: bool = False,
) -> CrossFitted:
    """Compute losses over the grid, its best point, and estimates with points chosen without their fold.

    ``systems_at(i, threads)`` returns the log volume and the fits to folds at length scale i. With `counts` all columns are
    categories, whose shares need no smoothing: functions at the smallest length scale are those of single categories. At the one
    that fits the average best, functions of nearly even categories would be alike, and the ridge would shrink their difference.
    """
    searched = len(length_scales) * len(alphas) > 1
    threads = budget.threads
    workers = min(threads, len(length_scales))

    def tables(place: int) -> tuple[float, FoldTables]:
        log_volume, systems = systems_at(place, max(1, threads // workers))
        found = fold_tables(systems, alphas, searched)
        tick()
        return log_volume, found

    with Progress("cross-validation", len(length_scales), budget.verbose) as tick:
        found = map_threads(tables, range(len(length_scales)), workers)
    volumes = np.array([log_volume for log_volume, _ in found])
    loss_table = np.stack([table.losses for _, table in found], axis=1)
    best = smallest(loss_table.mean(axis=0), volumes)
    density_losses = np.stack([table.density for _, table in found], axis=1)
    sizes = np.log(length_scales).mean(axis=1)
    density = int(np.argmin(sizes)) if counts else smallest(density_losses.mean(axis=0), volumes)[0]
    folds = len(loss_table)
    nested = np.zeros((folds, 2), dtype=int)
    if searched:
        pairs = np.stack([table.paired for _, table in found if table.paired is not None], axis=2)
        nested[:] = [_nested_choice(pairs, volumes, fold) for fold in range(folds)]
    finest = sizes[_as_good(density_losses, volumes, density)].min()
    resolving = _below_by_half_octave(sizes, finest)
    path = DifferenceSearchPath(
        length_scales, alphas, volumes, loss_table, (best[0], best[1]), nested, density, resolving
    )
    at = (np.arange(folds), nested[:, 0], nested[:, 1])
    relative_volumes = volumes[nested[:, 0]] - volumes[best[0]]
    with np.errstate(divide="ignore"):
        ridge = int(np.argmin(np.abs(np.log(alphas / DISTANCE_ALPHA))))
    cross = found[density][1].cross[:, ridge].mean()
    return CrossFitted(
        path,
        float(over_volume(cross, volumes[density] - volumes[best[0]])),
        float(over_volume(-loss_table[at], relative_volumes).mean()),
    )


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceSearchPath:
    r"""Cross-validation losses of a density difference over length scales and ridges, smaller being better.

    The loss of a fit g to the training folds is :math:`\int g^2 - 2(\bar g_X - \bar g_Y)` with means over the held-out
    fold. Up to the constant :math:`\int (p - q)^2` it is an unbiased estimate of :math:`\int (g - (p - q))^2`. Losses of one
    length scale are stored times the volume :math:`V = \pi^{d/2} \prod_j \sigma_j` of its kernel, because 1/V may
    over- or underflow in hundreds of columns.

    Parameters
    ----------
    length_scales : ndarray of shape (k, d)
        Length scale of each coordinate of the frame, one candidate a row, in the units of the columns.
    alphas : ndarray of shape (a,)
        Ridges, over V.
    log_volumes : ndarray of shape (k,)
        log V of each candidate.
    relative_losses : ndarray of shape (T, k, a)
        Losses times V, by held-out fold.
    best_index : tuple of two int
        Indices of the chosen length scale and ridge, which have the smallest mean loss.
    nested_index : ndarray of shape (T, 2)
        Indices chosen for each fold by the other folds, which the estimate "lower_bound" uses.
    density_index : int
        Index of the length scale at which a Gaussian sum fits the average of both densities best, which estimates of the
        squared L2 distance use.
    resolving_index : int
        Index of the length scale of intervals of the squared L2 distance. Of the length scales whose fit to the average of
        both densities is within a standard error of the best, it is the smallest, over the root of 2 or more.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import LSDD
    >>> rng = np.random.default_rng(0)
    >>> path = LSDD(random_state=0).fit(rng.normal(size=(100, 1)), rng.normal(1.0, size=(100, 1))).search_path_
    >>> path.losses.shape == (len(path.length_scales), len(path.alphas))
    True
    >>> bool(path.losses.min() == path.losses[path.best_index])
    True
    """

    length_scales: np.ndarray
    alphas: np.ndarray
    log_volumes: np.ndarray
    relative_losses: np.ndarray
    best_index: tuple[int, int]
    nested_index: np.ndarray
    density_index: int
    resolving_index: int

    @property
    def fold_losses(self) -> np.ndarray:
        """Losses by fold, of shape (T, k, a), in reciprocal units of volume."""
        return over_volume(self.relative_losses, self.log_volumes[None, :, None])

    @property
    def losses(self) -> np.ndarray:
        """Mean losses, of shape (k, a), in reciprocal units of volume."""
        return over_volume(self.relative_losses.mean(axis=0), self.log_volumes[:, None])

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the mean losses over the folds, of shape (k, a)."""
        folds = len(self.relative_losses)
        spread = self.relative_losses.std(axis=0, ddof=1) / np.sqrt(folds)
        return over_volume(spread, self.log_volumes[:, None])

    @property
    def best_length_scale(self) -> np.ndarray:
        """The chosen length scales, of shape (d,)."""
        return self.length_scales[self.best_index[0]]

    @property
    def best_alpha(self) -> float:
        """The chosen ridge."""
        return float(self.alphas[self.best_index[1]])

    @property
    def resolving_length_scale(self) -> np.ndarray:
        """The length scales of intervals, of shape (d,)."""
        return self.length_scales[self.resolving_index]

    def __repr__(self) -> str:
        """Return a table with one line for each length scale, at its best ridge."""
        k, a = len(self.length_scales), len(self.alphas)
        lines = [f"DifferenceSearchPath: {k} length scales, {a} ridges, {len(self.relative_losses)} folds"]
        lines += [f"{'length scale':>14} {'best alpha':>12} {'loss':>12} {'std. error':>12}"]
        losses, errors = self.relative_losses.mean(axis=0), self.standard_errors
        for i, scale in enumerate(self.length_scales):
            j = int(np.argmin(losses[i]))
            loss = quotient(losses[i, j], self.log_volumes[i])
            best = "  <- best" if i == self.best_index[0] else ""
            size = float(np.exp(np.mean(np.log(scale))))
            lines += [f"{size:>14.4g} {self.alphas[j]:>12.3g} {loss:>12} {errors[i, j]:>12.2g}{best}"]
        return "\n".join(lines)
