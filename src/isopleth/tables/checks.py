"""Checks of the rows and weights that public methods receive. The result is a :class:`CheckedRows`.

Input that cannot be used raises an error whose message names the column, row or parameter. Doubtful input gives a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from isopleth.core.arrays import Backend, frame_names, to_backend
from isopleth.core.errors import Hint, InputError, listed, quoted, warn_user
from isopleth.core.parameters import check_weights, column_labels, on_host
from isopleth.tables.cells import (
    ALL_INTEGERS,
    NO_WORD,
    SourceTable,
    as_frame,
    holds_numbers_only,
    in_memory,
    is_missing,
    is_table_of_kinds,
    refuse_names,
    refuse_no_table,
    refuse_sparse_columns,
    some_rows,
)
from isopleth.tables.kinds import is_identifier
from isopleth.tables.schema import Attached, Schema
from isopleth.tables.text_types import Numerals

_Estimator = TypeVar("_Estimator", bound=BaseEstimator)
# Why a column of times is left out.
TIMES_APART = "the times of the two tables do not overlap"


@dataclass(frozen=True)
class CheckedRows:
    """Checked rows and weights, with the array library and device that they came from."""

    rows: np.ndarray  # (n, d): checked rows in float64; NaN where a cell is missing, for estimators that take gaps
    weights: np.ndarray  # (n,): their weights, ones where none were given
    backend: Backend
    # Kinds of the columns of a table with words, times or gaps. Its rows are those of numeric columns and times, then codes of
    # categories. None if the rows are the table itself.
    columns: Schema | None = None

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

    def answer(self, values: Any) -> Any:
        """Return `values`, a NumPy array, as an array of the library and on the device of the rows."""
        return self.backend.array(values)

    def finish(self, estimator: _Estimator) -> _Estimator:
        """End a fit: move the fitted arrays of `estimator` to the library and device of the rows, and return it."""
        to_backend(estimator, self.backend)
        return estimator


class TakesKinds:
    """Mixin of estimators whose rows may have words, times and missing cells; it stands before `BaseEstimator`."""

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
) -> CheckedRows:
    """Check the rows and weights that a public method receives, and convert them to float64 NumPy arrays.

    `reset`, at the beginning of a fit, stores names and number of the columns. With `adding`, all weights may be 0; with
    `missing`, NaN is a missing cell. The rows `also` count when kinds of columns are decided, by the rows whose positions
    `kinds_from` returns. Errors are InputError, or ValueError and TypeError where scikit-learn's checks ask for these.
    """
    backend = Backend.of(X, name or "X")
    X = _unmasked(on_host(X, name or "X"))
    if hasattr(X, "__arrow_c_stream__"):  # frames, and streams that can be read only once
        X = in_memory(X)
    columns, read = getattr(estimator, "schema_", None), Attached.of(X)
    if reset and _takes_kinds(estimator):
        columns = _kinds_of(estimator, X, name or "X", also, kinds_from)
        estimator.__dict__.pop("schema_", None)
        if columns is not None:
            estimator.schema_ = columns
    if columns is None and read is not None:
        names = getattr(estimator, "feature_names_in_", None)
        used = [str(name) for name in (read.schema.names if reset or names is None else names)]
        X = read.numbers(X, used) if set(used) <= set(X.column_names) else X
    if columns is not None:
        rows = encoded_rows(X, columns, min_samples, name or "X", warn=kinds_from is None)
    else:
        how: dict[str, Any] = {"min_samples": min_samples, "missing": missing, "name": name or "X"}
        rows = check_rows(estimator, X, reset=reset, labels=None if read is None else used, **how)
    weights = check_weights(sample_weight, len(rows), added=adding, name=weight_name or "sample_weight")
    return CheckedRows(rows, weights, backend, columns)


def _takes_kinds(estimator: BaseEstimator) -> bool:
    """Return whether the tags of an estimator say that it takes words and gaps."""
    tags = get_tags(estimator).input_tags
    return bool(tags.allow_nan and tags.categorical)


def _kinds_of(
    estimator: BaseEstimator,
    X: Any,
    parameter: str,
    also: Any = None,
    kinds_from: Callable[[int], np.ndarray] | None = None,
) -> Schema | None:
    """Return the kinds of the columns of a fit; None for arrays and for frames of complete numbers."""
    tables = [X] if also is None else [X, also]
    categorical = getattr(estimator, "categorical", None)
    named = [] if categorical is None else [categorical] if isinstance(categorical, str) else list(categorical)
    _refuse_kinds(X, parameter, times=True)
    refuse_names(X, parameter)
    read, other = Attached.of(X), Attached.of(also)
    if kinds_from is not None:
        tables = [X] = [some_rows(X, kinds_from)]
    frames = [table for table in tables if not isinstance(table, np.ndarray)]
    if not named and not any(map(is_table_of_kinds, frames)):
        if read is None:
            _warn_of_identifiers(X)
        return None
    # A frame of numbers is taken as it is; identifiers are looked for where there are words or times too.
    as_it_is = all(map(holds_numbers_only, tables))
    names = frame_names(X)
    if names is not None:  # a frame may be asked for by number too, unless that is a name
        named = [
            names[j] if j not in names and isinstance(j, Integral) and j in range(len(names)) else j for j in named
        ]
    if read is None:
        columns = Schema.of(
            X, categorical=named, keep_identifiers=as_it_is or getattr(estimator, "keep_identifiers", False), also=also
        )
    else:
        asked = read if other is None else replace(read, choices=read.choices.joined(other.choices))
        columns = asked.schema_of(X, also, named) if named or also is not None or kinds_from else read.schema
    if getattr(estimator, "_uses_constants", False):
        columns = columns.with_constants()
    if read is None:
        _warn_of_guesses(columns)
    elif columns.only_numbers and not any(
        np.isnan(columns.encode(table, typed=True).numeric).any() for table in tables
    ):
        return None
    estimator._column_labels = column_labels(names, columns.n_columns)
    estimator.n_features_in_ = columns.n_columns
    estimator.__dict__.pop("feature_names_in_", None)
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    return columns


def _warn_of_guesses(columns: Schema) -> None:
    """Warn of columns of a frame or array that are left out, and of what is doubtful."""
    if columns.left_out:
        reasons = listed([f"{str(name)!r} ({why})" for name, why in columns.left_out.items()])
        warn_user(f"columns left out: {reasons}.")
    for note in columns.notes:
        warn_user(note)


def _warn_of_identifiers(X: Any) -> None:
    """Warn of a column that `read_table` would leave out, since a frame of numbers is taken as it is."""
    frame = as_frame(X)
    if frame is None:
        return
    found = [name for name in frame.columns if is_identifier(name, frame.get_column(name))]
    if found:
        names = listed([repr(str(name)) for name in found])
        warn_user(
            f"{names} may identify rows, and is taken as a number like the others: drop the column if it does; "
            "isopleth.read_table leaves it out."
        )


def encoded_rows(X: Any, columns: Schema, min_samples: int = 0, name: str = "X", *, warn: bool = True) -> np.ndarray:
    """Return a table of the columns of the fit as numbers, then codes, NaN where a cell is missing; warn of unseen words."""
    _refuse_kinds(X, name, times=True)
    refuse_names(X, name)
    encoded = columns.encode(X, typed=Attached.of(X) is not None)
    if len(encoded.numeric) < min_samples:
        raise _too_few(len(encoded.numeric), min_samples, name)
    if encoded.unseen and warn:
        counts = listed([f"{str(name)!r} ({count})" for name, count in encoded.unseen.items()])
        warn_user(
            f"words that were not among the training rows, by column and number of cells: {counts}; they count as one more "
            "category."
        )
    return encoded.rows


def times_apart(schema: Schema, one: np.ndarray, two: np.ndarray, *, touching: bool) -> dict[int, Any]:
    """Return columns of times, by number, that are all later in one of two tables: they only repeat which table a row is from.

    With `touching` the latest time of one may be the earliest of the other.
    """
    numbers = [column for column in schema.columns if column.kind != "categorical"]
    return {
        j: column.name
        for j, column in enumerate(numbers)
        if column.kind == "time" and _one_after_the_other(one[:, j], two[:, j], touching)
    }


def _one_after_the_other(one: np.ndarray, two: np.ndarray, touching: bool) -> bool:
    one, two = one[np.isfinite(one)], two[np.isfinite(two)]
    if not len(one) or not len(two):
        return False
    gap = max(one.min() - two.max(), two.min() - one.max())
    return bool(gap > 0.0 or (touching and gap == 0.0 and max(one.max(), two.max()) > min(one.min(), two.min())))


def warn_of_times_apart(table: CheckedRows, least: np.ndarray, most: np.ndarray, unless: str) -> None:
    """Warn of columns of times that are all later than `most` or earlier than `least` of the fit, and decide for every row."""
    if table.columns is None or len(table.rows) < 2:
        return
    for j, name in enumerate(table.columns.numeric_names):
        if name in table.columns.origins and not np.isnan(table.rows[:, j]).all():
            later = np.nanmin(table.rows[:, j]) > most[j]
            if later or np.nanmax(table.rows[:, j]) < least[j]:
                text = f"{{column}}: all times are {'later' if later else 'earlier'} than those of the fit"
                hint = Hint(f"fit without it, by {{exclude}}, unless {unless}", exclude=[str(name)])
                warn_user(text, column=str(name), hint=hint)


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


def _columns(X: Any) -> list[tuple[str | int, Any]]:
    """Return name and content of each column of a frame or two-dimensional array, and nothing for anything else."""
    names = frame_names(X)
    if names is not None:
        return [(str(name), X[name]) for name in names]
    table = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    return [(j, table[:, j]) for j in range(table.shape[1])] if table.ndim == 2 else []


_TIMES = ("date", "time", "duration", "period", "interval")


def _refuse_kinds(X: Any, parameter: str, times: bool = False) -> None:
    """Refuse tables and columns that NumPy would convert to meaningless numbers, such as dates, unless `times` are used."""
    if issparse(X):
        raise TypeError(
            f"{parameter} is a sparse matrix, which kernels of distances cannot use; pass {parameter}.toarray() if it fits in "
            "memory."
        )
    refuse_sparse_columns(X, parameter)
    if hasattr(X, "collect") and hasattr(X, "lazy"):
        how = f"pass {parameter}.collect()"
        raise InputError("{parameter} is a lazy frame, which holds no rows yet", parameter=parameter, hint=how)
    if frame_names(X) is None and not isinstance(X, np.ndarray):
        return
    _refuse_containers(X, parameter)
    of_one_kind = isinstance(X, np.ndarray) and X.ndim == 2
    for name, column in _columns(X[:, :1] if of_one_kind else X):
        about: dict[str, Any] = {"parameter": parameter, "column": name}
        kind = str(getattr(column, "dtype", "")).lower()
        if kind.startswith("complex"):
            how = "pass real and imaginary parts"
            raise InputError("Complex data not supported: {parameter} has them in {column}", **about, hint=how)
        if kind.startswith(_TIMES) and not times:
            how = "turn them into numbers of a unit that you choose, or drop it"
            raise InputError("{parameter} has dates or times in {column}", **about, hint=how)
        if kind.startswith("float16"):
            text = "{parameter} has float16 in {column}, which holds three digits only."
            warn_user(text, **about)
            return


def _refuse_containers(X: Any, parameter: str) -> None:
    """Refuse columns of a frame whose cells are lists or records, which are no words and no numbers."""
    frame = as_frame(X)
    for name in () if frame is None else frame.columns:
        column = frame.get_column(name)
        nested = column.dtype.is_nested()
        if not nested and getattr(getattr(column.to_native(), "dtype", None), "kind", "") == "O":
            nested = any(isinstance(cell, (list, dict, set, tuple, np.ndarray)) for cell in column.to_native())
        if nested:
            raise InputError(
                "{parameter} has lists or records in {column}",
                parameter=parameter,
                column=str(name),
                hint="drop it, or make columns of them",
            )


def _refuse_text(X: Any, parameter: str, error: Exception) -> None:
    """Raise an error that names the first cell of `X` that is not a number; cells with containers are left to scikit-learn."""
    for name, column in _columns(X):
        for i, cell in enumerate(np.asarray(column, dtype=object)):
            if isinstance(cell, (dict, list, set, tuple, np.ndarray)):
                return
            try:
                float(cell)
            except (TypeError, ValueError, OverflowError):
                shown = repr(cell) if len(repr(cell)) < 40 else f"{repr(cell)[:36]}..."
                raise InputError(
                    f"{{parameter}} has something other than numbers in {{column}}: {{row}} holds {shown}",
                    parameter=parameter,
                    column=name,
                    row=i,
                    value=cell,
                    hint="drop or encode the column",
                ) from error


def _refuse_not_finite(estimator: BaseEstimator, X: np.ndarray, parameter: str) -> None:
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
    X: Any,
    *,
    reset: bool,
    min_samples: int = 1,
    missing: bool = False,
    name: str = "X",
    labels: Sequence[str] | None = None,
) -> np.ndarray:
    """Return rows as a float64 array, and store (`reset`) or check names and number of columns on `estimator`."""
    X = _unmasked(on_host(X, name))
    _refuse_kinds(X, name)
    refuse_names(X, name)
    if not reset:
        _refuse_width(estimator, X, name)
        refuse_other_names(estimator, X, name)
    try:
        checked = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=min_samples
        )
    except (ValueError, TypeError, OverflowError) as error:
        if any(words in str(error) for words in ("could not convert", "float()", "must be real", "too large")):
            _refuse_text(X, name, error)
        _refuse_shape(X, min_samples, name, error)
        if name == "X":
            raise
        kind = InputError if isinstance(error, ValueError) else TypeError
        raise kind(f"{name}: {error}") from error
    _refuse_rounded(X, checked)
    if reset:
        estimator._column_labels = column_labels(labels or frame_names(X), checked.shape[1])
    _refuse_not_finite(estimator, np.where(np.isnan(checked), 0.0, checked) if missing else checked, name)
    return checked


def _refuse_shape(X: Any, least: int, parameter: str, error: Exception) -> None:
    """Raise an error in one sentence if scikit-learn refused too few rows or what is no table; ragged lists are left to it."""
    try:
        shape = np.shape(X)
    except ValueError:  # rows of several lengths
        return
    if shape and (not shape[0] or (shape[0] < least and len(shape) == 2)):
        raise _too_few(shape[0], least, parameter) from error
    refuse_no_table(X, parameter, shape)


def _too_few(n: int, least: int, parameter: str) -> InputError:
    # scikit-learn's checks of estimators look for "1 sample".
    text = (
        "{parameter} has no rows; expected at least " if not n else "{parameter} has only 1 sample; expected at least "
    )
    return InputError(f"{text}{least}{' rows' if n else ''}.", parameter=parameter)


def _unmasked(X: Any) -> Any:
    """Return a masked array of numbers with NaN, a missing cell, in the place of masked ones."""
    if not np.ma.isMaskedArray(X) or not np.ma.getmaskarray(X).any():
        return X
    if X.dtype.kind in "iu":
        _refuse_rounded(X.compressed()[:, None], X.compressed().astype(np.float64)[:, None])
    return np.ma.filled(X.astype(np.float64 if X.dtype.kind in "biuf" else object), np.nan)


def _refuse_rounded(X: Any, checked: np.ndarray) -> None:
    """Refuse whole numbers beyond 2**53 that float64 does not hold: different ones would become equal."""
    if (np.abs(checked) >= ALL_INTEGERS).any():
        table = SourceTable.of(X, typed=True)
        for column in table.names:
            cells = table.cells(column, NO_WORD, Numerals())
            if cells.exact is not None:
                cells.numbers()


def _refuse_width(estimator: BaseEstimator, X: Any, name: str) -> None:
    """Refuse another number of columns than at fit in the words of scikit-learn, which calls all tables X."""
    expected = getattr(estimator, "n_features_in_", None)
    shape = np.shape(X) if name != "X" and isinstance(X, np.ndarray) else ()
    if expected is not None and len(shape) == 2 and shape[1] != expected:
        wanted = f"but {type(estimator).__name__} is expecting {expected} features as input."
        raise InputError(f"{{parameter}} has {shape[1]} features, {wanted}", parameter=name, value=shape[1])


def refuse_other_names(estimator: BaseEstimator, X: Any, name: str) -> None:
    """Refuse a frame with other columns than at fit, or the same ones in another order."""
    fitted, given = given_names(estimator), frame_names(X)
    if fitted is None or given is None or given == fitted or not all(isinstance(one, str) for one in given):
        return
    lost, new = [one for one in fitted if one not in given], [one for one in given if one not in fitted]
    parts = " and ".join([*[f"lacks {quoted(lost)}"] * bool(lost), *[f"also has {quoted(new)}"] * bool(new)])
    what = f"{parts}, unlike the table of the fit" if parts else "has its columns in another order than at fit"
    how = f"expected {quoted(fitted)}, in this order"
    raise InputError(f"{{parameter}} {what}", parameter=name, column=(lost + new or given)[0], hint=how)


def numbered_groups(groups: Sequence[Any], sizes: Sequence[int], names: Sequence[str] = ("X",)) -> list[np.ndarray]:
    """Return the number of the group of each row of some tables; equal labels have one number in all of them."""
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
