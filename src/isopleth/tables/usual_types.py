"""Types of columns that libraries can hardly compute with, as usual ones."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

# Names of the two numbers of an interval.
_ENDS = (("lower", "upper"), ("left", "right"))


def holds_intervals(dtype: Any) -> bool:
    """Tell whether a type of narwhals is a struct of two numbers, lower and upper end."""
    if not isinstance(dtype, nw.Struct):
        return False
    names = tuple(part.name for part in dtype.fields)
    return names in _ENDS and all(part.dtype.is_numeric() for part in dtype.fields)


def in_usual_types(X: Any) -> Any:
    """Return a frame without types that libraries can hardly compute with: periods, long numbers, views and runs of Arrow."""
    if isinstance(X, pa.Table):
        odd = [field.name for field in X.schema if usual_type(field.type) != field.type]
        for name in odd:
            X = X.set_column(X.column_names.index(name), name, in_usual_type(X.column(name)))
        return X
    if type(X).__module__.startswith("polars.") and hasattr(X, "get_columns"):
        import polars

        long = [name for name, kind in X.schema.items() if str(kind) in ("Int128", "UInt128")]
        return X.with_columns(polars.col(long).cast(polars.Decimal(38, 0))) if long else X
    if not hasattr(X, "assign") or not hasattr(X, "dtypes"):
        return X
    found = X
    for name, kind in zip(X.columns, X.dtypes, strict=True):
        arrow = getattr(kind, "pyarrow_dtype", None)
        if type(kind).__name__ == "PeriodDtype":
            column = X[name].dt.to_timestamp()
        elif type(kind).__name__ == "IntervalDtype" and getattr(kind.subtype, "kind", "") in "iuf":
            column = _as_structs(X[name])
        elif arrow is not None and usual_type(arrow) != arrow:
            arrays = in_usual_type(pa.chunked_array(pa.array(X[name].array)))
            column = arrays.to_pandas(types_mapper=type(kind)).set_axis(X.index)
        else:
            continue
        found = found.copy(deep=False) if found is X else found
        found[name] = column
    return found


def _as_structs(column: Any) -> Any:
    """Return a column of intervals of pandas as one of Arrow structs, the ends of each."""
    import pandas

    cells, missing = column.array, column.isna().to_numpy()
    ends = [pa.array(np.asarray(end, dtype=np.float64), mask=missing) for end in (cells.left, cells.right)]
    structs = pa.chunked_array([pa.StructArray.from_arrays(ends, names=["lower", "upper"])])
    return pandas.Series(pandas.arrays.ArrowExtensionArray(structs), index=column.index, name=column.name)


def usual_type(kind: Any) -> Any:
    """Return the Arrow type of the cells of views and runs, and of the intervals of pandas."""
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "pandas.interval":
        return kind.storage_type
    if pa.types.is_run_end_encoded(kind):
        return kind.value_type
    return pa.string() if pa.types.is_string_view(kind) else kind


def in_usual_type(column: Any) -> Any:
    """Return an Arrow column of views or runs as one of cells."""
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([part.storage for part in column.chunks], column.type.storage_type)
    if pa.types.is_run_end_encoded(column.type):
        return pa.chunked_array([compute.run_end_decode(part) for part in column.chunks], column.type.value_type)
    return column.cast(usual_type(column.type))
