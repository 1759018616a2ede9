"""Additive statistics of a density difference: sums over the rows of two samples at every candidate length scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.errors import InputError, refuse_too_large
from isopleth.core.progress import Progress
from isopleth.core.rows import RunningFolds, row_keys
from isopleth.core.scales import ScaledColumns
from isopleth.core.threads import map_threads, slices
from isopleth.difference.cross_validation import FoldSums, FoldSystems
from isopleth.difference.gaussian_system import MATRICES, GaussianSystem, PenalizedSpectrum, fits_within, system_of

# Rows at once, beyond which more memory gains no time.
CHUNK = 4096


@dataclass(eq=False)
class DifferenceStatistics:
    r"""Sums over two samples from which the difference of their densities is solved, at one or several length scales.

    For each length scale they are :math:`\sum_i w_i \psi_l(x_i)` over each fold of each sample, which
    cross-validation uses too, and the mean and scatter of :math:`\psi` in each sample, from which standard errors follow. No
    rows are kept. Sums over parts of the data, computed in any order, in other processes or on other machines, can be merged.

    Each row is assigned to a fold by ``isopleth.core.rows.RunningFolds``. The choice of length scale and ridge, and estimates
    from held-out folds, therefore depend on the order of the rows, as they depend on a seed.

    Parameters
    ----------
    frame : ScaledColumns
        Frame of the rows, at unit scale.
    centers : ndarray of shape (b, n_features)
        Centres in the units of the data.
    length_scales : ndarray of shape (k, d)
        Length scale of each column that the frame keeps, one candidate a row.
    sums : list of k SampleSums
        Sums at each length scale.
    folds : list of two RunningFolds
        Folds of each sample.
    budget : Budget
        Memory and threads.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.difference.statistics import DifferenceStatistics
    >>> from isopleth.core.scales import ScaledColumns
    >>> rng = np.random.default_rng(0)
    >>> x, y, centers = rng.normal(size=(300, 1)), rng.normal(1.0, size=(200, 1)), np.linspace(-2, 3, 6)[:, None]
    >>> def empty():
    ...     return DifferenceStatistics.empty(ScaledColumns.centred(x, np.array([True])), centers, np.array([[0.7]]))
    >>> one = empty().accumulate(0, x[:100]).accumulate(1, y)
    >>> other = empty().accumulate(0, x[100:])
    >>> coefficients = one.merge(other).solve(alpha=0.1)
    >>> bool(np.allclose(coefficients, empty().accumulate(0, x).accumulate(1, y).solve(alpha=0.1)))
    True
    """

    frame: ScaledColumns
    centers: np.ndarray
    length_scales: np.ndarray
    sums: list[SampleSums]
    folds: list[RunningFolds]
    budget: Budget = DEFAULT_BUDGET

    @classmethod
    def empty(
        cls,
        frame: ScaledColumns,
        centers: np.ndarray,
        length_scales: np.ndarray,
        *,
        folds: int = 2,
        seed: int = 0,
        drawn: bool = False,
        moments: bool = True,
        budget: Budget = DEFAULT_BUDGET,
    ) -> Self:
        """Create sums over no rows.

        Parameters
        ----------
        frame, centers, length_scales
            As of the class.
        folds, seed : int
            Number of folds, and the seed of their order.
        drawn : bool
            Whether the centres are rows, which are excluded from their own means in cross-validation.
        moments : bool
            Whether to sum the scatter, which standard errors need and a search does not.
        budget : Budget
            Memory and threads.

        Raises
        ------
        InputError
            If sums for these centres and length scales do not fit in the memory limit.
        """
        fits_within(len(centers), budget)
        least = 8.0 * len(centers) ** 2 * (MATRICES + 2 * len(length_scales) * moments)
        what = f"sums for {len(centers)} centers at {len(length_scales)} length scales"
        refuse_too_large(what, least, budget.memory, "use fewer centers, give length_scale as a number")
        each = Budget(budget.memory, max(1, budget.threads // len(length_scales)))
        systems = [system_of(frame, scale, centers, each) for scale in length_scales]
        return cls(
            frame,
            centers,
            length_scales,
            [SampleSums.empty(system, folds, drawn, moments) for system in systems],
            [RunningFolds(folds, seed) for _ in range(2)],
            budget,
        )

    def accumulate(self, sample: int, rows: np.ndarray, weights: Any = None) -> Self:
        """Add rows of one sample.

        Parameters
        ----------
        sample : {0, 1}
            Index of the sample.
        rows : ndarray of shape (n, n_features)
            Finite rows in the units of the data, any number of them.
        weights : ndarray of shape (n,), optional
            Weights, not negative; ones by default. A weight counts repetitions.

        Returns
        -------
        self
        """
        w = np.ones(len(rows)) if weights is None else weights
        counted = np.flatnonzero(w > 0)
        for part in slices(len(counted), CHUNK):
            self._add(sample, rows[counted[part]], w[counted[part]])
        return self

    def _add(self, sample: int, rows: np.ndarray, w: np.ndarray) -> None:
        """Add rows of one sample to the sums at each length scale."""
        weights = np.zeros((len(rows), 2, self.folds[0].folds))
        weights[np.arange(len(rows)), sample, self.folds[sample].deal(rows)] = w
        units = self._units(rows, weights) if self.sums[0].folds.units is not None else None

        def add(place: int) -> None:
            z = self.frame.scaled(self.length_scales[place]).enter(rows)
            self.sums[place].accumulate(z, weights, units)

        map_threads(add, range(len(self.sums)), min(self.budget.threads, len(self.sums)))

    def _units(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the weights of the rows that are centres, by centre."""
        out = np.zeros_like(self.sums[0].folds.sums)
        keys = row_keys(self.centers)
        order = np.argsort(keys)
        found = row_keys(rows)
        place = order[np.minimum(np.searchsorted(keys, found, sorter=order), len(keys) - 1)]
        same = np.flatnonzero(keys[place] == found)
        np.add.at(out, place[same], weights[same])
        return out

    def merge(self, other: DifferenceStatistics) -> Self:
        """Add the sums of `other`.

        Parameters
        ----------
        other : DifferenceStatistics
            Sums at the same centres and length scales, in the same frame; not changed.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If centres, length scales, frame or folds differ.
        """
        pairs: tuple[tuple[str, Any, Any], ...] = (
            ("centers", self.centers, other.centers),
            ("length scales", self.length_scales, other.length_scales),
            ("columns", self.frame.keep, other.frame.keep),
            ("shift", self.frame.shift, other.frame.shift),
            ("coordinates", _numbers(self.frame), _numbers(other.frame)),
            ("folds or of other kinds of sums", self._shape, other._shape),
        )
        for what, one, two in pairs:
            if not np.array_equal(one, two):
                raise InputError(f"statistics of other {what} cannot be merged; accumulate with one and the same.")
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine.merge(theirs)
        for folds, more in zip(self.folds, other.folds, strict=True):
            folds.merge(more)
        return self

    @property
    def _shape(self) -> tuple[int, bool, bool]:
        """Number of folds, whether centres are rows, and whether there are moments."""
        first = self.sums[0]
        return first.folds.folds, first.folds.units is not None, first.moments is not None

    @property
    def n_rows(self) -> np.ndarray:
        """Number of rows of positive weight in each sample."""
        return np.array([folds.seen for folds in self.folds])

    @property
    def counts(self) -> np.ndarray:
        """Sums of weights by sample and fold."""
        return self.sums[0].folds.counts

    def at(self, place: int) -> SampleSums:
        """Return the sums at one of the length scales, in one fold if not every fold has rows of both samples.

        Weights whose sum is below the number of rows are taken for shares, and scaled up to that number.
        """
        total = self.counts.sum(axis=1)
        factors = np.ones(2)
        np.divide(self.n_rows, total, out=factors, where=(total > 0) & (total < self.n_rows))
        scaled = self.sums[place].scaled(factors)
        return scaled if (self.counts > 0).all() else scaled.in_one_fold()

    def place(self, scale: np.ndarray) -> int:
        """Return the index of a length scale."""
        return int(np.argmax((self.length_scales == scale).all(axis=1)))

    def solve(self, alpha: float, place: int = 0, penalty: str = "l2") -> np.ndarray:
        """Return the coefficients of the difference times V.

        Parameters
        ----------
        alpha : float
            The ridge over V.
        place : int
            Index of the length scale.
        penalty : {"l2", "rkhs"}
            Norm that the ridge penalises.

        Returns
        -------
        ndarray of shape (b,)

        Raises
        ------
        InputError
            If a sample has no rows, or the ridge leaves a singular system.
        """
        self.refuse_empty()
        at = DifferenceSystem.of(self.at(place), penalty)
        at.spectrum.check(alpha)
        return np.asarray(at.spectrum.solve(at.h[:, None], alpha)[:, 0])

    def refuse_empty(self) -> None:
        """Check that both samples have rows.

        Raises
        ------
        InputError
            If a sample has none, with its name.
        """
        if not self.n_rows.all():
            raise InputError(
                f"{'XY'[int(np.argmin(self.n_rows))]} has no rows of positive weight; a difference needs both samples."
            )


def _numbers(frame: ScaledColumns) -> np.ndarray:
    """Return all parameters of coordinates in one array."""
    return np.hstack([np.ravel(part) for part in vars(frame).values()])


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and scatter of the functions over the rows of one sample; summed directly, so that no digits cancel."""

    count: float  # sum of the weights
    mean: np.ndarray  # (b,): mean, a NumPy array
    scatter: Array  # (b, b): scatter, on the backend of the centres

    @classmethod
    def of(cls, system: GaussianSystem, values: Array, w: np.ndarray) -> Self:
        """Compute the moments over rows of positive weight from the values of the functions."""
        backend, count = system.backend, float(w.sum())
        mean = to_numpy(values.T @ backend.array(w)) / count
        centred = (values - backend.array(mean)) * backend.array(np.sqrt(w))[:, None]
        return cls(count, mean, centred.T @ centred)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments over the rows of both."""
        if not self.count > 0.0 or not other.count > 0.0:
            return self if self.count > 0.0 else other
        total = self.count + other.count
        theirs = other.count / total
        apart = other.mean - self.mean
        root = Backend.of(self.scatter).array(np.sqrt(self.count * theirs) * apart)
        scatter = root[:, None] * root[None, :]
        scatter += self.scatter
        scatter += other.scatter
        return Moments(total, self.mean + theirs * apart, scatter)


@dataclass(eq=False)
class SampleSums:
    """Sums of the functions over both samples by fold, and their moments in each sample."""

    system: GaussianSystem  # functions
    folds: FoldSums  # sums over each sample and fold
    moments: list[Moments] | None  # moments of each sample; None if they are not needed

    @classmethod
    def empty(cls, system: GaussianSystem, folds: int, own: bool, moments: bool) -> Self:
        """Create sums over no rows; `own` says whether the centres are rows, `moments` whether moments are needed."""
        b = system.centers.shape[0]
        blank = FoldSums(np.zeros((b, 2, folds)), np.zeros((2, folds)), np.zeros((b, 2, folds)) if own else None)
        if not moments:
            return cls(system, blank, None)
        return cls(system, blank, [Moments(0.0, np.zeros(b), system.backend.array(np.zeros((b, b)))) for _ in range(2)])

    def accumulate(self, z: Array, weights: np.ndarray, units: np.ndarray | None) -> Self:
        """Add rows `z` (n, d) in the frame, weights (n, 2, T) by sample and fold, and units (b, 2, T) of the centres."""
        if self.moments is None:
            sums = self.system.sums(z, weights.reshape(len(weights), -1))
        else:
            sums = np.zeros((self.folds.sums.shape[0], weights[0].size))
            with Progress("moments at the length scale", len(weights), self.system.budget.verbose) as tick:
                for part in self.system.chunks(len(weights)):
                    sums += self._add(self.system.matrix(z[part, :]), weights[part], self.moments)
                    tick(len(weights[part]))
        self.folds += FoldSums(sums.reshape(self.folds.sums.shape), weights.sum(axis=0), units)
        return self

    def _add(self, values: Array, weights: np.ndarray, moments: list[Moments]) -> np.ndarray:
        """Add the moments of rows from the values of the functions there, and return the sums by sample and fold."""
        backend = self.system.backend
        for sample, w in enumerate(weights.sum(axis=2).T):
            counted = np.flatnonzero(w > 0)
            if len(counted):
                seen = (
                    values if len(counted) == len(w) else namespace(values).take(values, backend.array(counted), axis=0)
                )
                moments[sample] += Moments.of(self.system, seen, w[counted])
        sums: np.ndarray = to_numpy(values.T @ backend.array(weights.reshape(len(weights), -1)))
        return sums

    def merge(self, other: SampleSums) -> Self:
        """Add the sums of `other`, which has the same functions and folds."""
        if self.moments is not None and other.moments is not None:
            self.moments = [mine + theirs for mine, theirs in zip(self.moments, other.moments, strict=True)]
        self.folds += other.folds
        return self

    def scaled(self, factors: np.ndarray) -> SampleSums:
        """Return the sums with the weights of each sample multiplied by a factor."""
        if (factors == 1.0).all():
            return self
        folds, by = self.folds, factors[:, None]
        units = None if folds.units is None else folds.units * by
        scaled = FoldSums(folds.sums * by, folds.counts * by, units)
        if self.moments is None:
            return SampleSums(self.system, scaled, None)
        pairs = zip(map(float, factors), self.moments, strict=True)
        return SampleSums(self.system, scaled, [Moments(f * m.count, m.mean, f * m.scatter) for f, m in pairs])

    def in_one_fold(self) -> SampleSums:
        """Return the same sums without a split into folds."""
        folds = self.folds
        whole = FoldSums(folds.sums.sum(axis=2, keepdims=True), folds.counts.sum(axis=1, keepdims=True), None)
        return SampleSums(self.system, whole, self.moments)

    def systems(self, penalty: str) -> tuple[float, FoldSystems]:
        """Return the log volume, and the systems of fits without some folds."""
        return self.system.log_volume, FoldSystems(self.folds, self.system.gram(), self.system.norm(penalty))


@dataclass(frozen=True)
class DifferenceSystem:
    """Means and covariances of the functions in both samples at one length scale, and the systems to solve."""

    log_volume: float  # logarithm of the volume of the kernel
    spectrum: PenalizedSpectrum  # decomposition of the inner products H
    means: np.ndarray  # (b, 2): means over each sample
    covariances: list[Array]  # (b, b): covariance in each sample, divided by its size; on the backend of the centres
    counts: np.ndarray  # (2,): sizes of the samples
    systems: FoldSystems | None  # systems of the fits without some folds; None if there is one fold

    @classmethod
    def of(cls, sums: SampleSums, penalty: str) -> Self:
        """Build the system from sums with moments."""
        log_volume, systems = sums.systems(penalty)
        moments = sums.moments or []
        return cls(
            log_volume,
            systems.spectrum,
            np.column_stack([each.mean for each in moments]),
            [each.scatter / each.count for each in moments],
            np.array([each.count for each in moments]),
            systems if sums.folds.folds > 1 else None,
        )

    @property
    def h(self) -> np.ndarray:
        """Mean over the first sample less the mean over the second."""
        return np.asarray(self.means[:, 0] - self.means[:, 1])

    @property
    def noise(self) -> Array:
        """Unbiased covariance of h; undefined if a sample has only one row."""
        return sum(v / (float(n) - 1.0) for v, n in zip(self.covariances, self.counts, strict=True))


def deviation_factor(at: DifferenceSystem, alpha: float) -> np.ndarray | None:
    """Return F, (b, r), such that the norm of F' psi(x) is the standard deviation at x; None if a sample has one row."""
    if not (at.counts > 1.0).all():
        return None
    values, vectors = map(to_numpy, namespace(at.noise).linalg.eigh(at.noise))
    kept = values > len(values) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    return at.spectrum.solve(vectors[:, kept] * np.sqrt(values[kept]), alpha)


def deviations_at(system: GaussianSystem, z: Array, factor: np.ndarray) -> np.ndarray:
    """Return standard deviations of the fitted difference at the rows `z`, times the volume."""
    out = np.zeros(len(z))
    for part in system.chunks(len(z)):
        out[part] = np.linalg.norm(system.values(z[part], factor), axis=1)
    return out
