"""The function two_sample_test, and the columns and rows that it compares."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import (
    Hint,
    InputError,
    listed,
    probability,
    quoted,
    warn_about_answer,
    warn_user,
    whole_number,
)
from isopleth.core.p_values import LEVEL
from isopleth.core.parameters import check_memory_limit
from isopleth.core.progress import Progress, checked_verbose
from isopleth.core.threads import DEFAULT_N_JOBS, effective_n_jobs
from isopleth.difference.samples import enter_both
from isopleth.results.result import keeps_warnings
from isopleth.tables.checks import (
    TIMES_APART,
    CheckedRows,
    TakesKinds,
    in_quotes,
    known_stretches,
    numbered_groups,
    times_apart,
    used_names,
)
from isopleth.tables.given import Given
from isopleth.tables.kinds import is_identifier
from isopleth.tables.schema import Attached
from isopleth.tables.schema_changes import renaming, similar_names
from isopleth.tasks.two_sample.dependence import SerialDependence, dependence_in_time
from isopleth.tasks.two_sample.drawn_rows import MOST_ROWS, DrawnRows
from isopleth.tasks.two_sample.problem import TwoSampleProblem
from isopleth.tasks.two_sample.result import TwoSampleResult

# Numbers that differ by more than so many units in the last place may differ by more than rounding.
_ULPS = 64


class TwoSampleTest(TakesKinds, BaseEstimator):
    """Holder of the columns while rows are checked; its name occurs in messages of scikit-learn."""

    _use_of_limits = "merge"  # and the result says so

    def __init__(self, categorical: Any = None, keep_identifiers: bool = False, keep_times: bool = False) -> None:
        self.categorical, self.keep_identifiers, self.keep_times = categorical, keep_identifiers, keep_times


def _tables(columns: TwoSampleTest, X: Given, Y: Given) -> tuple[CheckedRows, CheckedRows]:
    """Return checked rows with the same names in any order, or without names; scikit-learn's own messages speak of fit."""
    x, y = X.names, Y.names
    if x is not None and y is not None and x != y:
        _check_same_columns(x, y)
        if len(x) == len(y):
            Y = Y.select(x)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X (has|does not have valid) feature names")
        return enter_both(columns, X, Y, missing=True, draws=True)


def _check_same_columns(x: list[Any], y: list[Any]) -> None:
    """Refuse samples of which one lacks a column of the other, and suggest which columns were renamed."""
    only_x, only_y = ([name for name in one if name not in other] for one, other in ((x, y), (y, x)))
    if not only_x and not only_y:
        return
    lacks = [f"{name} lacks {quoted(map(str, names))}" for name, names in (("Y", only_x), ("X", only_y)) if names]
    pairs = similar_names(only_x, only_y)
    guess = f"; {renaming(pairs)}" if pairs else ""
    how = "give the columns the same names, or leave out those that only one sample has"
    raise InputError(f"{' and '.join(lacks)}{guess}", column=(only_x + only_y)[0], hint=how)


def _without_identifiers(columns: TwoSampleTest, X: Given, Y: Given) -> tuple[Given, Given, dict[str, str]]:
    """Leave out columns of frames that are identifiers in both samples; return them with the reason, too."""
    frames = [None if Attached.of(each) else each.frame for each in (X, Y)]
    one, two = frames
    if one is None or two is None or columns.keep_identifiers:
        return X, Y, {}
    wanted = [columns.categorical] if isinstance(columns.categorical, str) else list(columns.categorical or ())
    found = [
        name
        for name in one.columns
        if name in two.columns
        and name not in wanted
        and all(is_identifier(name, each.get_column(name)) for each in (one, two))
    ]
    if not found or len(found) == len(one.columns):
        return X, Y, {}
    _warn_of_left_out(found, "identifier")
    X, Y = (each.select([n for n in each.names or () if n not in found]) for each in (X, Y))
    return X, Y, {str(name): "identifier" for name in found}


def _without_times_apart(x: CheckedRows, y: CheckedRows) -> tuple[CheckedRows, CheckedRows]:
    """Leave out columns of times that are all later in one of the samples: they only repeat which sample a row is from."""
    schema = x.columns
    if schema is None:
        return x, y
    apart = times_apart(schema, x.rows, y.rows, touching=True)
    if not apart or len(apart) == len(schema.columns):
        return x, y
    between = "to compare the time from one to the other, give a column with it" if len(apart) > 1 else None
    _warn_of_left_out(apart.values(), TIMES_APART, between)
    left = schema.without(apart.values(), TIMES_APART)
    x, y = (replace(each, rows=np.delete(each.rows, list(apart), axis=1), columns=left) for each in (x, y))
    return x, y


def _warn_of_left_out(names: Iterable[Any], why: str, hint: str | None = None) -> None:
    left_out = listed([f"{str(name)!r} ({why})" for name in names])
    warn_user(f"columns left out: {left_out}" if hint else f"columns left out: {left_out}.", hint=hint)


def _checked_groups(groups: Any, sizes: tuple[int, int]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the number of the group of each row of both samples."""
    if groups is None:
        return None
    try:
        first, second = groups
    except (TypeError, ValueError) as error:
        raise InputError(
            "groups: expected two arrays, with the group of each row of X and of Y.", parameter="groups"
        ) from error
    first, second = numbered_groups((first, second), sizes, ("X", "Y"))
    return first, second


def _check_assignments(problem: TwoSampleProblem) -> None:
    """Refuse groups that leave nothing to permute, and warn if no p-value of .05 can be reached."""
    ways, grouped = problem.units.assignments, problem.groups is not None
    if grouped and ways <= 2:
        raise InputError(
            f"groups: the {sum(problem.units.sizes)} groups of X and Y can be assigned to the samples in {ways:.0f} "
            f"way{'s' if ways > 1 else ''} only, so no p-value can be below {1.0 / ways:.2g}; give more groups, or none if "
            "rows are independent."
        )
    of_ways, of_draws = problem.units.least_pvalue, 1.0 / (1.0 + problem.permutations)
    if of_ways > LEVEL:
        kind = "groups" if grouped else "rows"
        message = (
            f"the {kind} can be assigned to the samples in {ways:.0f} ways only, so no p-value can be much below {of_ways:.2g} "
            f"and no difference can be shown at level {LEVEL}; more {kind} are needed."
        )
    elif of_draws > LEVEL:
        message = (
            f"n_resamples = {problem.permutations} allows no p-value below {of_draws:.2g}; at level {LEVEL} at least "
            f"{math.ceil(1.0 / LEVEL) - 1} are needed."
        )
    else:
        return
    warn_about_answer(message)


def _warn_of_dependence(found: SerialDependence | None, *, grouped: bool) -> None:
    """Warn that rows which follow each other in time are alike, so that permutations are too sure."""
    if found is None:
        return
    some, whose = "give {groups}, such as", "the day or the week of each row"
    warn_about_answer(
        f"rows that follow each other in {found.time!r} are alike, most in {found.column!r}: {found.rows:,} rows say as much "
        f"of its mean as about {found.effective:,} independent ones, so p-values are too small"
        + "; groups that last as long as the samples do not mend it"
        * grouped,
        hint=Hint(f"{some} {whose}" if not grouped else f"{some} stretches of time: {whose}", groups=...),
    )


def _warn_of_digits(problem: TwoSampleProblem) -> None:
    """Warn of columns whose values share so many digits that their differences are taken as rounding."""
    rows = np.vstack(problem.tables)
    found = []
    for cell, block in zip(problem.encoding.cells, problem.blocks, strict=True):
        known = rows[~np.isnan(rows[:, cell.place]), cell.place]
        if cell.kind == "categorical" or not len(known) or problem.varying[block.start]:
            continue
        if known.max() - known.min() > _ULPS * np.spacing(np.abs(known).max()):
            found.append(in_quotes(cell.name))
    if found:
        warn_about_answer(
            f"the values of {listed(found)} share their first eleven digits, and what is beyond these is taken as rounding; "
            "subtract a constant from them if the differences are meant."
        )


@keeps_warnings
def two_sample_test(
    X: Any,
    Y: Any,
    *,
    n_resamples: int = 999,
    centers: int = 150,
    categorical: Any = None,
    compare_missing: bool = True,
    groups: Any = None,
    tolerance: float | None = None,
    keep_identifiers: bool = False,
    keep_times: bool = False,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
    random_state: Any = None,
    verbose: bool | int = False,
) -> TwoSampleResult:
    r"""Test whether two samples are from one distribution, against any difference of densities.

    Eleven statistics are compared under permuted labels. Eight are LSDD's dual estimate of the squared L2 distance,
    :math:`h^\top M h` with h the difference of the samples' means of functions around centres [1]_: Gaussians of six length
    scales, one of them with two ridges, and products of Laplace functions. The ninth is the largest difference of mean and
    spread of a single column, the tenth that of the residuals of a column given the others (of a single column: the largest
    difference of the distribution functions), and the eleventh that of products of two columns, and cubes of one, in normal
    scores of ranks: at most 500 products, those with the largest correlations in both samples together. Each is replaced by the
    normal score of its rank among all label vectors, and the largest score counts. Centres, length scales and units of the
    columns come from the rows of both samples together, so the p-value is exact: if the samples are from one distribution,
    P(pvalue <= a) <= a for every a, for any sizes, dimension and ties, and P(pvalue <= a) = a up to ties where
    a (1 + n_resamples) is whole.

    Parameters
    ----------
    X, Y : array-like or data frame of shape (n, n_features) and (n', n_features)
        Rows of the two samples, independent of each other; at least one each. Columns are matched by name where both have
        names, and by position otherwise. Frames may hold words, truth values, times and missing cells; arrays hold numbers and
        NaN, except in columns that `categorical` names.
    n_resamples : int, default=999
        Random permutations of the labels. The smallest p-value is 1 / (1 + n_resamples).
    centers : int, default=150
        Largest number of centres, distinct rows drawn from both samples together; in few columns twice as many for the two
        smallest length scales.
    categorical : None, name, or sequence of names or numbers of columns, optional
        Columns of numbers that are categories.
    compare_missing : bool, default=True
        Whether a different share of missing cells counts as a difference. If not, rows are permuted among rows that lack the same
        cells. Where such rows are too few, cells are blanked until they do; this assumes that gaps do not depend on the values.
    groups : pair of array-like of shape (n,) and (n',), optional
        Group of each row of X and of Y, such as a patient or a day, if the rows of a group depend on each other. Groups are
        permuted as a whole, among groups of as many rows: of longer ones some rows are drawn. The two parts of a group that
        occurs in X and in Y can only take each other's place.
    tolerance : float, optional
        Share of the values of a column up to which a difference does not matter, such as .05. In large samples every column
        differs; :meth:`TwoSampleResult.against_tolerance` and the sentences then say which are shown to differ by more.
    keep_identifiers : bool, default=False
        Whether columns of frames that identify rows in both samples, such as numbers of orders, are compared.
    keep_times : bool, default=False
        Whether columns of times are compared although one sample has only later times than the other.
    memory_limit : float, default=2**30
        Bytes that matrices and scratch may take together, beside the rows themselves.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    random_state : int, RandomState or None
        Seed of the permutations, the centres and the groups.
    verbose : bool or int, default=False
        Whether to show the progress of the test, and of what is computed from its result, on standard error.

    Returns
    -------
    TwoSampleResult
        With `statistic`, `pvalue`, `witness`, `separation()`, `changes()`, `confidence_interval()` and `plot()`.

    Raises
    ------
    InputError
        For rows that cannot be used, samples with different columns, and parameters out of range.

    Warns
    -----
    DataWarning
        If rows, groups or permutations are so few that no p-value can be .05 or less; if rows that follow each other in a column
        of times are alike and no `groups` are given.

    Notes
    -----
    From 8,000 rows in both samples together, groups of equal size within each sample, drawn at random, are permuted and not
    single rows: about 4,000 groups, more where the smaller sample would have fewer than 200 otherwise. Groups are as exchangeable
    as rows, so the p-value stays exact. Fewer than one row in 200 is left out because it fills no group. Of a larger sample at
    most 20,000 rows, or a hundred times as many as the other one has, are used, drawn at random: more do not add one percent.

    From 200,000 rows in both samples together, the statistics, `witness` and `separation` are computed from so many, drawn
    without replacement by what the rows hold: 100,000 of each, or all of a smaller sample and more of the other; of `groups`, at
    most as many rows of each group as make 200,000. The p-value stays exact. Medians, spreads and shares of columns are those
    of all rows, and the sentences say what the test uses.

    Samples may be tensors or arrays of another library. The test is computed in NumPy, and its result has NumPy arrays.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu, I. Takeuchi, "Density-difference estimation", NIPS
       2012.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.normal(size=(200, 3)), rng.normal(size=(150, 3))
    >>> after[:, 1] *= 2.0
    >>> result = two_sample_test(before, after, random_state=0)
    >>> result.pvalue
    0.001
    >>> result.witness.columns()
    ['column 1']
    """
    columns = TwoSampleTest(categorical, keep_identifiers, keep_times)
    permutations, most = whole_number("n_resamples", n_resamples), whole_number("centers", centers)
    check_memory_limit(memory_limit)
    tolerance = None if tolerance is None else probability("tolerance", tolerance)
    effective_n_jobs(n_jobs)
    if groups is not None and not compare_missing:
        raise InputError(
            "groups and compare_missing=False exclude each other: the rows of a group may lack different cells."
        )
    budget = Budget(memory_limit, n_jobs, checked_verbose(verbose))
    given = Given.of(X), Given.of(Y, "Y")
    X, Y, aside = _without_identifiers(columns, *given)
    with Progress("test", 100, budget.verbose) as tick:
        with tick.part(10):
            x, y = _tables(columns, X, Y)
        hidden, limits_drawn = _hidden_values(columns, x)
        groups = _checked_groups(groups, (len(x.rows), len(y.rows)))
        dependence = dependence_in_time(x, y, groups)
        _warn_of_dependence(dependence, grouped=groups is not None)
        if not columns.keep_times:
            x, y = _without_times_apart(x, y)
        read = Attached.of(X)
        for schema in ([] if read is None else [read.schema]) + ([] if x.columns is None else [x.columns]):
            aside |= {str(name): why for name, why in schema.left_out.items() if why != "excluded"}
        names = used_names(columns, x.columns)
        with tick.part(20):
            problem = _problem(x, y, names, groups, compare_missing, (permutations, most), random_state, budget)
        _check_assignments(problem)
        _warn_of_digits(problem)
        with tick.part(70):
            found = TwoSampleResult.of(problem, names, aside)
    found = replace(found, tolerance=tolerance, limits=hidden, drawn_limits=limits_drawn, dependence=dependence)
    return found.like(X.table, Y.table)


def _problem(
    x: CheckedRows,
    y: CheckedRows,
    names: list[str],
    groups: tuple[np.ndarray, np.ndarray] | None,
    compared: bool,
    counts: tuple[int, int],
    random_state: Any,
    budget: Budget,
) -> TwoSampleProblem:
    """Prepare the rows that the test uses; `counts` are the numbers of permutations and of centres."""
    seed = int(check_random_state(random_state).randint(2**31))
    drawn = DrawnRows.of(x, y, groups, seed, MOST_ROWS)
    options: dict[str, Any] = {"permutations": counts[0], "centers": counts[1], "seed": seed, "budget": budget}
    options |= {"groups": drawn.groups, "every": drawn.every}
    return TwoSampleProblem.of(drawn.x, drawn.y, names, compared=compared, **options)


def _hidden_values(
    columns: TwoSampleTest, x: CheckedRows
) -> tuple[dict[str, list[tuple[float, float]]], dict[str, int]]:
    """Return the stretches of columns whose values count as equal, since limits hide them, and the limits that got numbers."""
    stretches, drawn = known_stretches(columns), columns.drawn_limits_
    names = [used_names(columns, x.columns)[place] for place in x.order]
    hidden = {
        names[j]: list(zip(found.lower.tolist(), found.upper.tolist(), strict=True)) for j, found in stretches.items()
    }
    return hidden, {names[j]: count for j, count in drawn.items()}
