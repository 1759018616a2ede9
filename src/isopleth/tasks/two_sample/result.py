"""Results of two-sample tests: p-value, how different the samples are, and where."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isopleth.difference.lsdd import LSDD
from isopleth.errors import DataWarning, InputError
from isopleth.tasks.two_sample.problem import TwoSampleProblem
from isopleth.tasks.two_sample.separation import Separation, column_changes
from isopleth.tasks.two_sample.witness import Witness

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROWS_OF_INTERVAL, _CENTERS_OF_INTERVAL = 5000, 200
_MOST_REPEATED = 0.5


class ConfidenceInterval(NamedTuple):
    """Confidence interval with lower and upper limits."""

    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult:
    """Result of :func:`two_sample_test`.

    Parameters
    ----------
    statistic : float
        Largest of the nine scores. Under permutations each of them is standard normal.
    pvalue : float
        Share of the label vectors, the observed one and the permuted ones, whose statistic is no smaller.
    sizes : tuple of two int
        Rows of X and Y.
    names : list of str
        Names of the columns.
    n_permutations : int
        Number of permutations.
    group : int
        Number of rows that were permuted as one.
    length_scale : ndarray of shape (n_features,)
        Length scale of the kernel whose LSDD has the largest score, in the units of the columns; NaN for constant columns.
    scores : dict of str to float
        The nine scores by the names of the statistics; empty where all rows are equal.
    problem : TwoSampleProblem
        The prepared samples, from which the other answers are computed.
    best : int
        Position among the eight pairs of kernel and ridge of the one whose LSDD has the largest score.
    """

    statistic: float
    pvalue: float
    sizes: tuple[int, int]
    names: list[str]
    n_permutations: int
    group: int
    length_scale: np.ndarray
    scores: dict[str, float]
    problem: TwoSampleProblem = field(repr=False)
    best: int

    def __repr__(self) -> str:
        return f"TwoSampleResult(statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g})"

    @cached_property
    def witness(self) -> Witness:
        """Where, and in which columns, the samples differ; computed when first asked for."""
        return Witness.of(self.problem, self.best, self.names)

    def separation(self, confidence_level: float = 0.95) -> Separation:
        """Return how well rows of the two samples can be told apart, and the share of one sample that differs.

        A classifier is fitted to nine tenths of the rows and judged on the rest, ten times; of each sample at most 5,000 rows,
        drawn at random, are used. Its accuracy, with both samples weighing alike, is 0.5 where it sees no difference and 1 where
        the samples do not overlap. No classifier has an accuracy above (1 + t) / 2, where t is the total variation distance, the
        share of one sample that would have to change to make the two alike. So 2 accuracy - 1 is a lower bound of that share,
        and so is its lower confidence limit. The upper limit bounds what this classifier shows, not the share.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence of the interval.

        Returns
        -------
        Separation
            With `accuracy`, `low`, `high`, and the same as a `share`, `share_low` and `share_high`.

        Raises
        ------
        InputError
            If the level is not between 0 and 1, or a sample has fewer than five rows.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import two_sample_test
        >>> rng = np.random.default_rng(0)
        >>> before, after = rng.normal(size=(400, 2)), rng.normal([1.0, 0.0], size=(400, 2))
        >>> found = two_sample_test(before, after, random_state=0).separation()
        >>> bool(0.6 < found.low < 0.69 < found.high < 0.75)  # the best accuracy possible is 0.69
        True
        """
        return Separation.of(self.problem, confidence_level)

    def changes(self, alpha: float = 0.05) -> dict[str, Any]:
        """Return the columns that differ by themselves, the largest change first, as a table.

        Parameters
        ----------
        alpha : float, default=0.05
            The chance to name any column falsely; 1 gives all columns.

        Returns
        -------
        dict
            Arrays "column", "share", "median_before", "median_after", "spread_before", "spread_after" and "pvalue", with
            one entry a column, for ``pandas.DataFrame`` and ``polars.DataFrame``. X is before and Y is after. A spread is the
            distance from the first quartile to the third. At least the share of the values would have to change to give the
            column the distribution it has in the other sample.

        Raises
        ------
        InputError
            If `alpha` is not above 0 and at most 1.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import two_sample_test
        >>> rng = np.random.default_rng(0)
        >>> before, after = rng.normal(size=(200, 3)), rng.normal(size=(200, 3)) + [0.0, 2.0, 0.8]
        >>> two_sample_test(before, after, random_state=0).changes()["column"]
        ['column 1', 'column 2']
        """
        if not 0.0 < alpha <= 1.0:
            raise InputError(f"alpha = {alpha!r}: expected a number above 0 and at most 1.")
        found = column_changes(self.problem) | {"pvalue": self.witness.pvalues}
        named = np.flatnonzero(self.witness.pvalues <= alpha)
        order = named[np.lexsort([self.witness.pvalues[named], -found["share"][named]])]
        return {"column": [self.names[j] for j in order]} | {key: values[order] for key, values in found.items()}

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        r"""Interval for the squared L2 distance :math:`\int (p - q)^2` of the two densities.

        It is that of :meth:`LSDD.squared_l2_interval`, fitted with 200 centres to at most 5,000 rows of each sample, drawn at
        random. It is for a distance that Gaussian sums of one length scale resolve, which is never above the one of the
        densities: the lower end errs on the safe side, and the upper end does not cover differences in finer detail. Where it
        holds 0 the interval does not tell the samples apart; the test is the sharper judge of that. Beyond five columns there
        is no such interval; :meth:`separation` answers in any number. Where most rows of a sample
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
            If the level is not between 0 and 1, a sample has fewer than three rows, all rows are equal, or more than
            five columns vary.
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
        keep = self.problem.varying
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
