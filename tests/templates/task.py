"""Template of a task. Copy this file to a package of its own in src/isopleth/tasks/ and replace what is marked `todo`.

It is a complete task, rows of low density, so that each part shows code that runs: an estimator with fitted attributes, and a
frozen result that says what it holds, from which text, JSON, page and picture are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from isopleth import InputError
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT
from isopleth.density import KDE
from isopleth.operators import DEFAULT_N_JOBS
from isopleth.results import Chart, Result, Series
from isopleth.results.keys import NUMBER, Fact, Key
from isopleth.results.text import counted
from isopleth.tables.checks import enter


@dataclass(frozen=True, eq=False)
class LowDensityRows(Result):
    """todo: result of the task.

    Parameters
    ----------
    rows : ndarray of shape (k,)
        todo: numbers of the rows, counted from 0, lowest density first.
    log_density : ndarray of shape (k,)
        todo: their log densities, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> LowDensityRows(np.array([3]), np.array([-2.5])).to_dict()["table"]
    [{'row': 3, 'log_density': -2.5}]
    """

    rows: np.ndarray
    log_density: np.ndarray

    kind = "low_density"  # todo: name of the result in JSON
    title = "Rows of low density"  # todo: heading of the page
    # todo: what is known beside the table, with its type in JSON, its meaning and its value
    facts: ClassVar[dict[str, Fact]] = {"rows": Fact("integer", "rows that are listed", lambda found: len(found.rows))}
    # todo: columns of the table, with their types and meanings
    row_keys: ClassVar[dict[str, Key]] = {
        "row": Key("integer", "number of the row, counted from 0"),
        "log_density": Key(NUMBER, "log density in nats"),
    }

    def _columns(self) -> dict[str, Any]:
        """todo: return the columns of ``table()``."""
        return {"row": self.rows, "log_density": self.log_density}

    def _sentences(self) -> list[str]:
        """todo: return the finding in plain words."""
        return [f"{counted(len(self.rows), 'row')} of low density; the lowest one is row {self.rows[0]}."]

    def _charts(self) -> list[Chart]:
        """todo: return the pictures as data; pages and ``plot(ax=)`` draw them."""
        rank = np.arange(1, len(self.rows) + 1)
        dots = Series(
            "", rank, self.log_density, "dots", "vermillion", [f"row {row}" for row in self.rows], strong=True
        )
        return [Chart(self._sentences()[0], "rank", "log density", [dots])]

    def _notes(self) -> list[str]:
        """todo: return what the numbers mean."""
        return ["log_density: in nats; lower is less likely."]


class TaskTemplate(BaseEstimator):
    r"""todo: what the task does, in one line.

    todo: the method and its equation, :math:`p(x) = \sum_i w_i k(x, x_i)`, and which guarantee it has. A guarantee is simulated
    in the tests.

    Parameters
    ----------
    share : float, default=0.1
        todo: share of the rows to list, above 0 and at most 1.
    memory_limit : float, default=2**30
        Bytes for scratch arrays.
    n_jobs : int or None, default=-1
        Threads; -1 is all processors, None is one or what joblib.parallel_config says.

    Attributes
    ----------
    density_ : KDE
        todo: the density of the rows of fit.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0]])
    >>> TaskTemplate(share=0.25).fit(X).lowest(X).rows
    array([3])
    """

    # todo: scikit-learn checks parameters by these before a fit.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "share": [Interval(Real, 0.0, 1.0, closed="right")],
        "memory_limit": [Interval(Real, 0.0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self, share: float = 0.1, memory_limit: float = DEFAULT_MEMORY_LIMIT, n_jobs: int | None = DEFAULT_N_JOBS
    ) -> None:
        self.share = share
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: object = None, sample_weight: Any = None) -> Self:
        """todo: fit the density.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; computed in float64.
        y : object
            Ignored; for the interface of scikit-learn.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a weight of 2 is the same as two equal rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If rows, weights or parameters cannot be used; the sentence says which, and what to do.
        """
        self._validate_params()
        table = enter(self, X, sample_weight, reset=True, min_samples=2)
        self.density_ = KDE(memory_limit=self.memory_limit, n_jobs=self.n_jobs, frame="scale").fit(
            table.rows, sample_weight=table.weights
        )
        return table.finish(self)

    def score_samples(self, X: Any) -> Any:
        """todo: return the log density of rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Of the array library and on the device of `X`.
        """
        check_is_fitted(self)
        table = enter(self, X)
        return table.answer(self.density_.score_samples(table.rows))

    def lowest(self, X: Any) -> LowDensityRows:
        """todo: return the rows of lowest density.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        LowDensityRows
            At least one row.

        Raises
        ------
        InputError
            If a row of `X` has no density.
        """
        check_is_fitted(self)
        rows = enter(self, X).rows
        log_density = self.density_.score_samples(rows)
        if np.isnan(log_density).any():  # todo: one sentence that names the row and says what to do
            raise InputError(f"X has no density in row {int(np.argmax(np.isnan(log_density)))}; drop that row.")
        order = np.argsort(log_density, kind="stable")[: max(1, round(self.share * len(rows)))]
        return LowDensityRows(order, log_density[order]).like(X)
