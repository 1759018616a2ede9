"""How a table records its values, so that drawn rows can look like rows of the table.

A density of numbers is smooth, and a table is not: its numbers have some decimals, some values occur again and again, there is
nothing beyond its edges, and cells are missing in patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import narwhals as nw
import numpy as np

from isopleth.columns import TableColumns
from isopleth.density.column_density import LOG_VALUE
from isopleth.kernels.product import ColumnKernel
from isopleth.operators import Operator

# Steps that values may be multiples of, the largest one first.
_STEPS = tuple(m * 10.0**k for k in range(5, -7, -1) for m in (5.0, 1.0))
_TIME_STEPS = (86400.0, 3600.0, 60.0, 1.0)
_FEW = 20  # distinct values up to which a column has these values only, if each of them occurs often
_OFTEN = 5  # rows that have a value which counts as one of the values of a column
_SHARE = 0.02  # share of the rows that have a repeated value
_SPIKE = 4.0  # times as often as its neighbours a repeated value occurs
_ROWS = 20_000  # rows that are looked at
_PAIR_BYTES = 32  # that one pair of a drawn row and a training row takes


@dataclass(frozen=True)
class NumberFormat:
    """How a column of numbers is recorded.

    Parameters
    ----------
    step : float
        Numbers are multiples of it; 0 for none.
    low, high : float
        Smallest and largest value.
    values : tuple of float
        All values, of a column that has few.
    repeated : tuple of float
        Values that occur much more often than those near them, as 0 does in a column of payments.
    """

    step: float = 0.0
    low: float = -np.inf
    high: float = np.inf
    values: tuple[float, ...] = ()
    repeated: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: np.ndarray, steps: Sequence[float] = _STEPS) -> NumberFormat:
        """Return the format of the known cells of a column."""
        known = values[np.isfinite(values)]
        known = known[:: 1 + len(known) // _ROWS]
        if not len(known):
            return cls()
        distinct, counts = np.unique(known, return_counts=True)
        step = next((step for step in steps if _are_multiples(distinct, step)), 0.0)
        often = max(_OFTEN, _SHARE * len(known))
        low, high = float(distinct[0]), float(distinct[-1])
        few = len(distinct) <= _FEW and len(known) >= _OFTEN * len(distinct)
        if few or len(distinct) == 1:
            return cls(step, low, high, tuple(distinct.tolist()))
        # How often a value would occur if the rows within a window beside it were spread evenly.
        window = float(np.std(known)) * len(known) ** -0.2
        total, place = np.concatenate([[0], np.cumsum(counts)]), np.arange(len(distinct))
        left = total[place] - total[np.searchsorted(distinct, distinct - window)]
        right = total[np.searchsorted(distinct, distinct + window, side="right")] - total[place + 1]
        expected = np.maximum(left, right) * step / window
        repeated = (counts >= often) & (counts > _SPIKE * expected)
        return cls(step, low, high, (), tuple(distinct[repeated].tolist()))

    def record(self, drawn: np.ndarray, source: np.ndarray) -> np.ndarray:
        """Return drawn numbers as the table records them.

        Parameters
        ----------
        drawn : array of shape (n,)
            Draws.
        source : array of shape (n,)
            Value of the centre about which each of them was drawn: one that is repeated is kept.
        """
        if self.values:
            values = np.array(self.values)
            if len(values) == 1:
                return np.full(len(drawn), values[0])
            return values[np.searchsorted(0.5 * (values[1:] + values[:-1]), drawn)]
        out = drawn.copy()
        # Mass beyond an edge is reflected; an edge is the middle of a step.
        below, above = self.low - 0.5 * self.step, self.high + 0.5 * self.step
        out = np.where(out < below, 2.0 * below - out, np.where(out > above, 2.0 * above - out, out))
        if self.step:
            out = np.round(np.rint(out / self.step) * self.step, 9)
        out = np.clip(out, self.low, self.high)
        kept = np.isin(source, self.repeated)
        out[kept] = source[kept]
        return out


def _are_multiples(values: np.ndarray, step: float) -> bool:
    ratio = values / step
    return bool((np.abs(ratio - np.rint(ratio)) <= 1e-7 * np.maximum(1.0, np.abs(ratio) * 1e-3)).all())


@dataclass(frozen=True)
class Recording:
    """How a table records its values.

    Parameters
    ----------
    formats : tuple of NumberFormat
        One for each encoded numeric column.
    origins : array of shape (n_numeric,)
        Zero of each of them: the first time of a column of times, 0 for numbers.
    types : dict of str to str
        Types of the columns of a frame; empty for arrays.
    points : array of shape (m, d), optional
        Rows of the fit in frame coordinates, their gaps filled; None where nothing was missing.
    gaps : array of shape (m, number of encoded columns), bool, optional
        Their missing cells.
    weights : array of shape (m,), optional
        Their weights.
    """

    formats: tuple[NumberFormat, ...]
    origins: np.ndarray
    types: dict[str, str]
    points: np.ndarray | None = None
    gaps: np.ndarray | None = None
    weights: np.ndarray | None = None

    @classmethod
    def of(cls, X: Any, columns: TableColumns, numbers: np.ndarray) -> Recording:
        """Return how the rows of a fit are recorded.

        Parameters
        ----------
        X : data frame or array
            The table.
        columns : TableColumns
            Its columns.
        numbers : array of shape (n, n_numeric)
            Its encoded numbers and times.
        """
        kinds = [column for column in columns.columns if column.kind != "categorical"]
        origins = np.array([column.origin for column in kinds])
        formats = [
            NumberFormat.of(numbers[:, j] + origins[j], _TIME_STEPS if kind.kind == "time" else _STEPS)
            for j, kind in enumerate(kinds)
        ]
        return cls(tuple(formats), origins, _types_of(X))

    def with_gaps(self, points: np.ndarray, gaps: np.ndarray, weights: np.ndarray) -> Recording:
        """Return the recording with the gaps of the rows of the fit."""
        return replace(self, points=points, gaps=gaps, weights=weights)

    def take(self, numeric: np.ndarray, encoded: np.ndarray, visible: np.ndarray) -> Recording:
        """Return the recording of some columns.

        Parameters
        ----------
        numeric, encoded : array of int
            Their places among the numeric and among all encoded columns.
        visible : array of int
            Places of those that have a density.
        """
        out = replace(self, formats=tuple(self.formats[j] for j in numeric), origins=self.origins[numeric])
        if self.points is None or self.gaps is None:
            return out
        return replace(out, points=self.points[:, visible], gaps=self.gaps[:, encoded])

    def numbers(self, drawn: np.ndarray, source: np.ndarray) -> np.ndarray:
        """Return encoded numbers as the table records them; `source` has those of the centres that they were drawn about."""
        out = np.empty_like(drawn)
        for j, (form, origin) in enumerate(zip(self.formats, self.origins, strict=True)):
            out[:, j] = form.record(drawn[:, j] + origin, source[:, j] + origin) - origin
        return out

    def missing(
        self,
        kernel: ColumnKernel,
        points: np.ndarray,
        rng: np.random.Generator,
        memory_limit: float,
        n_jobs: int | None,
    ) -> np.ndarray:
        """Draw which encoded cells are missing: those of a row of the fit, drawn by the kernel at each drawn row.

        Parameters
        ----------
        kernel : ColumnKernel
            Kernel of the columns of the density.
        points : array of shape (n, d)
            Drawn rows in frame coordinates.
        rng : Generator
            Where draws come from.
        memory_limit, n_jobs
            As for :class:`~isopleth.operators.Operator`.

        Returns
        -------
        ndarray of shape (n, number of encoded columns), bool
        """
        if self.points is None or self.gaps is None or self.weights is None:
            raise ValueError("the recording has no gaps")
        log_weights = np.log(self.weights)
        donors = np.empty(len(points), dtype=np.intp)
        step = max(1, int(memory_limit / (_PAIR_BYTES * len(self.points))))
        for start in range(0, len(points), step):
            part = np.ascontiguousarray(points[start : start + step])
            op = Operator(kernel, part, self.points, block=LOG_VALUE, memory_limit=memory_limit, n_jobs=n_jobs)
            # The largest sum of a logarithm and a Gumbel draw is a draw by the exponentials.
            donors[start : start + step] = (
                op.dense() + log_weights + rng.gumbel(size=(len(part), len(log_weights)))
            ).argmax(axis=1)
        return np.asarray(self.gaps[donors])

    def typed(self, frame: Any) -> Any:
        """Return a frame of drawn rows with the types of the table; arrays are returned as they are."""
        if isinstance(frame, np.ndarray):
            return frame
        made = nw.from_native(frame)
        out = [_cast(made.get_column(name), self.types[name]) for name in made.columns if name in self.types]
        return made.with_columns(*out).to_native()


def _types_of(X: Any) -> dict[str, str]:
    frame = nw.from_native(X, pass_through=True) if not isinstance(X, np.ndarray) else None
    if not isinstance(frame, nw.DataFrame) and hasattr(X, "__arrow_c_stream__"):
        import pyarrow

        frame = nw.from_native(pyarrow.table(X))
    if not isinstance(frame, nw.DataFrame):
        return {}
    return {str(name): str(dtype) for name, dtype in frame.schema.items()}


_INTEGERS = {
    name: getattr(nw, name) for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
}


def _cast(column: Any, wanted: str) -> Any:
    """Return a column of numbers, words or times with a type that the table had, if it can have that."""
    if wanted in _INTEGERS and column.dtype.is_numeric():
        limits = np.iinfo(wanted.lower())
        gaps = bool(column.is_nan().any())
        if gaps and column.implementation.is_pandas_like():
            return column  # whole numbers of pandas have no gaps
        return column.clip(float(limits.min), float(limits.max)).fill_nan(None).cast(_INTEGERS[wanted])
    if wanted in ("Float32", "Float64") and column.dtype.is_numeric():
        return column.fill_nan(None).cast(getattr(nw, wanted))
    if wanted == "Date" and isinstance(column.dtype, nw.Datetime):
        return column if column.implementation.is_pandas_like() else column.cast(nw.Date)
    if wanted == "Categorical":
        return column.cast(cast(Any, nw.Categorical))
    return column
