"""Fits to all but some folds, whose centres lie in the other folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from isopleth.backend import Array, Backend, namespace
from isopleth.difference.gaussian_system import PenalizedSpectrum, over_volume, quotient, smallest
from isopleth.operators.threads import map_threads

# Ridge over the volume below which systems count as nearly singular.
LEAST_ALPHA = 1e-3


@dataclass(frozen=True)
class Split:
    """Two samples in folds.

    Parameters
    ----------
    weights : array of shape (m, 2, T)
        Weights by row, sample and fold.
    units : array of shape (b, 2, T) or None
        The same for the rows that are centres, to know which centres the training folds have; None if all of them may
        always be used.
    """

    weights: np.ndarray
    units: np.ndarray | None

    @property
    def folds(self) -> int:
        """How many."""
        return int(self.weights.shape[2])

    @property
    def counts(self) -> np.ndarray:
        """Sizes by sample and fold."""
        return self.weights.sum(axis=0)


@dataclass(frozen=True)
class FoldSums:
    """Sums of the functions over the rows of each sample and fold; sums over other rows add to them.

    Parameters
    ----------
    sums : array of shape (b, 2, T)
        Of each function, by sample and fold.
    counts : array of shape (2, T)
        Of the weights: the sizes.
    units : array of shape (b, 2, T) or None
        Of the weights of the rows that are centres, to know which centres the training folds have; None if all of them may
        always be used.
    """

    sums: np.ndarray
    counts: np.ndarray
    units: np.ndarray | None

    def __add__(self, other: FoldSums) -> FoldSums:
        """Sums over the rows of both."""
        units = None if self.units is None or other.units is None else self.units + other.units
        return FoldSums(self.sums + other.sums, self.counts + other.counts, units)

    @property
    def folds(self) -> int:
        """How many."""
        return int(self.counts.shape[1])

    def missing(self, out: Sequence[int]) -> np.ndarray:
        """Places of the centres that are not in the training folds."""
        if self.units is None:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(self._train(self.units, out).sum(axis=1) == 0)

    def held_out(self, fold: int) -> np.ndarray:
        """Mean over the first sample less mean over the second, in one fold."""
        means = self.sums[:, :, fold] / self.counts[:, fold]
        return means[:, 0] - means[:, 1]

    def _train(self, array: np.ndarray, out: Sequence[int]) -> np.ndarray:
        return np.delete(array, list(out), axis=-1).sum(axis=-1)

    def trained(self, out: Sequence[int]) -> np.ndarray:
        """The same over all folds but those `out`."""
        means = self._train(self.sums, out) / self._train(self.counts, out)
        return means[:, 0] - means[:, 1]

    def trained_without_self(self, out: Sequence[int]) -> np.ndarray:
        """The same where each centre leaves out the one draw that it is itself."""
        if self.units is None:
            return self.trained(out)
        own = self._train(self.units, out)
        own = own / np.maximum(np.ceil(own * (1.0 - 1e-12)), 1.0)
        total = self._train(self.counts, out)
        own[:, total - own.max(axis=0) <= 1e-9 * total] = 0.0  # a single draw cannot be left out
        means = (self._train(self.sums, out) - own) / (total - own)
        return means[:, 0] - means[:, 1]


@dataclass(frozen=True)
class FoldTables:
    """Scores of every ridge, over the volume of the system.

    Parameters
    ----------
    losses : array of shape (T, a)
        Cross-validation losses by held-out fold.
    cross : array of shape (T, a)
        Cross-fitted dual estimates of the squared L2 distance.
    paired : array of shape (T, T, a) or None
        Losses in the first fold of fits that saw neither it nor the second one.
    """

    losses: np.ndarray
    cross: np.ndarray
    paired: np.ndarray | None


@dataclass(frozen=True)
class FoldFit:
    """The system of the centres in some folds.

    Parameters
    ----------
    spectrum : PenalizedSpectrum
        Of their inner products and norm.
    kept : array of int or None
        Their places; None for all.
    """

    spectrum: PenalizedSpectrum
    kept: np.ndarray | None

    def coordinates(self, columns: list[np.ndarray]) -> np.ndarray:
        """Right-hand sides in the eigenvectors, where all that is asked of their solutions is a sum."""
        h = np.column_stack(columns)
        return self.spectrum.coordinates(h if self.kept is None else h[self.kept])

    def coefficients(self, coordinates: np.ndarray, alpha: float, centers: int) -> np.ndarray:
        """Of one right-hand side, 0 for centres that are not kept."""
        solved = self.spectrum.combined(coordinates / (self.spectrum.values + alpha))
        if self.kept is None:
            return solved
        out = np.zeros(centers)
        out[self.kept] = solved
        return out


@dataclass(frozen=True)
class FoldSystems:
    """Fits to all but some folds: sums over folds, inner products of all centres and the penalised norm.

    A decomposition for each set of folds serves all ridges. The matrices of the centres stay where these are; what is a number
    a centre is of NumPy.
    """

    sums: FoldSums
    gram: Array
    norm: Array | None

    @cached_property
    def _whole(self) -> FoldFit:
        return FoldFit(PenalizedSpectrum.of(self.gram, self.norm), None)

    def leaves_out_self(self, alpha: float) -> bool:
        """Whether cross-fitted estimates leave out what a centre adds to its own mean.

        Such means are not those of any smooth function of the centre. Nearly singular systems blow that up.
        """
        return self.norm is None and alpha >= LEAST_ALPHA * (1.0 - 1e-12)

    def fit(self, out: Sequence[int], least_alpha: float) -> FoldFit:
        """The system without the folds `out`, which must be regular at the least ridge."""
        missing = self.sums.missing(out)
        if len(missing):
            kept = np.delete(np.arange(self.gram.shape[0]), missing)
            norm = None if self.norm is None else _block(self.norm, kept)
            fit = FoldFit(PenalizedSpectrum.of(_block(self.gram, kept), norm), kept)
        else:
            fit = self._whole
        fit.spectrum.check(least_alpha)
        return fit


def _block(matrix: Array, kept: np.ndarray) -> Array:
    """Rows and columns that are kept."""
    xp, places = namespace(matrix), Backend.of(matrix).array(kept)
    return xp.take(xp.take(matrix, places, axis=0), places, axis=1)


def fold_coefficients(systems: FoldSystems, alpha: float) -> np.ndarray:
    """Coefficients of the fits without each fold, of shape (b, T)."""
    columns = []
    for t in range(systems.sums.folds):
        fit = systems.fit((t,), alpha)
        columns.append(
            fit.coefficients(fit.coordinates([systems.sums.trained((t,))])[:, 0], alpha, systems.gram.shape[0])
        )
    return np.column_stack(columns)


def fold_tables(systems: FoldSystems, alphas: np.ndarray, nested: bool) -> FoldTables:
    """Scores by fold and ridge, and with `nested` those of fits that leave out two folds."""
    sums, least = systems.sums, float(alphas.min())
    folds = range(sums.folds)
    tests = [sums.held_out(t) for t in folds]
    losses, cross = np.empty((2, len(folds), len(alphas)))
    for t in folds:
        fit = systems.fit((t,), least)
        h, alone, test = fit.coordinates([sums.trained((t,)), sums.trained_without_self((t,)), tests[t]]).T
        losses[t] = _losses(fit, alphas, h, test)
        # 2 h'Gk - h'GHGk, h over the held-out fold and k over the others
        k = [alone if systems.leaves_out_self(alpha) else h for alpha in alphas]
        cross[t] = [(test * k[a]) @ fit.spectrum.dual_weights(alpha) for a, alpha in enumerate(alphas)]
    if not nested:
        return FoldTables(losses, cross, None)
    paired = np.full((len(folds), len(folds), len(alphas)), np.nan)
    for s, t in combinations(folds, 2):
        fit = systems.fit((s, t), least)
        h, test_s, test_t = fit.coordinates([sums.trained((s, t)), tests[s], tests[t]]).T
        paired[s, t], paired[t, s] = _losses(fit, alphas, h, test_s), _losses(fit, alphas, h, test_t)
    return FoldTables(losses, cross, paired)


def _losses(fit: FoldFit, alphas: np.ndarray, h: np.ndarray, test: np.ndarray) -> np.ndarray:
    """theta'H theta - 2 test'theta of every ridge."""
    solved = h[:, None] / (fit.spectrum.values[:, None] + alphas)
    return np.asarray(fit.spectrum.values @ solved**2 - 2.0 * test @ solved)


@dataclass(frozen=True)
class CrossFitted:
    """What held-out folds say of the squared L2 distance, over the volume of the chosen length scale."""

    path: DifferenceSearchPath
    cross_fitted: float
    lower_bound: float


def _nested_choice(paired: np.ndarray, log_volumes: np.ndarray, fold: int) -> tuple[int, ...]:
    """Grid point for the fits without `fold`, by losses that never saw it: the smallest mean plus standard error.

    The error keeps out points of large variance that are the best by luck, and costs little where a difference is clear.
    """
    others = np.delete(paired[:, fold], fold, axis=0)
    score = others.mean(axis=0) + others.std(axis=0, ddof=1) / np.sqrt(len(others))
    return smallest(score, log_volumes)


def cross_validate(
    systems_at: Callable[[int, int], tuple[float, FoldSystems]],
    length_scales: np.ndarray,
    alphas: np.ndarray,
    n_jobs: int,
) -> CrossFitted:
    """Losses over the grid, its best point, and the estimates whose grid points were chosen without their fold.

    `systems_at` answers with the log volume and the fits to folds at the length scale of a place, summed by so many threads.
    """
    searched = len(length_scales) * len(alphas) > 1
    workers = min(n_jobs, len(length_scales))

    def tables(place: int) -> tuple[float, FoldTables]:
        log_volume, systems = systems_at(place, max(1, n_jobs // workers))
        return log_volume, fold_tables(systems, alphas, searched)

    found = map_threads(tables, range(len(length_scales)), workers)
    volumes = np.array([log_volume for log_volume, _ in found])
    loss_table = np.stack([table.losses for _, table in found], axis=1)
    cross_table = np.stack([table.cross for _, table in found], axis=1)
    best = smallest(loss_table.mean(axis=0), volumes)
    folds = len(loss_table)
    nested = np.zeros((folds, 2), dtype=int)
    if searched:
        pairs = np.stack([table.paired for _, table in found if table.paired is not None], axis=2)
        nested[:] = [_nested_choice(pairs, volumes, fold) for fold in range(folds)]
    path = DifferenceSearchPath(length_scales, alphas, volumes, loss_table, (best[0], best[1]), nested)
    at = (np.arange(folds), nested[:, 0], nested[:, 1])
    relative_volumes = volumes[nested[:, 0]] - volumes[best[0]]
    return CrossFitted(
        path,
        float(over_volume(cross_table[at], relative_volumes).mean()),
        float(over_volume(-loss_table[at], relative_volumes).mean()),
    )


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceSearchPath:
    r"""Cross-validation losses of a density difference over length scales and ridges, smaller being better.

    The loss of a fit g to the training folds is :math:`\int g^2 - 2(\bar g_X - \bar g_Y)` with means over the held-out
    fold: up to the constant :math:`\int (p - q)^2` an unbiased estimate of :math:`\int (g - (p - q))^2`. Losses of one
    length scale are kept over the volume :math:`V = \pi^{d/2} \prod_j \sigma_j` of its kernel, which double precision may
    not hold in hundreds of dimensions.

    Parameters
    ----------
    length_scales : ndarray of shape (k, d)
        Length scale of each column that varies, one candidate a row, in the units of the data.
    alphas : ndarray of shape (a,)
        Ridges, over V.
    log_volumes : ndarray of shape (k,)
        log V of each candidate.
    relative_losses : ndarray of shape (T, k, a)
        Losses times V, by held-out fold.
    best_index : tuple of two int
        Places of the chosen length scale and ridge, those of the smallest mean loss.
    nested_index : ndarray of shape (T, 2)
        Places chosen for each fold by the others, as the cross-fitted estimates want it.

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
        """Of the mean losses, from how far the folds differ."""
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
    def steady_length_scale(self) -> np.ndarray:
        """The largest of the length scales in `nested_index`, of shape (d,): all folds agree on one as small or smaller."""
        chosen = self.nested_index[:, 0]
        return self.length_scales[chosen[np.argmax(self.log_volumes[chosen])]]

    def __repr__(self) -> str:
        """A line for each length scale, at its best ridge."""
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
