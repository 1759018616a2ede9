"""Relations between columns of numbers that hold exactly in every row of a table, as in a total of price and quantity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pyarrow as pa

from isopleth.density.recording import NumberFormat

# Rows with all cells of a relation that it needs, columns of numbers that are looked at, and rows that are looked at first.
_FEWEST, _MOST_COLUMNS, _FIRST = 20, 30, 20
# Broken rows that two independent columns would have, at least, where one of them is never above the other.
_BY_CHANCE = 5.0
_SIGNS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"x": np.multiply, "+": np.add}


@dataclass(frozen=True)
class Relation:
    """A relation: ``result = first x second``, ``result = first + second``, or ``result <= first`` without a second column."""

    result: str
    first: str
    second: str | None = None
    sign: str = "<="
    step: float = 0.0  # numbers of the result are multiples of it; 0 for none

    def __str__(self) -> str:
        """Return the relation as people write it."""
        return (
            f"{self.result} <= {self.first}"
            if self.second is None
            else (f"{self.result} = {self.first} {self.sign} {self.second}")
        )

    def computed(self, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return what the result has to be, rounded as it is recorded."""
        assert self.second is not None
        found = _SIGNS[self.sign](numbers[self.first], numbers[self.second])
        return np.round(np.rint(found / self.step) * self.step, 9) if self.step else found

    def broken(self, numbers: Mapping[str, np.ndarray]) -> int:
        """Return the number of rows in which it does not hold; gaps break nothing."""
        with np.errstate(invalid="ignore"):
            if self.second is None:
                return int((numbers[self.result] > numbers[self.first]).sum())
            away = np.abs(numbers[self.result] - _SIGNS[self.sign](numbers[self.first], numbers[self.second]))
            return int((away > _tolerance(numbers[self.result], self.step)).sum())


def _tolerance(numbers: np.ndarray, step: float) -> np.ndarray:
    return np.asarray(0.5 * step + 1e-9 * np.abs(numbers))


def numbers_of(columns: Mapping[str, Sequence[Any]]) -> dict[str, np.ndarray]:
    """Return the columns of numbers, NaN where a cell is missing."""
    found = {}
    for name, cells in columns.items():
        known = [cell for cell in cells if cell is not None and cell == cell]  # NaN differs from itself
        if known and all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in known):
            found[name] = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    return found


def relations_of(columns: Mapping[str, Sequence[Any]]) -> list[Relation]:
    """Find the relations that hold in all rows of a table, products and sums first; one for each result."""
    numbers = {name: values for name, values in numbers_of(columns).items() if np.nanmin(values) < np.nanmax(values)}
    numbers = dict(list(numbers.items())[:_MOST_COLUMNS])
    found: dict[str, Relation] = {}
    for relation in _equations(numbers):
        parts = [found[part] for part in (relation.first, str(relation.second)) if part in found]
        # Of a = b + c and b = a x d the first one is kept: either would change what the other one is computed from.
        if relation.result not in found and all(relation.result not in (part.first, part.second) for part in parts):
            found[relation.result] = relation
    return [*found.values(), *_orders(numbers)]


def _equations(numbers: Mapping[str, np.ndarray]) -> Iterator[Relation]:
    """Yield relations a = b x c and a = b + c that hold in every row."""
    steps = {name: NumberFormat.of(values[~np.isnan(values)]).step for name, values in numbers.items()}
    first_rows = {name: values[:_FIRST] for name, values in numbers.items()}
    for first, second in combinations(numbers, 2):
        for result in [name for name in numbers if name not in (first, second)]:
            for sign in _SIGNS:
                relation = Relation(result, first, second, sign, steps[result])
                if relation.broken(first_rows) or relation.broken(numbers):
                    continue
                cells = np.stack([numbers[name] for name in (result, first, second)])
                cells = cells[:, ~np.isnan(cells).any(axis=0)]
                if cells.shape[1] >= _FEWEST and np.ptp(cells, axis=1).all():
                    yield relation


def _orders(numbers: Mapping[str, np.ndarray]) -> Iterator[Relation]:
    """Yield relations a <= b that hold in every row, and would not if the columns were independent."""
    for low, high in permutations(numbers, 2):
        known = ~np.isnan(numbers[low] + numbers[high])
        one, two = numbers[low][known], numbers[high][known]
        if len(one) < _FEWEST or (one > two).any():
            continue
        chance = np.searchsorted(np.sort(two), one).mean() / len(
            two
        )  # that a number of the one is above one of the other
        if chance * len(one) >= _BY_CHANCE:
            yield Relation(low, high)


def kept(made: Any, relations: Sequence[Relation]) -> Any:
    """Return an Arrow table in which the results of products and sums are computed from their parts, where all are known."""
    equations = [relation for relation in relations if relation.second is not None]
    names = {name for relation in equations for name in (relation.result, relation.first, str(relation.second))}
    numbers = numbers_of({name: made.column(name).to_pylist() for name in made.column_names if name in names})
    equations = [each for each in equations if {each.result, each.first, each.second} <= numbers.keys()]
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
