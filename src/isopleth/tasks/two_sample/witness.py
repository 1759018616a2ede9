"""Witness of a two-sample test: the columns, relations and places in which the samples differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from isopleth.core.errors import probability
from isopleth.core.p_values import adjusted_p_values, permutation_pvalue
from isopleth.core.progress import Progress
from isopleth.core.threads import map_threads, slices
from isopleth.tasks.two_sample.given_others import GivenOthers
from isopleth.tasks.two_sample.permutation import tiles
from isopleth.tasks.two_sample.problem import TwoSampleProblem

# Rows beyond those of the test whose difference is computed at once: their words take a coordinate each.
_ROWS_AT_ONCE = 50_000


@dataclass(frozen=True, eq=False, repr=False)
class Witness:
    """Places and columns in which two samples differ; see :attr:`TwoSampleResult.witness`.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    statistics : ndarray of shape (n_features,)
        Largest score of each column alone; -inf for constant columns.
    p_values : ndarray of shape (n_features,)
        p-value of each column alone, adjusted for the number of columns.
    pairs : list of tuple of two str
        Pairs of columns whose products were compared.
    pair_p_values : ndarray of shape (n_pairs,)
        p-value of the product of each pair, adjusted for the number of pairs.
    given_others : GivenOthers
        `p_values`, `shifts` and `texts` of the columns given the other columns.
    problem : TwoSampleProblem
        The prepared samples.
    best : int
        Position of the kernel and ridge of the LSDD with the largest score.

    Attributes
    ----------
    x, y : ndarray of shape (n,) and (n',)
        Fitted density difference at the rows of X and of Y, times the volume of the kernel: positive where there is more of X.
        It is LSDD's with the kernel whose score is largest.

    Notes
    -----
    The p-values are step-down maxima over columns under the permutations of the joint test (Westfall and Young): the chance
    to name any column falsely at level a is at most a, whichever columns do differ, as long as the others together have one
    distribution in both samples. A difference of dependence alone shows in no column, but in pairs: their p-values are
    step-down maxima over pairs, so the chance to name any pair falsely, whose two columns together have one distribution in both
    samples, is at most a as well. No p-value is below that of the whole comparison, so that nothing is named where no difference
    is shown.
    """

    names: list[str]
    statistics: np.ndarray
    p_values: np.ndarray
    pairs: list[tuple[str, str]]
    pair_p_values: np.ndarray
    given_others: GivenOthers
    problem: TwoSampleProblem = field(repr=False)
    best: int

    @classmethod
    def of(cls, problem: TwoSampleProblem, best: int, names: list[str], least: float) -> Self:
        """Compute the witness from the problem; `best` is the kernel with the largest score, `least` the p-value of the test."""
        if not problem.varying.any():
            d = len(names)
            given, nowhere = GivenOthers.of(problem, 1.0), np.full(d, -np.inf)
            return cls(names, nowhere, np.ones(d), [], np.ones(0), given, problem, best)
        with Progress("columns and pairs", 10, problem.budget.verbose) as tick:
            with tick.part(6):
                scores = problem.column_scores()
            with tick.part(2):
                pairs, contrasts = problem.pair_contrasts()
            with tick.part(2):
                given = GivenOthers.of(problem, least)
        varying = np.flatnonzero(np.isfinite(scores[0]))
        p_values = np.maximum(adjusted_p_values(scores), least)
        if len(varying) == 1:  # its scores are those of the joint test
            p_values[varying] = permutation_pvalue(scores[:, varying[0]])
        pair_names = [(names[i], names[j]) for i, j in pairs]
        pair_p_values = np.maximum(adjusted_p_values(contrasts), least)
        return cls(names, scores[0], p_values, pair_names, pair_p_values, given, problem, best)

    @property
    def x(self) -> np.ndarray:
        """Fitted density difference at the rows of X."""
        return self._differences[0]

    @property
    def y(self) -> np.ndarray:
        """Fitted density difference at the rows of Y."""
        return self._differences[1]

    @cached_property
    def _coefficients(self) -> np.ndarray:
        """Coefficients of the functions of the LSDD with the largest score, fitted to the rows that the test uses."""
        problem, (basis, alpha) = self.problem, self.problem.kernels[self.best]
        rows, contrast = problem.rows, problem.samples.contrast[:, 0] - problem.samples.contrast[:, 1]
        parts = tiles(len(rows), 1, len(basis), problem.budget)

        found = map_threads(lambda part: contrast[part] @ basis.functions(rows[part]), parts, problem.budget.threads)
        return np.asarray(basis.vectors @ ((np.sum(found, axis=0) @ basis.vectors) / (basis.values + alpha)))

    def _at(self, rows: np.ndarray) -> np.ndarray:
        """Return the fitted difference at rows in units of the columns, times the volume, for city-block kernels too."""
        problem, (basis, _) = self.problem, self.problem.kernels[self.best]
        theta, parts = self._coefficients, tiles(len(rows), 1, len(basis), problem.budget)
        return np.concatenate(
            map_threads(lambda part: basis.functions(rows[part]) @ theta, parts, problem.budget.threads)
        )

    @cached_property
    def at_used_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Fitted density difference at the rows of both samples that the test uses."""
        problem = self.problem
        varies = problem.varying.any()
        found = self._at(problem.rows) if varies else np.zeros(len(problem.samples.rows))
        first, second = np.split(found[problem.samples.place], [problem.sizes[0]])
        return first, second

    @cached_property
    def _differences(self) -> tuple[np.ndarray, np.ndarray]:
        """Fitted density difference at all rows of both samples."""
        problem, tables = self.problem, self.problem.all_tables
        if problem.every is None:
            return self.at_used_rows
        first, second = (np.zeros(len(table)) for table in tables)
        if problem.varying.any():
            with Progress("difference at all rows", len(first) + len(second), problem.budget.verbose) as tick:
                for table, out in zip(tables, (first, second), strict=True):
                    for part in slices(len(table), _ROWS_AT_ONCE):
                        out[part] = self._at(problem.enter(problem.encoding(table[part])))
                        tick(part.stop - part.start)
        return first, second

    def columns(self, significance_level: float = 0.05) -> list[str]:
        """Return the names of the columns that differ by themselves, smallest p-values first.

        Parameters
        ----------
        significance_level : float, default=0.05
            The chance to name any column falsely.

        Returns
        -------
        list of str

        Raises
        ------
        InputError
            If `significance_level` is not between 0 and 1.
        """
        probability("significance_level", significance_level)
        return [self.names[j] for j in self.order if self.p_values[j] <= significance_level]

    def relations(self, significance_level: float = 0.05) -> list[tuple[str, str]]:
        """Return the pairs of columns whose relation differs, smallest p-values first.

        Pairs of which a column differs by itself are left out: their products differ for that reason too.

        Parameters
        ----------
        significance_level : float, default=0.05
            The chance to name any pair falsely.

        Returns
        -------
        list of tuple of two str

        Raises
        ------
        InputError
            If `significance_level` is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import two_sample_test
        >>> rng = np.random.default_rng(0)
        >>> before, after = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
        >>> after[:, 1] = 0.6 * after[:, 0] + 0.8 * after[:, 1]
        >>> two_sample_test(before, after, random_state=0).witness.relations()
        [('column 0', 'column 1')]
        """
        alone = set(self.columns(significance_level))
        order = np.argsort(self.pair_p_values, kind="stable")
        named = [self.pairs[k] for k in order if self.pair_p_values[k] <= significance_level]
        return [pair for pair in named if not alone.intersection(pair)]

    @property
    def order(self) -> np.ndarray:
        """Indices of the columns, smallest p-values first."""
        return np.lexsort([-self.statistics, self.p_values])

    def __repr__(self) -> str:
        return f"Witness(columns={self.columns()!r})"
