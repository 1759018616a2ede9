"""Result of a two-sample test: the difference in words, and the columns and places in which the samples differ."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from isopleth.core.errors import InputError, meant, quoted, warn_user
from isopleth.core.p_values import LEVEL, normal_quantile, permutation_pvalue
from isopleth.core.progress import Progress
from isopleth.core.threads import ONE_BLAS_THREAD
from isopleth.difference.lsdd import LSDD
from isopleth.results.charts import Chart
from isopleth.results.keys import Fact, Key
from isopleth.results.result import Result, ShownTable, shown
from isopleth.tables.coded_cells import decode_cells, displayed_cells
from isopleth.tables.schema_changes import SchemaComparison
from isopleth.tasks.column_changes import as_read, in_order
from isopleth.tasks.two_sample.charts import charts
from isopleth.tasks.two_sample.dependence import SerialDependence
from isopleth.tasks.two_sample.facts import FACTS, ROW_KEYS
from isopleth.tasks.two_sample.findings import SUCH_ROWS, is_said_given_others
from isopleth.tasks.two_sample.problem import TwoSampleProblem
from isopleth.tasks.two_sample.sentences import sentences
from isopleth.tasks.two_sample.separation import Separation, column_changes, shares_that_differ
from isopleth.tasks.two_sample.shift_given import ShiftGiven
from isopleth.tasks.two_sample.shift_in_groups import ShiftsInGroups
from isopleth.tasks.two_sample.where import ChangedGroup, GroupsSought, changed_groups
from isopleth.tasks.two_sample.witness import Witness

_ROWS_OF_INTERVAL, _CENTERS_OF_INTERVAL = 5000, 200
_MOST_REPEATED = 0.5
# Columns of which the group that changed is looked for.
_MOST_WHERE = 5


class ConfidenceInterval(NamedTuple):
    """Confidence interval with lower and upper limits."""

    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult(Result):
    """Result of :func:`two_sample_test`.

    Parameters
    ----------
    statistic : float
        Largest of the eleven scores. Under permutations ten are standard normal, and that of products and cubes less by 0.2.
    pvalue : float
        Share of the label vectors, the observed one and the permuted ones, whose statistic is no smaller.
    sizes : tuple of two int
        Rows of X and Y.
    names : list of str
        Names of the columns.
    n_resamples : int
        Number of permutations.
    group : int
        Number of rows that were permuted as one; 0 for the groups of `groups`.
    length_scale : ndarray of shape (n_features,)
        Length scale of the kernel whose LSDD has the largest score, in the units of the columns; NaN for constant columns and
        categories.
    kernel_scores : dict of str to float
        The eleven scores by the names of the statistics; empty where all rows are equal.
    problem : TwoSampleProblem
        The prepared samples, from which the other answers are computed.
    best : int
        Position among the eight pairs of kernel and ridge of the one whose LSDD has the largest score.
    labels : tuple of two str, default=("X", "Y")
        Names of the samples in pictures and on pages.
    schema : SchemaComparison, optional
        How the columns changed between the tables that X and Y are the common columns of: the result of
        :func:`isopleth.tables.schema_changes.compare_schemas`, set by ``dataclasses.replace(result, schema=...)``. Sentences,
        pages and JSON begin with it.
    set_aside : dict of str to str
        Columns that were not compared, and why.
    lines : pair of ndarray, optional
        Line of each row in the file of its sample.
    tolerance : float, optional
        Share of the values of a column up to which a difference does not matter; see :meth:`against_tolerance`.
    limits : dict of str to list of pairs of float
        Stretches of columns in which values count as equal, since limits such as <0.5 hide them in some rows.
    drawn_limits : dict of str to int
        Limits of each column that hide more than half of it and are at most one of its cells in twenty, such as <50 of a diluted
        sample among numbers about 3: other numbers of the column inside the limit stand in their place.
    dependence : SerialDependence, optional
        How far rows that follow each other in time are alike, which makes p-values too small; None where this does not show.
    asked : ShiftGiven, ShiftsInGroups or GroupsSought, optional
        Answer of :meth:`shift`, :meth:`shifts` or :meth:`in_groups` that sentences, pages and JSON begin with, set by
        ``dataclasses.replace(result, asked=...)``.
    """

    statistic: float
    pvalue: float
    sizes: tuple[int, int]
    names: list[str]
    n_resamples: int
    group: int
    length_scale: np.ndarray
    kernel_scores: dict[str, float]
    problem: TwoSampleProblem = field(repr=False)
    best: int
    labels: tuple[str, str] = ("X", "Y")
    schema: SchemaComparison | None = None
    set_aside: dict[str, str] = field(default_factory=dict)
    lines: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    tolerance: float | None = None
    limits: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    drawn_limits: dict[str, int] = field(default_factory=dict)
    dependence: SerialDependence | None = None
    asked: ShiftGiven | ShiftsInGroups | GroupsSought | None = None

    kind = "two_samples"
    title = "Comparison of two tables"

    @classmethod
    def of(cls, problem: TwoSampleProblem, names: list[str], set_aside: dict[str, str]) -> Self:
        """Compute the scores of a problem, and the p-value from them."""
        n, m = map(len, problem.all_tables)
        sizes, permutations = (n, m), problem.permutations
        if not problem.varying.any():  # all rows are equal
            nowhere = np.full(len(names), np.nan)
            return cls(0.0, 1.0, sizes, names, permutations, 1, nowhere, {}, problem, 0, set_aside=set_aside)
        with ONE_BLAS_THREAD:
            scores = problem.scores
        statistics = scores.max(axis=0)
        best = int(np.argmax(scores[: len(problem.kernels), 0]))
        scale = np.full(len(problem.varying), np.nan)
        scale[problem.varying] = problem.column_units.scale * problem.kernels[best][0].functions.length_scale
        return cls(
            float(statistics[0]),
            permutation_pvalue(statistics),
            sizes,
            names,
            permutations,
            problem.units.group,
            problem.encoding.by_column(scale),
            dict(zip(problem.score_names, scores[:, 0].tolist(), strict=True)),
            problem,
            best,
            set_aside=set_aside,
        )

    def known_cells(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the known cells of a column in both samples: numbers, datetime64, or words as objects."""
        encoding = self.problem.encoding
        kind, place = encoding.kinds[column], encoding.cells[column].place
        both = [rows[:, place] for rows in self.problem.all_tables]
        both = [cells[~np.isnan(cells)] for cells in both]
        if kind.kind == "categorical":
            both = [np.array(decode_cells(kind, cells), dtype=object) for cells in both]
        elif kind.kind == "time":
            both = [decode_cells(kind, cells) for cells in both]
        return both[0], both[1]

    def _columns(self) -> dict[str, Any]:
        """Return a row for each column of the samples, the surest change first: see :meth:`changes`."""
        found = self.changes(significance_level=1.0)
        scores = dict(zip(self.names, self.witness.statistics, strict=True))
        return found | {"statistic": np.array([scores[name] for name in found["column"]])}

    facts: ClassVar[dict[str, Fact]] = FACTS
    row_keys: ClassVar[dict[str, Key]] = ROW_KEYS

    def _sentences(self) -> list[str]:
        return sentences(self)

    @cached_property
    def shared_rows(self) -> tuple[int, int]:
        """Number of rows of each sample that are also in the other one, in the columns that were compared."""
        one, two = self.problem.all_weights.T
        return int(one[two > 0].sum()), int(two[one > 0].sum())

    def telling_rows(self, most: int = 20) -> dict[str, Any]:
        """Return the rows of each sample at which it has most more rows than the other, with their values.

        Parameters
        ----------
        most : int, default=20
            Largest number of rows, half of them from each sample.

        Returns
        -------
        dict
            Lists with one entry a row, the most telling of each sample first, of large samples among the rows that the test
            uses: "sample", "line" or "row" (counted from 0),
            "difference" (the fitted density of the row's own sample less that of the other, times the volume of the kernel), and
            the values by the names of the columns.
        """
        x, y = self.witness.at_used_rows
        excess, sample = np.concatenate([x, -y]), np.repeat([0, 1], [len(x), len(y)])
        order = np.lexsort([-excess, sample])
        order = np.concatenate([order[(sample[order] == i) & (excess[order] > 0.0)][: most // 2] for i in (0, 1)])
        sample = sample[order]
        place = order - sample * len(x)
        if self.problem.every is not None:
            place = np.array([self.problem.every.used[i][j] for i, j in zip(sample, place, strict=True)], dtype=np.intp)
        lines = [each for each in self.lines if each is not None]
        in_lines = len(lines) == 2
        where = [lines[i][j] if in_lines else j for i, j in zip(sample, place, strict=True)]
        found: dict[str, Any] = {
            "sample": [self.labels[i] for i in sample],
            "line" if in_lines else "row": [int(j) for j in where],
            "difference": excess[order].tolist(),
        }
        cells = [self._cells(j, order) for j in range(len(self.names))]
        return found | {name: each for name, each in zip(self.names, cells, strict=True) if name not in found}

    def _cells(self, column: int, rows: np.ndarray) -> list[Any]:
        """Return the cells of a column at rows that the test uses, as they were given; None where one is missing."""
        encoding = self.problem.encoding
        kind, place = encoding.kinds[column], encoding.cells[column].place
        values = np.concatenate([table[:, place] for table in self.problem.tables])[rows]
        if kind.kind == "numeric":
            return [None if np.isnan(value) else value for value in values.tolist()]
        found: list[Any] = [None] * len(rows)
        for i in np.flatnonzero(~np.isnan(values)).tolist():
            found[i] = displayed_cells(kind, values[i : i + 1])[0]
        return found

    @cached_property
    def changed_groups(self) -> list[ChangedGroup]:
        """Groups of rows in which columns changed more than elsewhere, the clearest first; none where no difference is shown.

        Groups are rows with some words of another column, or up to or above a quantile of its numbers. They are sought for the
        columns that differ by themselves; if none does, for those given the others or in a relation; if none, for all. The chance
        to name any group although all changed alike is at most about .05.
        """
        if self.pvalue > LEVEL:
            return []
        moved = self.witness.columns(LEVEL)
        given = self.witness.given_others.p_values
        others = [self.names[j] for j in np.argsort(given, kind="stable") if given[j] <= LEVEL]
        others += [name for pair in self.witness.relations(LEVEL) for name in pair]
        named = (moved or list(dict.fromkeys(others)))[:_MOST_WHERE] or [self.names[j] for j in self.witness.order]
        columns, alone = ([self.names.index(name) for name in some] for some in (named, moved))
        found = changed_groups(self.problem, columns, self.names, alone)
        return [replace(group, pvalue=max(group.pvalue, self.pvalue)) for group in found]

    def against_tolerance(self) -> dict[str, str]:
        """Return whether the share of the values that differ is shown to be above or below the tolerance, by column.

        Returns
        -------
        dict of str to str
            For each column "more", "less" or "open". The chance that any of the first two is wrong is at most about .05, by
            intervals for the shares at that level over the number of columns; "more" needs a difference that is shown.

        Raises
        ------
        InputError
            If the test was given no tolerance.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import two_sample_test
        >>> rng = np.random.default_rng(0)
        >>> before, after = rng.normal(size=(9000, 2)), rng.normal(size=(9000, 2)) + [0.04, 1.0]
        >>> two_sample_test(before, after, tolerance=0.05, n_resamples=99, random_state=0).against_tolerance()
        {'column 0': 'less', 'column 1': 'more'}
        """
        if self.tolerance is None:
            raise InputError("the test was given no tolerance; pass {parameter}.", parameter="tolerance")
        shares = shares_that_differ(self.problem, normal_quantile(1.0 - LEVEL / len(self.names)))
        found = {}
        for name, share, p_value in zip(self.names, shares, self.witness.p_values, strict=True):
            above = share.low > self.tolerance and p_value <= LEVEL
            found[name] = "more" if above else "less" if share.high <= self.tolerance else "open"
        return found

    @cached_property
    def _separation(self) -> Separation | None:
        """Separation with an interval of 95 %; None for too few rows."""
        with suppress(InputError):
            return self.separation()
        return None

    def __repr__(self) -> str:
        return f"TwoSampleResult(statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g})"

    @cached_property
    def witness(self) -> Witness:
        """Columns and places in which the samples differ; computed at first use."""
        return Witness.of(self.problem, self.best, self.names, self.pvalue)

    def explain(self) -> None:
        """Compute what the sentences say, with one bar for all of it."""
        with Progress("what differs", 100, self.problem.budget.verbose) as tick:
            with tick.part(60):
                self.witness.at_used_rows  # noqa: B018 - computed at first use, and kept
            with tick.part(15):
                self._separation  # noqa: B018
            with tick.part(10):
                self.column_changes  # noqa: B018
            with tick.part(15):
                self.changed_groups  # noqa: B018

    @cached_property
    def column_changes(self) -> dict[str, Any]:
        """Change of each column over all rows, in the order of the columns."""
        return column_changes(self.problem)

    def separation(self, confidence_level: float = 0.95) -> Separation:
        """Return the accuracy with which rows of the two samples can be classified, and the share of one sample that differs.

        A classifier is fitted to nine tenths of the rows and judged on the rest, ten times; of each sample at most 5,000 rows,
        drawn at random, are used. Its accuracy, with equal weights of the samples, is 0.5 without a difference and 1 if the
        samples do not overlap. No classifier has an accuracy above (1 + t) / 2, where t is the total variation distance, the
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

    def shift(
        self, target: Any, given: Sequence[Any] | None = None, confidence_level: float = 0.95, *, word: Any = None
    ) -> ShiftGiven:
        r"""Return how far the mean of a column differs between the samples, among rows that are alike in other columns.

        With D = 1 in Y and Z the given columns, it is the slope of the target on D, each less its mean given Z:

        .. math:: \tau = \frac{\sum_i (D_i - e(Z_i)) (y_i - m(Z_i))}{\sum_i (D_i - e(Z_i))^2} .

        Both means are those of :class:`~isopleth.ConditionalDensity`, each row's by trees that do not know it. Rows without a
        counterpart in the other sample have no weight. Positive numbers whose spread grows with their level are compared in
        logarithms. At most 5,000 rows of each sample are used, drawn at random. Missing cells of given columns are values of
        their own, and rows without the target are left out. Rows of one of `groups` depend on each other.

        Parameters
        ----------
        target : str
            A column of numbers or times, or of words, of which the share of one word is compared.
        given : list of str, optional
            Columns in which rows are to be alike; by default all others.
        confidence_level : float, default=0.95
            Confidence of the intervals.
        word : optional
            The word of a target of words; of a target of two words the rarer one by default.

        Returns
        -------
        ShiftGiven
            With `shift`, `low`, `high` in units of the target, `ratio`, `ratio_low`, `ratio_high` as a share of its value in
            X, and `pvalue`. Its text is a sentence.

        Raises
        ------
        InputError
            For columns that are not compared, a target of three words or more if none is named, fewer than ten rows of a sample
            with a known target, and samples that have no rows alike in the given columns.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from isopleth import two_sample_test
        >>> rng = np.random.default_rng(0)
        >>> def stones(n, carat, factor):
        ...     weights = rng.gamma(9.0, carat / 9.0, n)
        ...     return pd.DataFrame({"carat": weights, "price": factor * 4000 * weights**1.7 * rng.lognormal(0, 0.1, n)})
        >>> found = two_sample_test(stones(300, 0.8, 1.0), stones(300, 0.9, 0.9), random_state=0).shift("price", ["carat"])
        >>> found.alone > 0.0, bool(-0.13 < found.ratio < -0.08)
        (True, True)
        """
        return ShiftGiven.of(self.problem, self.names, target, given, confidence_level, word)

    def shifts(
        self,
        target: Any,
        by: Any,
        given: Sequence[Any] | None = None,
        confidence_level: float = 0.95,
        *,
        word: Any = None,
    ) -> ShiftsInGroups:
        """Return how far the mean of a column differs between the samples in each group of rows, given other columns.

        It is the answer of :meth:`shift` for the rows of each group, whatever the p-value of the whole comparison is: a change
        in one group of many is a small one of all rows. Groups are the words of a column, its numbers if these are at most 20,
        and otherwise its numbers up to and above the median.

        Parameters
        ----------
        target : str
            A column of numbers or times, or of words, of which the share of one word is compared.
        by : str
            The column that says the groups.
        given : list of str, optional
            Columns in which rows are to be alike; by default all others, without `by` if it holds words.
        confidence_level : float, default=0.95
            Confidence with which all intervals hold together.
        word : optional
            The word of a target of words.

        Returns
        -------
        ShiftsInGroups
            With `shifts`, one for each group that has ten rows of each sample, the surest first. Their p-values are multiplied
            by the number of groups.

        Raises
        ------
        InputError
            As of :meth:`shift`, and if no group has enough rows.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from isopleth import two_sample_test
        >>> rng = np.random.default_rng(0)
        >>> def wages(n, of_members):
        ...     member = rng.choice(["no", "yes"], n, p=[0.8, 0.2])
        ...     wage = rng.normal(10.0, 1.0, n) * np.where(member == "yes", of_members, 1.0)
        ...     return pd.DataFrame({"member": member, "wage": wage})
        >>> found = two_sample_test(wages(300, 1.0), wages(300, 0.9), random_state=0).shifts("wage", by="member")
        >>> found.shifts[0].group, bool(-0.15 < found.shifts[0].ratio < -0.05), bool(found.shifts[1].pvalue > 0.05)
        ('member yes', True, True)
        """
        return ShiftsInGroups.of(self.problem, self.names, target, by, given, confidence_level, word)

    def in_groups(self, by: Any) -> GroupsSought:
        """Return in which groups of a column other columns changed more than elsewhere, however large the p-values are.

        Parameters
        ----------
        by : str
            The column whose words, or quantiles of numbers, are the groups.

        Returns
        -------
        GroupsSought
            With `found`, the clearest group of each column, the surest first. Their p-values allow for the number of groups and
            of columns that were looked at; that of the whole comparison has no part in them, so these are a second test.

        Raises
        ------
        InputError
            For a column that is not compared.
        """
        if str(by) not in self.names:
            offered = f"{meant([str(by)], self.names)}; expected one of {quoted(self.names)}"
            raise InputError(f"{{parameter}} names {str(by)!r}, which is not compared{offered}.", parameter="by")
        own = self.names.index(str(by))
        others = [j for j in range(len(self.names)) if j != own]
        return GroupsSought(str(by), tuple(changed_groups(self.problem, others, self.names, [], own, 1.0)))

    def changes(self, significance_level: float = 0.05) -> dict[str, Any]:
        """Return the columns that differ by themselves or given the other columns, the surest change first, as a table.

        Parameters
        ----------
        significance_level : float, default=0.05
            The chance to name any column falsely, by itself and given the others each; 1 gives all columns.

        Returns
        -------
        dict
            Arrays "column", "share", "share_low", "share_high", "median_before", "median_after", "spread_before",
            "spread_after", "pvalue", "pvalue_given_others", "shift_given_others", "given_others" and "others_without", with one
            entry a column, for ``pandas.DataFrame`` and ``polars.DataFrame``. X is before and Y is after. A spread is the
            distance from the first quartile to the third. The share is about the share of the values that would have to change
            to give the column the distribution that it has in the other sample: the largest difference of the distribution
            functions or, for words, the total variation distance, without what chance adds to it, which is too low where words
            are rare. "share_low" and "share_high" are the ends of an interval of at least about 95 % for it. "pvalue" is for the
            column by itself. "pvalue_given_others" is for the residuals of its regression on the other columns, in normal scores
            of ranks, and "shift_given_others" is how much their mean moved in units of their standard deviation, with
            "given_others" in words where the p-value is up to .05. The other columns are all but those in "others_without",
            which moved clearer: a column that moved moves the residuals of the others, too. Both p-values are adjusted for the
            number of columns, and none is below that of the test. Columns with equal p-values, of which there are many where
            permutations give no smaller one, are in the order of approximate ones.

            If the samples have words, times or missing cells, there are further entries: "level", the word whose share among
            known cells changed most, with "level_before" and "level_after"; "time_before" and "time_after", medians of times,
            whose spreads are in seconds; "missing_before" and "missing_after", shares of missing cells; and "description", the
            change in words.

        Raises
        ------
        InputError
            If `significance_level` is not above 0 and at most 1.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import two_sample_test
        >>> rng = np.random.default_rng(0)
        >>> before, after = rng.normal(size=(200, 3)), rng.normal(size=(200, 3)) + [0.0, 2.0, 0.8]
        >>> two_sample_test(before, after, random_state=0).changes()["column"]
        ['column 1', 'column 2']
        """
        if not 0.0 < significance_level <= 1.0:
            raise InputError(f"significance_level = {significance_level!r}: expected a number above 0 and at most 1.")
        given, alone = self.witness.given_others, self.witness.p_values
        found = self.column_changes | {"pvalue": alone, "pvalue_given_others": given.p_values}
        found |= {"shift_given_others": given.shifts, "given_others": given.texts}
        found["others_without"] = [", ".join(self.names[k] for k in left_out) for left_out in given.left_out]
        named = np.flatnonzero(np.minimum(alone, given.p_values) <= significance_level)
        order = named[np.lexsort([given.p_values[named], -found.pop("minus_log_p")[named], alone[named]])]
        return {"column": [self.names[j] for j in order]} | in_order(found, order)

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        r"""Return a confidence interval for the squared L2 distance :math:`\int (p - q)^2` of the two densities.

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
            If the level is not between 0 and 1, a sample has fewer than three rows, all rows are equal, more than five
            columns vary, or the samples have words, times or missing cells.
        """
        if not self.problem.is_of_numbers:
            raise InputError(
                "words, times and missing cells leave no density with a squared L2 distance in known units; use separation()."
            )
        weights = self.problem.samples.weights
        if (np.where(weights > 1.0, weights, 0.0).sum(axis=0) > _MOST_REPEATED * weights.sum(axis=0)).any():
            warn_user(
                "most rows of a sample repeat others: such samples have no densities, and the interval means nothing."
            )
        return ConfidenceInterval(*self._difference.squared_l2_interval(confidence_level))

    @cached_property
    def _difference(self) -> LSDD:
        """Density difference fitted by LSDD."""
        if min(self.sizes) < 3 or len(self.problem.samples.rows) < 2:
            raise InputError("a confidence interval needs three rows in each sample, and rows that differ.")
        rng = np.random.default_rng([self.problem.seed, 3])
        keep = self.problem.varying
        X, Y = (rows[rng.permutation(len(rows))[:_ROWS_OF_INTERVAL]][:, keep] for rows in self.problem.given)
        model = LSDD(
            centers=_CENTERS_OF_INTERVAL,
            **self.problem.budget.limits,
            random_state=self.problem.seed,
            verbose=self.problem.budget.verbose,
        )
        return model.fit(X, Y)

    def _tables(self) -> list[ShownTable]:
        about = "Each column by itself, the largest change first."
        columns = as_read(self._columns())
        both = zip(columns["pvalue"], columns["pvalue_given_others"], strict=True)
        beside = ["pvalue_given_others"] * any(given <= LEVEL < alone for alone, given in both)
        brief = ["pvalue", *beside, "share", "column", "change"]
        tables = [shown("Columns", columns, about, brief, self._legend())]
        if self.pvalue <= LEVEL:
            about = (
                "Rows where their sample has most more rows than the other one: ten of each, the most telling first."
            )
            tables.append(shown("Rows that tell the samples apart", self.telling_rows(), about))
        return tables

    def _charts(self) -> list[Chart]:
        return charts(self)

    def _legend(self) -> dict[str, str]:
        """Return what the columns mean of the table of columns."""
        return {
            "pvalue": "pvalue of a column: it alone, adjusted for the number of columns, so that the chance to name any column "
            f"falsely is at most {LEVEL:.0%}.",
            "pvalue_given_others": "pvalue_given_others: the column among rows that are alike in the others, adjusted likewise.",
            "share": "share: about this share of the values would have to change to give the column its distribution in the "
            "other table.",
            "share_low": "share_low and share_high: the ends of an interval of 95 % for the share.",
            "given_others": f"given_others: the column among rows that are alike in the other columns. {SUCH_ROWS}",
        }

    def _notes(self) -> list[str]:
        spread = any("spread" in words for words in as_read(self._columns())["change"])
        return [
            *[SUCH_ROWS] * (self.pvalue <= LEVEL and is_said_given_others(self)),
            f"before is {self.labels[0]}, after is {self.labels[1]}."
            + " spread: from the first quartile to the third." * spread,
            self._of_pvalue(),
        ]

    def _of_pvalue(self) -> str:
        """Return a sentence that says how far the p-value can be relied on."""
        what = "rows" if self.problem.groups is None else "groups"
        text = f"The p-value of the whole comparison is from {self.n_resamples} permutations of {what}"
        if self.dependence is None:
            return f"{text} and is exact for independent {what}."
        return f"{text} and is too small, since rows that follow each other in {self.dependence.time!r} are alike."
