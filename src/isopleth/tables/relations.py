"""Exact relations of columns that hold in all or nearly all rows, and the rows that break them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pyarrow as pa

from isopleth.core.steps import recorded_step

# Rows with all cells of a relation that it needs, columns of numbers that are looked at, and rows that are looked at first.
_FEWEST_ROWS, _MOST_COLUMNS, _FIRST = 20, 30, 20
# Broken rows that two independent columns would have, at least, where one of them is never above the other.
_BY_CHANCE = 5.0
# Share of the rows that may break a relation which is said to hold nearly everywhere.
_FEW = 0.02
_SIGNS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"x": np.multiply, "+": np.add}


@dataclass(frozen=True)
class Relation:
    """A relation of columns: a product or sum, a product with a discount, or ``result <= first`` without a second column."""

    result: str
    first: str
    second: str | None = None
    sign: str = "<="
    step: float = 0.0  # numbers of the result are multiples of it; 0 for none
    less: str | None = None  # share that is taken off: result = first x second x (1 - less)

    def __str__(self) -> str:
        """Return the relation as people write it."""
        if self.second is None:
            return f"{self.result} <= {self.first}"
        return f"{self.result} = {self.first} {self.sign} {self.second}" + (
            f" x (1 - {self.less})" if self.less else ""
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it speaks about."""
        return tuple(name for name in (self.result, self.first, self.second, self.less) if name is not None)

    def _combined(self, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return what the result has to be, before it is rounded."""
        assert self.second is not None
        found = _SIGNS[self.sign](numbers[self.first], numbers[self.second])
        return found if self.less is None else found * (1.0 - numbers[self.less])

    def computed(self, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return what the result has to be, rounded as it is recorded."""
        found = self._combined(numbers)
        return np.round(np.rint(found / self.step) * self.step, 9) if self.step else found

    def solved_for(self, name: str, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return what an equation says of one of its columns, by the others; not finite where they do not tell."""
        result, first, second = (numbers[column] for column in (self.result, self.first, str(self.second)))
        share = 1.0 if self.less is None else 1.0 - numbers[self.less]
        with np.errstate(divide="ignore", invalid="ignore"):
            if name == self.result:
                return self.computed(numbers)
            if name == self.less:
                return 1.0 - result / (first * second)
            other = second if name == self.first else first
            return result - other if self.sign == "+" else result / (other * share)

    def broken(self, numbers: Mapping[str, np.ndarray]) -> int:
        """Return the number of rows in which it does not hold; gaps break nothing."""
        return int(self.breaks(numbers).sum())

    def breaks(self, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return a mask of the rows in which it does not hold; gaps break nothing."""
        with np.errstate(invalid="ignore"):
            if self.second is None:
                return np.asarray(numbers[self.result] > numbers[self.first])
            away = np.abs(numbers[self.result] - self._combined(numbers))
            return np.asarray(away > tolerance(numbers[self.result], self.step))


def tolerance(numbers: np.ndarray, step: float) -> np.ndarray:
    """Return how far numbers may be from what a relation says of them: half a step, and the rounding of floating point."""
    return np.asarray(0.5 * step + 1e-9 * np.abs(numbers))


def numbers_of(columns: Mapping[str, Sequence[Any]]) -> dict[str, np.ndarray]:
    """Return the columns of numbers, NaN where a cell is missing."""
    found = {}
    for name, cells in columns.items():
        known = [cell for cell in cells if cell is not None and cell == cell]  # NaN differs from itself
        if known and all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in known):
            found[name] = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    return found


def times_of(columns: Mapping[str, Sequence[Any]]) -> dict[str, np.ndarray]:
    """Return the columns of dates, times and durations in seconds, NaN where a cell is missing."""
    found = {}
    for name, cells in columns.items():
        known = [cell for cell in cells if cell is not None and cell == cell]
        if known and all(isinstance(cell, (date, timedelta)) for cell in known):
            found[name] = np.array([np.nan if cell is None or cell != cell else _seconds(cell) for cell in cells])
    return found


def _seconds(cell: Any) -> float:
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    moment = cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)
    return float((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def relations_of(columns: Mapping[str, Sequence[Any]]) -> list[Relation]:
    """Find products and sums that hold in all or nearly all rows of a table, one for each result, and orders that hold in all."""
    numbers = numbers_of(columns)
    return [*equations_of(numbers), *_orders(varying(numbers)), *_orders(varying(times_of(columns)))]


def equations_of(numbers: Mapping[str, np.ndarray]) -> list[Relation]:
    """Find products and sums that hold in all or nearly all rows of columns of numbers, one for each result."""
    numbers = varying(numbers)
    found: dict[str, Relation] = {}
    for relation in (*_equations(numbers), *broken_relations(numbers)):
        parts = [found[part] for part in (relation.first, str(relation.second)) if part in found]
        # Of a = b + c and b = a x d the first one is kept: either would change what the other one is computed from.
        if relation.result not in found and all(relation.result not in (part.first, part.second) for part in parts):
            found[relation.result] = relation
    return list(found.values())


def broken_relations(numbers: Mapping[str, np.ndarray]) -> dict[Relation, np.ndarray]:
    """Find equations that hold in nearly all rows, and the rows that break each: likely errors of recording."""
    return {relation: rows for relation, rows in nearly_all(numbers, _FEW) if len(rows)}


def nearly_all(numbers: Mapping[str, np.ndarray], few: float) -> Iterator[tuple[Relation, np.ndarray]]:
    """Yield equations that all rows keep but the share `few`, with the rows that break each."""
    numbers = varying(numbers)
    for relation in _equations(numbers, few):
        rows, result = np.flatnonzero(relation.breaks(numbers)), numbers[relation.result]
        parts = np.stack([numbers[relation.first], numbers[str(relation.second)]])
        with np.errstate(invalid="ignore"):  # gaps compare as False
            informative = (np.abs(result - parts) > tolerance(result, relation.step)).all(axis=0)
            if relation.less is not None:  # without a discount it is a product of two columns
                informative &= numbers[relation.less] != 0.0
        informative[rows] = False
        if len(rows) <= few * informative.sum() and len(np.unique(result[informative])) >= _FEWEST_ROWS:
            yield relation, rows


def varying(numbers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the first columns that have two values."""
    found = {name: values for name, values in numbers.items() if np.fmin.reduce(values) < np.fmax.reduce(values)}
    return dict(list(found.items())[:_MOST_COLUMNS])


def _equations(numbers: Mapping[str, np.ndarray], few: float = 0.0) -> Iterator[Relation]:
    """Yield sums, products and products with a discount that hold in every row, or in all but the share `few`."""
    names = list(numbers)
    known = [np.unique(values[~np.isnan(values)]) for values in numbers.values()]
    # A few wrong numbers with more digits do not change how the others were recorded.
    steps = [recorded_step(values, share=1.0 - few) for values in known]
    for result, first, second, sign, less in _likely(numbers, steps, few):
        relation = Relation(names[result], names[first], names[second], sign, steps[result], less)
        cells = np.stack([numbers[name] for name in relation.columns])
        complete = cells[:, ~np.isnan(cells).any(axis=0)]
        enough = complete.shape[1] >= _FEWEST_ROWS and np.ptp(complete, axis=1).all()
        if enough and relation.broken(numbers) <= few * cells.shape[1]:
            yield relation


def _likely(
    numbers: Mapping[str, np.ndarray], steps: Sequence[float], few: float
) -> Iterator[tuple[int, int, int, str, str | None]]:
    """Yield equations that hold in enough of the first rows, as places of result and parts, sign, and column of the discount."""
    if not numbers:
        return
    first_rows = np.stack([values[:_FIRST] for values in numbers.values()])
    within = np.stack([tolerance(values, step) for values, step in zip(first_rows, steps, strict=True)])
    most = 10 * few * _FIRST  # among the first rows a few may come together
    with np.errstate(invalid="ignore"):
        shares = [
            j
            for j, rows in enumerate(first_rows)
            if not ((rows < 0.0) | (rows > 1.0)).any() and np.nanmax(rows, initial=0.0)
        ]
        for i, j in combinations(range(len(first_rows)), 2):
            for sign, operate in _SIGNS.items():
                found = operate(first_rows[i], first_rows[j])
                for k in np.flatnonzero((np.abs(first_rows - found) > within).sum(axis=1) <= most):
                    if k not in (i, j):
                        yield int(k), i, j, sign, None
            for less in shares:
                found = first_rows[i] * first_rows[j] * (1.0 - first_rows[less])
                for k in np.flatnonzero((np.abs(first_rows - found) > within).sum(axis=1) <= most):
                    if len({int(k), i, j, less}) == 4:
                        yield int(k), i, j, "x", list(numbers)[less]


def _orders(numbers: Mapping[str, np.ndarray]) -> Iterator[Relation]:
    """Yield relations a <= b that hold in every row, and would not if the columns were independent."""
    for low, high in permutations(numbers, 2):
        known = ~np.isnan(numbers[low] + numbers[high])
        one, two = numbers[low][known], numbers[high][known]
        if len(one) < _FEWEST_ROWS or (one > two).any():
            continue
        if out_of_order_by_chance(one, two) * len(one) >= _BY_CHANCE:
            yield Relation(low, high)


def out_of_order_by_chance(low: np.ndarray, high: np.ndarray) -> float:
    """Return the share of pairs of a number of `low` and one of `high`, of any rows, in which the former is larger."""
    return float(np.searchsorted(np.sort(high), low).mean()) / len(high)


def kept(made: Any, relations: Sequence[Relation]) -> Any:
    """Return an Arrow table in which the results of products and sums are computed from their parts, where all are known."""
    equations = [relation for relation in relations if relation.second is not None]
    names = {name for relation in equations for name in relation.columns}
    numbers = numbers_of({name: made.column(name).to_pylist() for name in made.column_names if name in names})
    equations = [each for each in equations if set(each.columns) <= numbers.keys()]
    for _ in equations:  # a part may be the result of another one
        for relation in equations:
            found = relation.computed(numbers)
            old = numbers[relation.result]
            numbers[relation.result] = np.where(np.isnan(found) | np.isnan(old), old, found)
    for relation in equations:
        place, column = made.column_names.index(relation.result), made.column(relation.result)
        cells = pa.array(numbers[relation.result], from_pandas=True).cast(column.type, safe=False)
        made = made.set_column(place, relation.result, cells)
    return made


def in_order(made: Any, relations: Sequence[Relation], source: Mapping[str, Sequence[Any]], seed: int) -> Any:
    """Return an Arrow table in which orders a <= b hold: b is a and a difference of the two in a row of the table.

    Rows that keep an order are not changed, and neither are columns of products and sums.
    """
    orders = [relation for relation in relations if relation.second is None]
    fixed = {name for each in relations if each.second is not None for name in each.columns}
    rng, cells = np.random.default_rng(seed), {name: made.column(name).to_pylist() for name in made.column_names}
    numbers = numbers_of(cells) | times_of(cells)
    known = numbers_of(source) | times_of(source)
    orders = [each for each in orders if {each.result, each.first} <= numbers.keys() and each.first not in fixed]
    changed = set()
    for _ in orders:  # what is put behind one column may have to be before another one
        for relation in orders:
            rows = np.flatnonzero(relation.breaks(numbers))
            apart = known[relation.first] - known[relation.result]
            numbers[relation.first][rows] = numbers[relation.result][rows] + rng.choice(
                apart[~np.isnan(apart)], len(rows)
            )
            changed |= {relation.first} if len(rows) else set()
    for name in changed:
        made = made.set_column(made.column_names.index(name), name, _as_type(numbers[name], made.column(name).type))
    return made


def _as_type(values: np.ndarray, kind: Any) -> Any:
    """Return numbers, or seconds, as an Arrow column of a type."""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        zone = getattr(kind, "tz", None)
        moments = pa.array(np.rint(values * 1e6), from_pandas=True).cast(pa.int64())
        exact = pa.duration("us") if pa.types.is_duration(kind) else pa.timestamp("us", zone)
        return moments.cast(exact).cast(kind, safe=False)
    return pa.array(values, from_pandas=True).cast(kind, safe=False)
