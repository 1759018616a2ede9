"""A table as a caller passed it: an array, or a data frame of any library. All questions about its type are asked here, once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import narwhals as nw
import numpy as np
from scipy.sparse import issparse

from isopleth.core.arrays import NUMPY, Backend, frame_names, is_foreign
from isopleth.core.errors import InputError, other_names, quoted, warn_user
from isopleth.core.parameters import on_host
from isopleth.core.rows import ALL_INTEGERS
from isopleth.tables.amounts import amount_of
from isopleth.tables.usual_types import holds_intervals, in_usual_types

_TIMES = ("date", "time", "duration", "period", "interval")
_CONTAINERS = (dict, list, set, tuple, np.ndarray)
_LIMITS = "pass a data frame, in which cells that say a limit are intervals"
_LONGEST_CELL = 40  # characters of a cell that a message shows whole


@dataclass(frozen=True, eq=False)
class Given:
    """Table in memory: its library, the names of its columns, whether it has words and gaps, and refusals of what is no table."""

    # As it was passed, but arrays of other libraries and masked arrays are plain ones, and streams have been read.
    table: Any
    parameter: str  # that it was passed as
    names: list[Any] | None = None  # of the columns, if it has any
    frame: Any = None  # the table in narwhals, with usual types for its columns; None for what is no frame
    backend: Backend = NUMPY  # library and device of the array that was passed

    @classmethod
    def of(cls, X: Any, parameter: str = "X") -> Self:
        """Find out what `X` is; refuse frames without columns, with two columns of one name, or that hold no rows yet."""
        if isinstance(X, cls):
            return X
        backend = NUMPY
        if is_foreign(X):
            backend, X = Backend.of(X, parameter), on_host(X, parameter)
        if isinstance(X, np.ndarray):
            X = _unmasked(X) if np.ma.isMaskedArray(X) else X
            if X.dtype.names is not None:
                how = "pass a plain array of numbers or a data frame"
                raise InputError("{parameter} is a structured array", parameter=parameter, hint=how)
            return cls(X, parameter, backend=backend)
        if issparse(X) or hasattr(X, "sparse"):
            _refuse_sparse(X, parameter)
        names = None if hasattr(X, "collect") else frame_names(X)
        if names is not None:
            refuse_names(names, parameter)
        table, frame = _read(X, parameter)
        return cls(table, parameter, names if frame is None else list(frame.columns), frame, backend)

    @property
    def library(self) -> str | None:
        """Library of a frame by its name in narwhals; None for arrays."""
        return None if self.frame is None else str(self.frame.implementation.name.lower())

    @cached_property
    def only_numbers(self) -> bool:
        """Tell whether every column of a frame holds numbers; false for arrays."""
        return self.frame is not None and all(kind.is_numeric() for kind in self.frame.schema.values())

    @cached_property
    def has_kinds(self) -> bool:
        """Tell whether a frame has missing cells or columns other than numbers; false for arrays."""
        if self.frame is None or not self.only_numbers:
            return self.frame is not None
        columns = [np.asarray(column.to_numpy()) for column in self.frame.iter_columns()]
        return any(cells.dtype == object or np.isnan(cells.astype(np.float64)).any() for cells in columns)

    def select(self, names: Sequence[Any]) -> Given:
        """Return some of the columns of a frame, in this order; an array as it is."""
        if self.frame is None:
            return self
        plain = all(isinstance(name, str) for name in names)
        return Given.of(self.frame.select(*names).to_native() if plain else self.table[list(names)], self.parameter)

    def rows(self, choose: Callable[[int], np.ndarray]) -> Given:
        """Return the rows at the positions that `choose` returns for their number."""
        if self.frame is not None:
            return Given.of(self.frame[choose(len(self.frame)).tolist()].to_native(), self.parameter)
        array = np.asarray(self.table)
        return Given(array[choose(len(array))] if array.ndim == 2 else array, self.parameter)

    def refuse_kinds(self, *, times: bool) -> None:
        """Refuse columns that NumPy would convert to meaningless numbers, such as lists, and dates unless `times` are used."""
        kinds = {} if self.frame is None else self.frame.schema
        natives = {} if self.names is None else {name: self.table[name] for name in self.names}
        if self.names is None and isinstance(self.table, np.ndarray) and self.table.ndim == 2 and self.table.shape[1]:
            natives = {0: self.table[:, 0]}  # all columns of an array are of one type
        coarse = None
        for name, native in natives.items():
            about: dict[str, Any] = {"parameter": self.parameter, "column": str(name) if self.names else name}
            if (
                name in kinds
                and _holds_containers(native, kinds[name])
                and not (times and holds_intervals(kinds[name]))
            ):
                how = "drop it, or make columns of them"
                raise InputError("{parameter} has lists or records in {column}", **about, hint=how)
            kind = str(getattr(native, "dtype", "")).lower()
            if kind.startswith("complex"):
                how = "pass real and imaginary parts"
                raise InputError("Complex data not supported: {parameter} has them in {column}", **about, hint=how)
            if kind.startswith(_TIMES) and not times:
                how = "turn them into numbers of a unit that you choose, or drop it"
                raise InputError("{parameter} has dates or times in {column}", **about, hint=how)
            coarse = coarse or (about if kind.startswith("float16") else None)
        if coarse is not None:
            warn_user("{parameter} has float16 in {column}, which holds three digits only.", **coarse)

    def refuse_text(self, error: Exception) -> None:
        """Raise an error that names the first cell that is not a number; cells with containers are left to scikit-learn."""
        if self.names is None:
            cells = self.table if isinstance(self.table, np.ndarray) else np.asarray(self.table, dtype=object)
            columns: Iterable[tuple[str | int, Any]] = enumerate(cells.T if cells.ndim == 2 else ())
        else:
            columns = ((str(name), self.table[name]) for name in self.names)
        for name, column in columns:
            for i, cell in enumerate(np.asarray(column, dtype=object)):
                if isinstance(cell, _CONTAINERS):
                    return
                try:
                    float(cell)
                except (TypeError, ValueError, OverflowError):
                    shown = repr(cell) if len(repr(cell)) < _LONGEST_CELL else f"{repr(cell)[: _LONGEST_CELL - 4]}..."
                    raise InputError(
                        f"{{parameter}} has something other than numbers in {{column}}: {{row}} holds {shown}",
                        parameter=self.parameter,
                        column=name,
                        row=i,
                        value=cell,
                        hint=_LIMITS if _says_limit(cell) else "drop or encode the column",
                    ) from error

    def refuse_shape(self, least: int, error: Exception) -> None:
        """Raise an error in one sentence if there are too few rows or this is no table; ragged lists are left to scikit-learn."""
        try:
            shape = np.shape(self.table)
        except ValueError:  # rows of several lengths
            return
        if shape and (not shape[0] or (shape[0] < least and len(shape) == 2)):
            self.refuse_few(shape[0], least, error)
        self.refuse_no_table(shape)

    def refuse_few(self, n: int, least: int, error: Exception | None = None) -> None:
        """Raise an error if there are fewer than `least` rows."""
        if n < least or not n:
            # scikit-learn's checks of estimators look for "1 sample".
            text = f"{{parameter}} has {'only 1 sample' if n else 'no rows'}; expected at least {least}{' rows' if n else ''}."
            raise InputError(text, parameter=self.parameter) from error

    def refuse_no_table(self, shape: tuple[int, ...]) -> None:
        """Refuse what has the shape of no table: files that are not read yet, single values, arrays of other than two axes."""
        X, name = self.table, self.parameter
        if isinstance(X, (str, bytes, os.PathLike)):
            what, how = "is {value}, which holds no rows", "if it is a file, read it with isopleth.read_table"
        elif not shape:
            what, how = (
                f"is of type {type(X).__name__}",
                "expected a table of rows and columns: an array or a data frame",
            )
        elif len(shape) == 1 and shape[0] and isinstance(X[0], Mapping):
            what, how = "is a list of dicts", f"make a table of it, as in pandas.DataFrame({name})"
        elif len(shape) == 1:
            # scikit-learn's checks of estimators look for the first words of the advice.
            what = "has one dimension"
            how = f"Reshape your data: {name}.reshape(-1, 1) is one column, {name}.reshape(1, -1) one row"
        elif len(shape) > 2:
            what, how = f"has shape {shape}", f"expected rows and columns, such as {name}.reshape({shape[0]}, -1)"
        else:
            return
        raise InputError(f"{{parameter}} {what}", parameter=name, value=X, hint=how)

    def refuse_width(self, estimator: Any) -> None:
        """Refuse another number of columns than at fit in the words of scikit-learn, which calls all tables X."""
        expected = getattr(estimator, "n_features_in_", None)
        shape = np.shape(self.table) if self.parameter != "X" and isinstance(self.table, np.ndarray) else ()
        if expected is not None and len(shape) == 2 and shape[1] != expected:
            wanted = f"but {type(estimator).__name__} is expecting {expected} features as input."
            raise InputError(
                f"{{parameter}} has {shape[1]} features, {wanted}", parameter=self.parameter, value=shape[1]
            )

    def refuse_other_names(self, fitted: list[str] | None) -> None:
        """Refuse a frame with other columns than at fit, or the same ones in another order."""
        given = self.names
        if fitted is None or given is None or given == fitted or not all(isinstance(one, str) for one in given):
            return
        lost, new = [one for one in fitted if one not in given], [one for one in given if one not in fitted]
        other = other_names(lost, new)
        what = f"{other}, unlike the table of the fit" if other else "has its columns in another order than at fit"
        how = f"expected {quoted(fitted)}, in this order"
        raise InputError(f"{{parameter}} {what}", parameter=self.parameter, column=(lost + new or given)[0], hint=how)


def _says_limit(cell: Any) -> bool:
    """Tell whether a cell is text such as <0.5."""
    amount = amount_of(cell.strip()) if isinstance(cell, str) else None
    return amount is not None and bool(amount.side)


def _unmasked(X: Any) -> Any:
    """Return a masked array of numbers with NaN, a missing cell, in the place of masked ones."""
    if not np.ma.getmaskarray(X).any():
        return X
    if X.dtype.kind in "iu" and (np.abs(X.compressed().astype(np.float64)) >= ALL_INTEGERS).any():
        return np.ma.filled(X.astype(object), np.nan)  # so that the cell that float64 does not hold can be named
    return np.ma.filled(X.astype(np.float64 if X.dtype.kind in "biuf" else object), np.nan)


def _refuse_sparse(X: Any, parameter: str) -> None:
    """Refuse sparse matrices and frames of sparse columns."""
    if issparse(X):
        raise TypeError(
            f"{parameter} is a sparse matrix, which kernels of distances cannot use; pass {parameter}.toarray() if it fits in "
            "memory."
        )
    kinds = X.dtypes if hasattr(X, "sparse") and hasattr(X, "dtypes") else ()
    if any(type(kind).__name__ == "SparseDtype" for kind in kinds):
        raise InputError(f"{parameter} has sparse columns; pass {parameter}.sparse.to_dense() if it fits in memory.")


def refuse_names(names: list[Any], parameter: str) -> None:
    """Refuse frames without columns or with several columns of one name."""
    if not names:
        raise InputError("{parameter} has no columns; expected at least one column of numbers.", parameter=parameter)
    if twice := sorted(str(name) for name, count in Counter(names).items() if count > 1):
        text, how = f"{{parameter}} has several columns named {quoted(twice)}", "give each a name of its own"
        raise InputError(text, parameter=parameter, column=twice[0], hint=how)


def _read(X: Any, parameter: str) -> tuple[Any, Any]:
    """Return a table in memory and its frame of narwhals, None for what is no frame; an Arrow stream can be read only once."""
    found = nw.from_native(in_usual_types(X), pass_through=True)
    if isinstance(found, nw.DataFrame):
        return X, found
    if hasattr(X, "__arrow_c_stream__"):
        single = nw.from_native(X, allow_series=True, pass_through=True)
        if getattr(X, "ndim", None) == 1 or isinstance(single, nw.Series):
            how = f"pass a table with this column, as {parameter}.to_frame() of a series or frame[['name']]"
            raise InputError("{parameter} is a single column", parameter=parameter, hint=how)
        frame = nw.from_arrow(X, backend="pyarrow")
        return frame.to_native(), frame
    if isinstance(found, nw.LazyFrame):
        how = f"pass {parameter}.{'compute' if hasattr(X, 'compute') else 'collect'}()"
        how += ", or a Dask frame to the functions of isopleth.distributed" * hasattr(X, "__dask_graph__")
        raise InputError("{parameter} is a lazy frame, which holds no rows yet", parameter=parameter, hint=how)
    return X, None


def _holds_containers(native: Any, kind: Any) -> bool:
    """Tell whether the cells of a column are lists or records, which are no words and no numbers; `kind` is its type."""
    dtype: Any = getattr(native, "dtype", None)
    if type(dtype).__name__ == "CategoricalDtype":
        native = dtype.categories
    elif not (isinstance(dtype, np.dtype) and dtype.kind == "O"):  # only objects need to be looked at one by one
        return bool(kind.is_nested())
    return any(isinstance(cell, _CONTAINERS) for cell in native)
