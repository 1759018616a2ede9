"""Places and columns in which two samples differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from isopleth.errors import InputError
from isopleth.operators.threads import map_threads
from isopleth.tasks.two_sample.permutation import adjusted_p_values
from isopleth.tasks.two_sample.problem import TwoSampleProblem
from isopleth.tasks.two_sample.statistics import Basis, tiles


@dataclass(frozen=True, eq=False, repr=False)
class Witness:
    """Places and columns in which two samples differ; see :attr:`TwoSampleResult.witness`.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    statistics : ndarray of shape (n_features,)
        Largest score of each column alone; -inf for constant columns.
    pvalues : ndarray of shape (n_features,)
        p-value of each column alone, adjusted for the number of columns.
    x, y : ndarray of shape (n,) and (n',)
        Fitted density difference at the rows of X and of Y, times the volume of the kernel: positive where there is more of X.
        It is LSDD's with the kernel whose score is largest.

    Notes
    -----
    The p-values are step-down maxima over columns under the permutations of the joint test (Westfall and Young): the chance
    to name any column falsely at level a is at most a, whichever columns do differ, as long as the others together have one
    distribution in both samples. A difference of dependence alone shows in no column.
    """

    names: list[str]
    statistics: np.ndarray
    pvalues: np.ndarray
    x: np.ndarray
    y: np.ndarray

    @classmethod
    def of(cls, problem: TwoSampleProblem, best: int, names: list[str]) -> Self:
        """Compute it from the problem, `best` being the position of the kernel with the largest score."""
        n = problem.sizes[0]
        if len(problem.samples.rows) == 1:
            d = len(names)
            return cls(names, np.full(d, -np.inf), np.ones(d), np.zeros(n), np.zeros(problem.sizes[1]))
        scores = problem.column_scores()
        values = _differences(problem, *problem.kernels[best])[problem.samples.place]
        return cls(names, scores[0], adjusted_p_values(scores), values[:n], values[n:])

    def columns(self, alpha: float = 0.05) -> list[str]:
        """Names of the columns that differ by themselves, the clearest first.

        Parameters
        ----------
        alpha : float, default=0.05
            The chance to name any column falsely.

        Returns
        -------
        list of str

        Raises
        ------
        InputError
            If `alpha` is not between 0 and 1.
        """
        if not 0.0 < alpha < 1.0:
            raise InputError(f"alpha = {alpha!r}: expected a number between 0 and 1.")
        return [self.names[j] for j in self.order if self.pvalues[j] <= alpha]

    @property
    def order(self) -> np.ndarray:
        """Positions of the columns, the clearest first."""
        return np.lexsort([-self.statistics, self.pvalues])

    def table(self) -> dict[str, Any]:
        """One line a column, the clearest first: what ``pandas.DataFrame`` and ``polars.DataFrame`` take.

        Returns
        -------
        dict
            Of "column", "statistic" and "pvalue".
        """
        order = self.order
        return {
            "column": [self.names[j] for j in order],
            "statistic": self.statistics[order],
            "pvalue": self.pvalues[order],
        }

    def __repr__(self) -> str:
        return f"Witness(columns={self.columns()!r})"


def _differences(problem: TwoSampleProblem, basis: Basis, alpha: float) -> np.ndarray:
    """The fitted difference at every distinct row, over all rows of the samples, times the volume."""
    rows, contrast = problem.rows, problem.samples.contrast[:, 0] - problem.samples.contrast[:, 1]
    parts = list(tiles(len(rows), 1, len(basis.centers), problem.memory_limit, problem.workers))

    def kernel(part: slice) -> np.ndarray:
        return basis.kernel(cdist(rows[part], basis.centers, basis.metric))

    h = np.sum(map_threads(lambda part: contrast[part] @ kernel(part), parts, problem.workers), axis=0)
    theta = basis.vectors @ ((h @ basis.vectors) / (basis.values + alpha))
    return np.concatenate(map_threads(lambda part: kernel(part) @ theta, parts, problem.workers))
