"""What a two-sample test found: how sure, how far apart, and where."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isopleth.difference.lsdd import LSDD
from isopleth.errors import DataWarning, InputError
from isopleth.tasks.two_sample.problem import TwoSampleProblem
from isopleth.tasks.two_sample.witness import Witness

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROWS_OF_INTERVAL, _CENTERS_OF_INTERVAL = 5000, 200
_MOST_REPEATED = 0.5


class ConfidenceInterval(NamedTuple):
    """Ends of an interval."""

    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult:
    """Answer of :func:`two_sample_test`.

    Parameters
    ----------
    statistic : float
        Largest score over length scales and ridges. Under permutations each score is about standard normal.
    pvalue : float
        Share of the label vectors, the observed one and the permuted ones, whose statistic is no smaller.
    sizes : tuple of two int
        Rows of X and Y.
    names : list of str
        Names of the columns.
    n_permutations : int
        How many permutations.
    group : int
        Rows that were permuted as one.
    length_scale : ndarray of shape (n_features,)
        Where the statistic is largest, in the units of the columns; NaN for constant columns.
    alpha : float
        The ridge there, over the volume of the kernel.
    problem : TwoSampleProblem
        What :attr:`witness` and :meth:`confidence_interval` are computed from.
    best : tuple of two int
        Length scale and ridge where the statistic is largest, by their positions in the grid.
    """

    statistic: float
    pvalue: float
    sizes: tuple[int, int]
    names: list[str]
    n_permutations: int
    group: int
    length_scale: np.ndarray
    alpha: float
    problem: TwoSampleProblem = field(repr=False)
    best: tuple[int, int]

    def __repr__(self) -> str:
        return f"TwoSampleResult(statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g})"

    @cached_property
    def witness(self) -> Witness:
        """Where, and in which columns, the samples differ; computed when first asked for."""
        return Witness.of(self.problem, self.best, self.names)

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        r"""Interval for the squared L2 distance :math:`\int (p - q)^2` of the two densities.

        It is that of :meth:`LSDD.squared_l2_interval`, fitted with 200 centres to at most 5,000 rows of each sample, drawn at
        random. It is for a distance that Gaussian sums of one length scale resolve, which is never above the one of the
        densities: the lower end errs on the safe side, and the upper end does not cover differences in finer detail. Where it
        holds 0 the interval does not tell the samples apart; the test is the sharper judge of that. Where most rows of a sample
        repeat others there is no density, and a ``DataWarning`` says so.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Between 0 and 1.

        Returns
        -------
        ConfidenceInterval
            `low` and `high`, in reciprocal units of the volume of the columns that vary.

        Raises
        ------
        InputError
            If the level is not between 0 and 1, a sample has fewer than three rows, or all rows are equal.
        """
        weights = self.problem.samples.weights
        if (np.where(weights > 1.0, weights, 0.0).sum(axis=0) > _MOST_REPEATED * weights.sum(axis=0)).any():
            warnings.warn(
                "most rows of a sample repeat others: such samples have no densities, and the interval means nothing.",
                DataWarning,
                stacklevel=2,
            )
        return ConfidenceInterval(*self._difference.squared_l2_interval(confidence_level))

    @cached_property
    def _difference(self) -> LSDD:
        """The density difference, as LSDD fits it."""
        if min(self.sizes) < 3 or len(self.problem.samples.rows) < 2:
            raise InputError("a confidence interval needs three rows in each sample, and rows that differ.")
        rng = np.random.default_rng([self.problem.seed, 3])
        keep = self.problem.frame[0]
        X, Y = (rows[rng.permutation(len(rows))[:_ROWS_OF_INTERVAL]][:, keep] for rows in self.problem.given)
        model = LSDD(
            centers=_CENTERS_OF_INTERVAL,
            memory_limit=self.problem.memory_limit,
            n_jobs=self.problem.n_jobs,
            random_state=self.problem.seed,
        )
        return model.fit(X, Y)

    def plot(self) -> Figure:
        """Draw where the samples differ: columns by p-value, and rows in the columns that differ most.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.plotting import plot_two_samples

        return plot_two_samples(self)
