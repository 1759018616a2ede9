"""Checks of the rows and weights that public methods receive. The result is a :class:`CheckedRows`.

Input that cannot be used raises an error whose message names the column, row or parameter. Doubtful input gives a warning.
Arrays of numbers need neither the cells nor the kinds of a table: what reads these is imported where a frame is entered.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from isopleth.core.arrays import Backend, to_backend
from isopleth.core.errors import Hint, InputError, listed, quoted, warn_about_answer, warn_user
from isopleth.core.interval_cells import Coarsening, IntervalCells, coarsened, coarsened_as, hides_most
from isopleth.core.parameters import check_weights, column_labels, on_host
from isopleth.core.rows import ALL_INTEGERS
from isopleth.tables.given import Given

if TYPE_CHECKING:
    from isopleth.tables.cells import SourceTable
    from isopleth.tables.schema import Attached, Schema

_Estimator = TypeVar("_Estimator", bound=BaseEstimator)
# Why a column of times is left out.
TIMES_APART = "nearly all times of one table are later than those of the other"


@dataclass(frozen=True)
class CheckedRows:
    """Checked rows and weights, with the array library and device that they came from."""

    rows: np.ndarray  # (n, d): checked rows in float64; NaN where a cell is missing, for estimators that take gaps
    weights: np.ndarray  # (n,): their weights, ones where none were given
    backend: Backend
    # Kinds of the columns of a table with words, times or gaps. Its rows are those of numeric columns and times, then codes of
    # categories. None if the rows are the table itself.
    columns: Schema | None = None
    # Intervals of cells that are NaN in the rows though something is known of them, as of those below a limit.
    limits: IntervalCells = field(default_factory=lambda: IntervalCells.none(0))

    def __post_init__(self) -> None:
        if len(self.limits.upper) != len(self.rows) and not len(self.limits):
            object.__setattr__(self, "limits", IntervalCells.none(len(self.rows)))

    @property
    def n_numeric(self) -> int:
        """Number of numeric columns of the rows; they come first."""
        return self.rows.shape[1] if self.columns is None else len(self.columns.numeric_names)

    @property
    def codes(self) -> np.ndarray:
        """Codes of the categorical columns, NaN where a cell is missing."""
        return self.rows[:, self.n_numeric :]

    @property
    def order(self) -> np.ndarray:
        """Place in the table of each column of the rows."""
        return np.arange(self.rows.shape[1]) if self.columns is None else self.columns.order

    @property
    def missing(self) -> np.ndarray:
        """Mask of the missing cells of the rows."""
        return np.isnan(self.rows)

    def take(self, rows: Any) -> CheckedRows:
        """Return some rows, by their numbers or a slice."""
        return replace(self, rows=self.rows[rows], weights=self.weights[rows], limits=self.limits.take(rows))

    def answer(self, values: Any) -> Any:
        """Return `values`, a NumPy array, as an array of the library and on the device of the rows."""
        return self.backend.array(values)

    def finish(self, estimator: _Estimator) -> _Estimator:
        """End a fit: move the fitted arrays of `estimator` to the library and device of the rows, and return it."""
        to_backend(estimator, self.backend)
        return estimator


class TakesKinds:
    """Mixin of estimators whose rows may have words, times and missing cells; it stands before `BaseEstimator`."""

    # How cells that say a limit are used: their "likelihood" is that of the interval, or rows are compared and values "merge"
    # that limits hide ("merge most": but for the few that would hide most of a column). None takes them as missing, and says so.
    _use_of_limits: str | None = None
    _uses_constants = False  # whether columns that hold one word at fit are used, since later rows may have another

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags


def enter(
    estimator: BaseEstimator,
    X: Any,
    sample_weight: Any = None,
    *,
    reset: bool = False,
    min_samples: int = 1,
    name: str | None = None,
    weight_name: str | None = None,
    adding: bool = False,
    missing: bool = False,
    also: Any = None,
    kinds_from: Callable[[int], np.ndarray] | None = None,
    merge: bool = True,
) -> CheckedRows:
    """Check the rows and weights that a public method receives, and convert them to float64 NumPy arrays.

    `reset`, at the beginning of a fit, stores names and number of the columns. With `adding`, all weights may be 0; with
    `missing`, NaN is a missing cell. The rows `also` count when kinds of columns are decided, by the rows whose positions
    `kinds_from` returns. Without `merge`, values that limits hide are left to the caller. Errors are InputError, or ValueError
    and TypeError where scikit-learn's checks ask for these.
    """
    given = Given.of(X, name or "X")
    columns, read, source = getattr(estimator, "schema_", None), None, None
    if given.frame is not None:
        from isopleth.tables.schema import Attached

        read = Attached.of(given)
    taken = reset and _takes_kinds(estimator)
    times = taken or columns is not None
    if times or read is None:
        given.refuse_kinds(times=times)
    if taken:
        columns, source = _kinds_of(estimator, given, read, also, kinds_from)
        estimator.__dict__.pop("schema_", None)
        if columns is not None:
            estimator.schema_ = columns
    if columns is not None:
        how: dict[str, Any] = {"typed": read is not None, "warn": kinds_from is None, "source": source}
        rows, limits = encoded_rows(given, columns, min_samples, **how)
    else:
        used, limits = None, IntervalCells.none(0)
        if read is not None:
            given, used, limits = _numbers_of_file(estimator, given, read, reset=reset)
        if read is not None or (taken and given.frame is None):  # only the columns that are used; an array has no kinds
            given.refuse_kinds(times=False)
        merged = getattr(estimator, "_use_of_limits", None) in ("merge", "merge most")
        gaps = missing or (merged and bool(len(limits)))  # which merging fills
        rows = check_rows(estimator, given, reset=reset, min_samples=min_samples, missing=gaps, labels=used)
    if merge and (len(limits) or getattr(estimator, "_stretches", None)):
        rows, limits = _use_limits(estimator, rows, limits, reset=reset)
    weights = check_weights(sample_weight, len(rows), added=adding, name=weight_name or "sample_weight")
    table = CheckedRows(rows, weights, given.backend, columns, limits)
    if reset:
        _refuse_huge(estimator, table)
    return table


def _numbers_of_file(
    estimator: BaseEstimator, given: Given, read: Attached, *, reset: bool
) -> tuple[Given, list[str], IntervalCells]:
    """Return the columns that are used of a table of numbers that has been read from a file, their names and intervals."""
    from isopleth.tables.schema import interval_cells

    fitted = None if reset else getattr(estimator, "feature_names_in_", None)
    used = [str(name) for name in (read.schema.names if fitted is None else fitted)]
    if set(used) <= set(given.names or ()):
        given = replace(Given.of(read.numbers(given.table, used), given.parameter), backend=given.backend)
    return given, used, interval_cells(read.odd, used, len(given.table))


# Distances of numbers that differ by more than this overflow.
_HUGE = 1e303


def _refuse_huge(estimator: BaseEstimator, table: CheckedRows) -> None:
    """Refuse columns most of whose values are so far from each other that no distance is finite; single values may be."""
    numbers = table.rows[:, : table.n_numeric]
    for j in np.flatnonzero(_largest(numbers) > _HUGE).tolist():
        known = numbers[~np.isnan(numbers[:, j]), j]
        low, high = np.quantile(known, (0.1, 0.9), method="nearest")
        if high / 2.0 - low / 2.0 > _HUGE / 2.0:
            name = used_names(estimator, table.columns)[table.order[j]]
            raise InputError(
                f"{in_quotes(name)} is of a size that leaves no length scale; rescale it to numbers nearer to 1."
            )


def _largest(rows: np.ndarray) -> np.ndarray:
    """Return the largest magnitude of each column, 0 where no cell is known."""
    return np.fmax(np.fmax.reduce(rows, initial=0.0), -np.fmin.reduce(rows, initial=0.0))


def _takes_kinds(estimator: BaseEstimator) -> bool:
    """Return whether the tags of an estimator say that it takes words and gaps."""
    tags = get_tags(estimator).input_tags
    return bool(tags.allow_nan and tags.categorical)


def _kinds_of(
    estimator: BaseEstimator,
    given: Given,
    read: Attached | None,
    also: Any = None,
    kinds_from: Callable[[int], np.ndarray] | None = None,
) -> tuple[Schema | None, SourceTable | None]:
    """Return the kinds of the columns of a fit, None for arrays and frames of complete numbers, and what was read for them."""
    categorical = getattr(estimator, "categorical", None)
    named = [] if categorical is None else [categorical] if isinstance(categorical, str) else list(categorical)
    other = None if also is None else Given.of(also)
    if kinds_from is not None:
        given, other = given.rows(kinds_from), None
    tables = [given] if other is None else [given, other]
    if not named and not any(table.has_kinds for table in tables):
        if read is None:
            _warn_of_identifiers(given)
        return None, None
    names = given.names
    if names is not None:  # a frame may be asked for by number too, unless that is a name
        named = [
            names[j] if j not in names and isinstance(j, Integral) and j in range(len(names)) else j for j in named
        ]
    from isopleth.tables.schema import Attached, ColumnChoices, Schema, source_of

    sources = [source_of(table, typed=read is not None) for table in tables]
    if read is None:
        # A frame of numbers is taken as it is; identifiers are looked for where there are words or times too.
        as_it_is = all(table.only_numbers for table in tables)
        keep = as_it_is or getattr(estimator, "keep_identifiers", False)
        choices = ColumnChoices(categorical=tuple(named), keep_identifiers=keep)
        columns = Schema.of(*sources, choices=choices)
    else:
        columns = read.of_tables(
            sources, None if other is None else Attached.of(other), named, again=kinds_from is not None
        )
    if getattr(estimator, "_uses_constants", False):
        columns = columns.with_constants()
    if read is None:
        _warn_of_guesses(columns)
    elif columns.only_numbers and not any(map(columns.lacks_cells, sources)):
        return None, None
    estimator._column_labels = column_labels(names, columns.n_columns)
    estimator.n_features_in_ = columns.n_columns
    estimator.__dict__.pop("feature_names_in_", None)
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    return columns, sources[0] if kinds_from is None else None


def _warn_of_guesses(columns: Schema) -> None:
    """Warn of columns of a frame or array that are left out, and of what is doubtful."""
    if columns.left_out:
        reasons = listed([f"{str(name)!r} ({why})" for name, why in columns.left_out.items()])
        warn_user(f"columns left out: {reasons}.")
    for note in columns.notes:
        warn_user(note)


def _warn_of_identifiers(given: Given) -> None:
    """Warn of a column that `read_table` would leave out, since a frame of numbers is taken as it is."""
    frame = given.frame
    if frame is None:
        return
    from isopleth.tables.kinds import is_days, is_identifier

    found = [name for name in frame.columns if is_identifier(name, frame.get_column(name))]
    if found:
        names = listed([repr(str(name)) for name in found])
        warn_user(
            f"{names} may identify rows, and is taken as a number like the others: drop the column if it does; "
            "isopleth.read_table leaves it out."
        )
    days = [name for name in frame.columns if is_days(frame.get_column(name))]
    if days:
        names = listed([repr(str(name)) for name in days])
        warn_user(
            f"{names} looks like days written as whole numbers, and is taken as a number: convert it to dates if it is."
        )


def _use_limits(
    estimator: BaseEstimator, rows: np.ndarray, limits: IntervalCells, *, reset: bool
) -> tuple[np.ndarray, IntervalCells]:
    """Return rows with limits as their estimator uses them: as intervals, or with the values equal that they hide."""
    use = getattr(estimator, "_use_of_limits", None)
    if use == "likelihood":
        return rows, limits
    if use is None:
        if len(limits):
            columns = listed([_name_at(estimator, j) for j in limits.columns.tolist()])
            cells = f"{len(limits):,} cell{'s' * (len(limits) > 1)}"
            warn_user(
                f"{cells} of {columns} say a limit, such as <0.5, of which this makes no use: they count as missing."
            )
    elif reset:
        if use == "merge most":
            limits = limits.without_cells(hides_most(rows, limits))
        rows, found = coarsened(rows, limits)
        keep_stretches(estimator, found)
        warn_of_stretches(estimator, found)
    else:
        rows, lost = coarsened_as(rows, limits, known_stretches(estimator))
        if lost.any() and use != "merge most":
            _refuse_limit(estimator, limits, lost)
    return rows, IntervalCells.none(len(rows))


def _name_at(estimator: BaseEstimator, j: int) -> str:
    """Return how messages name an encoded column."""
    schema = getattr(estimator, "schema_", None)
    return column_names(estimator)[j] if schema is None else repr(schema.numeric_names[j])


def _refuse_limit(estimator: BaseEstimator, limits: IntervalCells, lost: np.ndarray) -> None:
    """Refuse a limit of which no row of the fit had one as wide."""
    from isopleth.tables.intervals import interval_text

    row, j = (int(place[0]) for place in np.nonzero(lost))
    rows, low, high = limits.of(j)
    k = int(np.flatnonzero(rows == row)[0])
    limit = interval_text(low[k], high[k])
    what = f"column {_name_at(estimator, j)} has the limit {limit!r} in {{row}}"
    raise InputError(
        f"{what}, and the rows of the fit tell values there apart",
        row=row,
        value=limit,
        hint="fit to rows with such a limit, or empty the cell",
    )


def warn_of_stretches(estimator: BaseEstimator, found: dict[int, Coarsening]) -> None:
    """Say which values count as equal because limits hide them in some rows."""
    from isopleth.tables.intervals import stretch_text

    for j, stretches in found.items():
        parts = listed([stretch_text(*ends) for ends in zip(stretches.lower, stretches.upper, strict=True)])
        warn_user(
            f"column {_name_at(estimator, j)}: values {parts} count as equal, since limits hide them in some rows."
        )


def keep_stretches(estimator: BaseEstimator, found: dict[int, Coarsening]) -> None:
    """Store which values of each column count as equal, for later rows."""
    estimator.__dict__.pop("_stretches", None)
    if found:
        names = _numeric_names(estimator)
        estimator._stretches = {str(j) if names is None else names[j]: each for j, each in found.items()}


def known_stretches(estimator: BaseEstimator) -> dict[int, Coarsening]:
    """Return which values of each column count as equal; kept by name, since an estimator may leave columns out later."""
    names, kept = _numeric_names(estimator), getattr(estimator, "_stretches", {})
    if names is None:
        return {int(j): each for j, each in kept.items()}
    return {names.index(name): each for name, each in kept.items() if name in names}


def _numeric_names(estimator: BaseEstimator) -> list[str] | None:
    schema = getattr(estimator, "schema_", None)
    return None if schema is None else schema.numeric_names


def encoded_rows(
    given: Given,
    columns: Schema,
    min_samples: int = 0,
    *,
    typed: bool,
    warn: bool = True,
    source: SourceTable | None = None,
) -> tuple[np.ndarray, IntervalCells]:
    """Return a table of the columns of the fit as numbers, then codes, and its intervals; warn of other columns and unseen words.

    Columns that `source` holds, since their kinds were decided by it, are not read again.
    """
    encoded = columns.encode(source or given, typed=typed)
    if len(encoded.rows) < min_samples:
        given.refuse_few(len(encoded.rows), min_samples)
    if encoded.extra and warn:
        warn_user(f"columns that the table of the fit does not have are not used: {quoted(encoded.extra)}.")
    if encoded.unseen and warn:
        counts = listed([f"{str(name)!r} ({count})" for name, count in encoded.unseen.items()])
        warn_user(
            f"words that were not among the training rows, by column and number of cells: {counts}; they count as one more "
            "category."
        )
    return encoded.rows, encoded.limits


# Share of the times at either end of a column that do not count, and the fewest times of which one does not: a mistyped year must
# not make two tables overlap that follow each other.
_STRAY, _FEWEST_WITH_STRAY = 0.02, 20
# Least share of pairs of times of which the second is later, of a column beside one that tells two tables apart.
_FOLLOWING = 0.9


def ends_of_times(rows: np.ndarray, schema: Schema | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the earliest and the latest time of each column, without the few that are farthest out; NaN for other columns."""
    ends = np.full((2, rows.shape[1]), np.nan)
    for j in () if schema is None else _times_of(schema):
        known = np.sort(rows[np.isfinite(rows[:, j]), j])
        if len(known):
            stray = math.ceil(_STRAY * len(known)) if len(known) >= _FEWEST_WITH_STRAY else 0
            ends[:, j] = known[stray], known[-1 - stray]
    return ends[0], ends[1]


def times_apart(schema: Schema, one: np.ndarray, two: np.ndarray, *, touching: bool) -> dict[int, Any]:
    """Return columns of times, by number, that are nearly all later in one of two tables: they only repeat which table it is.

    With `touching` the latest time of one may be the earliest of the other. Beside such a column others follow it, as deliveries
    follow orders: of these it is enough that most times are later.
    """
    (first, last), (start, end) = (ends_of_times(rows, schema) for rows in (one, two))
    gap = np.maximum(first - end, start - last)
    touch = (gap == 0.0) & (np.maximum(last, end) > np.minimum(first, start)) & touching
    apart = (gap > 0.0) | touch
    if apart.any():
        apart |= np.array([_share_later(one[:, j], two[:, j]) >= _FOLLOWING for j in range(len(apart))])
    return {j: name for j, name in _times_of(schema).items() if apart[j]}


def _share_later(one: np.ndarray, two: np.ndarray) -> float:
    """Return the share of pairs of known times of which that of the later table is later."""
    one, two = np.sort(one[np.isfinite(one)]), two[np.isfinite(two)]
    if not len(one) or not len(two):
        return 0.0
    before = np.searchsorted(one, two, side="left").mean() / len(one)
    share = 0.5 * (before + np.searchsorted(one, two, side="right").mean() / len(one))
    return float(max(share, 1.0 - share))


def rising_times(schema: Schema, rows: np.ndarray) -> list[str]:
    """Return columns of times that never fall from row to row: those of later rows are all beyond them."""
    names = []
    for j, name in _times_of(schema).items():
        steps = np.diff(rows[:, j][~np.isnan(rows[:, j])])
        if steps.any() and (steps >= 0.0).all():
            names.append(str(name))
    return names


def _times_of(schema: Schema) -> dict[int, Any]:
    """Return the names of the columns of times by their number among the columns of numbers and times."""
    return {j: column.name for j, column in enumerate(schema.measured) if column.kind == "time"}


def warn_of_times_apart(table: CheckedRows, least: np.ndarray, most: np.ndarray, unless: str) -> None:
    """Warn of columns of times nearly all later than `most`, or earlier than `least`, of the fit, which decide for every row."""
    if table.columns is None or len(table.rows) < 2:
        return
    first, last = ends_of_times(table.rows, table.columns)
    for j, name in _times_of(table.columns).items():
        if first[j] > most[j] or last[j] < least[j]:
            text = (
                f"{{column}}: nearly all times are {'later' if first[j] > most[j] else 'earlier'} than those of the fit"
            )
            hint = Hint(f"fit without it, by {{exclude}}, unless {unless}", exclude=[str(name)])
            warn_about_answer(text, column=str(name), hint=hint)


def column_names(estimator: BaseEstimator) -> list[str]:
    """Return the columns as messages name them: their names at fit, in quotes, or their numbers."""
    return estimator._column_labels


def given_names(estimator: BaseEstimator) -> list[str] | None:
    """Return the names of the columns at fit as text; None if they had none."""
    return list(map(str, estimator.feature_names_in_)) if hasattr(estimator, "feature_names_in_") else None


def plain_names(estimator: BaseEstimator) -> list[str]:
    """Return the plain names of the columns at fit, or "column 0" and so on if they had none."""
    given = getattr(estimator, "feature_names_in_", None)
    if given is not None:
        return [str(name) for name in given]
    # Messages quote the names of a frame, which scikit-learn does not keep where they are numbers.
    return [name if name.startswith("column ") else ast.literal_eval(name) for name in column_names(estimator)]


def used_names(estimator: BaseEstimator, columns: Schema | None) -> list[str]:
    """Return the plain names of the columns that are used, in the order of the table."""
    return plain_names(estimator) if columns is None else columns.plain_names


def in_quotes(name: str) -> str:
    """Return a plain name of a column as messages have it: the number of a column has no quotes."""
    return name if name.startswith("column ") else repr(name)


def _refuse_not_finite(estimator: BaseEstimator, X: np.ndarray, parameter: str) -> None:
    """Refuse infinite cells, and missing ones unless the estimator takes them."""
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    if get_tags(estimator).input_tags.allow_nan:
        bad = np.isinf(X)
    if not bad.any():
        return
    counts = bad.sum(axis=0)
    names = column_names(estimator)
    parts = [f"{names[j]} ({counts[j]} row{'s' if counts[j] > 1 else ''})" for j in np.flatnonzero(counts)]
    kinds = " and ".join(k for k, found in (("NaN", np.isnan(X[bad]).any()), ("inf", np.isinf(X).any())) if found)
    other = getattr(estimator, "_instead", None) if "NaN" in kinds else None
    way_out = (
        f"drop those rows, fill them first, or fit with {other}" if other else "drop those rows or fill them first"
    )
    first = int(np.flatnonzero(counts)[0])
    raise InputError(
        f"{{parameter}} contains {kinds} in {listed(parts)}",
        parameter=parameter,
        column=first if names[first] == f"column {first}" else plain_names(estimator)[first],
        row=int(np.argmax(bad[:, first])),
        hint=way_out,
    )


def check_rows(
    estimator: BaseEstimator,
    given: Given,
    *,
    reset: bool,
    min_samples: int = 1,
    missing: bool = False,
    labels: Sequence[str] | None = None,
) -> np.ndarray:
    """Return rows as a float64 array, and store (`reset`) or check names and number of columns on `estimator`."""
    if not reset:
        given.refuse_width(estimator)
        given.refuse_other_names(given_names(estimator))
    X, name = given.table, given.parameter
    try:
        checked = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=min_samples
        )
    except (ValueError, TypeError, OverflowError) as error:
        if any(words in str(error) for words in ("could not convert", "float()", "must be real", "too large")):
            given.refuse_text(error)
        given.refuse_shape(min_samples, error)
        if name == "X":
            raise
        kind = InputError if isinstance(error, ValueError) else TypeError
        raise kind(f"{name}: {error}") from error
    _refuse_rounded(X, checked)
    if reset:
        estimator._column_labels = column_labels(labels or given.names, checked.shape[1])
    _refuse_not_finite(estimator, np.where(np.isnan(checked), 0.0, checked) if missing else checked, name)
    return checked


def _refuse_rounded(X: Any, checked: np.ndarray) -> None:
    """Refuse whole numbers beyond 2**53 that float64 does not hold: different ones would become equal."""
    if (_largest(checked) >= ALL_INTEGERS).any():
        from isopleth.tables.cells import TextRule
        from isopleth.tables.schema import source_of

        table = source_of(X, typed=True)
        for column in table.names:
            cells = table.cells(column, TextRule())
            if cells.exact is not None:
                cells.numbers()


def numbered_groups(groups: Sequence[Any], sizes: Sequence[int], names: Sequence[str] = ("X",)) -> list[np.ndarray]:
    """Return the number of the group of each row of some tables; equal labels have one number in all of them."""
    from isopleth.tables.cells import is_missing

    labels: list[Any] = []
    for part, size, name in zip(groups, sizes, names, strict=True):
        given = on_host(part, "groups")
        # As objects: NumPy would turn the numbers of a list that has words too into words.
        own = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
        if own.shape != (size,):
            raise InputError(
                f"the groups of {name} have shape {own.shape}; expected one label a row, ({size},).", parameter="groups"
            )
        absent = [is_missing(label) for label in own.tolist()]
        if any(absent):
            row = absent.index(True)
            raise InputError(
                f"{{row}} of {name} has no group",
                parameter="groups",
                row=row,
                hint="give it one, or leave the row out",
            )
        labels += own.tolist()
    if len({isinstance(label, str) for label in labels}) > 1:
        raise InputError("groups mix words and numbers", parameter="groups", hint="give labels of one kind")
    try:
        numbers = np.unique(np.array(labels), return_inverse=True)[1].ravel()
    except TypeError as error:
        raise InputError("groups mix labels that have no order.", parameter="groups") from error
    return np.split(numbers, np.cumsum(sizes)[:-1])


def varying_columns(
    estimator: BaseEstimator,
    X: np.ndarray,
    names: Sequence[str] | None = None,
    blocks: Sequence[slice] | None = None,
    constants: bool = False,
) -> np.ndarray:
    """Return a mask of columns with two known cells that differ (one if `constants`), and warn of the others.

    `names` are those of other columns than the fit has, and `blocks` their coordinates if one has several in `X`.
    """
    low, high = np.fmin.reduce(X), np.fmax.reduce(X)
    keep = np.asarray(low < high)
    of_columns = keep if blocks is None else np.array([keep[block].any() for block in blocks])
    if not of_columns.any():
        raise InputError(
            "all rows of {parameter} are equal, those of weight 0 left out, and count as one sample, which has no density; "
            "expected at least two rows that differ.",
            parameter="X",
        )
    if constants:
        of_columns = keep = np.asarray(low <= high)
    warn_of_constants(column_names(estimator) if names is None else [*map(in_quotes, names)], of_columns)
    return keep if blocks is None else np.repeat(of_columns, [block.stop - block.start for block in blocks])


def warn_of_constants(names: Sequence[str], keep: np.ndarray) -> None:
    """Warn with the names of the columns that are not kept, if there are any."""
    if not keep.all():
        constant = listed([name for name, kept in zip(names, keep, strict=True) if not kept])
        warn_user(f"constant columns are dropped: {constant}.")


def check_mass(mass: Any) -> np.ndarray:
    """Return the masses of regions as an array."""
    asked = np.asarray(on_host(mass, "mass"))
    if asked.dtype.kind not in "fi" or not ((asked > 0) & (asked < 1)).all():
        raise InputError("{parameter} = {value}: expected numbers between 0 and 1.", parameter="mass", value=mass)
    return asked.astype(np.float64)


def warn_few_rows(n: int, dim: int) -> None:
    """Warn if there are fewer distinct rows than columns."""
    if n < dim:
        warn_user(
            f"there are fewer distinct rows ({n}) than columns ({dim}): the density shows little more than the distance to "
            "these rows."
        )


def warn_of_new_beginning() -> None:
    """Warn that `partial_fit` starts again after `fit`."""
    warn_user(
        "fit keeps no sums to which rows could be added, so partial_fit starts again without the rows of fit; call it on a new "
        "model, from the first rows on."
    )
