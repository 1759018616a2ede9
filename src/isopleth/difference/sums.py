"""What rows add to a density difference at one length scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.backend import Array, Backend, namespace, to_numpy
from isopleth.difference.cross_validation import FoldSums, FoldSystems
from isopleth.difference.gaussian_system import GaussianSystem


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Mean and scatter of the functions :math:`\psi_l` over the rows of one sample.

    The scatter :math:`\sum_i w_i (\psi(x_i) - \bar\psi)(\psi(x_i) - \bar\psi)^\top` is added as such: as a difference of second
    moments and squared means it would lose its digits where the functions hardly vary.

    Parameters
    ----------
    count : float
        Sum of the weights.
    mean : array of shape (b,)
        Of NumPy.
    scatter : array of shape (b, b)
        Where the centres are.
    """

    count: float
    mean: np.ndarray
    scatter: Array

    @classmethod
    def of(cls, system: GaussianSystem, values: Array, w: np.ndarray) -> Self:
        """Of rows at which the functions have these values, all of positive weight."""
        backend, count = system.backend, float(w.sum())
        mean = to_numpy(values.T @ backend.array(w)) / count
        centred = (values - backend.array(mean)) * backend.array(np.sqrt(w))[:, None]
        return cls(count, mean, centred.T @ centred)

    def __add__(self, other: Moments) -> Moments:
        """Over the rows of both."""
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
    """Sums of the functions over both samples by fold, and their moments in each sample.

    Parameters
    ----------
    system : GaussianSystem
        The functions.
    folds : FoldSums
        Over each sample and fold.
    moments : list of two Moments, or None
        Of the samples; None if nobody will ask for them.
    """

    system: GaussianSystem
    folds: FoldSums
    moments: list[Moments] | None

    @classmethod
    def empty(cls, system: GaussianSystem, folds: int, own: bool, moments: bool) -> Self:
        """Over no rows; `own` says whether the centres are rows, `moments` whether these are wanted."""
        b = system.centers.shape[0]
        blank = FoldSums(np.zeros((b, 2, folds)), np.zeros((2, folds)), np.zeros((b, 2, folds)) if own else None)
        if not moments:
            return cls(system, blank, None)
        return cls(system, blank, [Moments(0.0, np.zeros(b), system.backend.array(np.zeros((b, b)))) for _ in range(2)])

    def accumulate(self, z: Array, weights: np.ndarray, units: np.ndarray | None) -> Self:
        """Add rows.

        Parameters
        ----------
        z : array of shape (n, d)
            In the frame of the system, where the centres are.
        weights : array of shape (n, 2, T)
            By sample and fold.
        units : array of shape (b, 2, T) or None
            Those of these rows that are centres.
        """
        if self.moments is None:
            sums = self.system.sums(z, weights.reshape(len(weights), -1))
        else:
            sums = np.zeros((self.folds.sums.shape[0], weights[0].size))
            for part in self.system.chunks(len(weights)):
                sums += self._add(self.system.matrix(z[part, :]), weights[part], self.moments)
        self.folds += FoldSums(sums.reshape(self.folds.sums.shape), weights.sum(axis=0), units)
        return self

    def _add(self, values: Array, weights: np.ndarray, moments: list[Moments]) -> np.ndarray:
        """Add the moments of rows at which the functions have these values, and answer with their sums by sample and fold."""
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
        """Add the rows that `other` has seen, of the same functions and folds."""
        if self.moments is not None and other.moments is not None:
            self.moments = [mine + theirs for mine, theirs in zip(self.moments, other.moments, strict=True)]
        self.folds += other.folds
        return self

    def scaled(self, factors: np.ndarray) -> SampleSums:
        """As if all weights in each of the samples were so many times as large."""
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
        """The same without a split."""
        folds = self.folds
        whole = FoldSums(folds.sums.sum(axis=2, keepdims=True), folds.counts.sum(axis=1, keepdims=True), None)
        return SampleSums(self.system, whole, self.moments)

    def systems(self, penalty: str) -> tuple[float, FoldSystems]:
        """Log volume, and fits without folds."""
        return self.system.log_volume, FoldSystems(self.folds, self.system.gram(), self.system.norm(penalty))
