"""Columns of numbers that are the time from one column of dates or times to another, such as ``days = end - start``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from isopleth.core.steps import recorded_step
from isopleth.tables.relations import tolerance

# Seconds of the units in which times from one column to another are counted.
_UNITS = {"weeks": 604_800.0, "days": 86_400.0, "hours": 3_600.0, "minutes": 60.0, "seconds": 1.0}
# Fewest rows, and fewest different numbers of rows that keep it.
_FEWEST_ROWS, _FEWEST_NUMBERS = 30, 3


@dataclass(frozen=True)
class Elapsed:
    """Number of the days, or of another unit, from one time to another."""

    result: str
    first: str  # column of the earlier time
    second: str  # column of the later one
    unit: str
    more: int  # 1 where both the first and the last day count
    step: float  # numbers of the result are multiples of it; 0 for none

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{self.result} = {self.second} - {self.first}{f' + {self.more}' * bool(self.more)} (in {self.unit})"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it speaks about."""
        return self.result, self.first, self.second

    def solved_for(self, name: str, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return what it says of one of its columns, times in seconds."""
        unit = _UNITS[self.unit]
        if name == self.result:
            return (numbers[self.second] - numbers[self.first]) / unit + self.more
        between = (numbers[self.result] - self.more) * unit
        return numbers[self.second] - between if name == self.first else numbers[self.first] + between

    def breaks(self, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return a mask of the rows in which it does not hold; gaps break nothing."""
        with np.errstate(invalid="ignore"):
            away = np.abs(numbers[self.result] - self.solved_for(self.result, numbers))
            return np.asarray(away > tolerance(numbers[self.result], self.step))


def elapsed_of(numbers: Mapping[str, np.ndarray], times: Mapping[str, np.ndarray], few: float) -> Iterator[Elapsed]:
    """Yield the columns of numbers that are the time between two columns in all rows but the share `few`."""
    for result, values in numbers.items():
        step = recorded_step(np.unique(values[~np.isnan(values)]), share=1.0 - few)
        for first, second in permutations(times, 2):
            found = (
                Elapsed(result, first, second, unit, more, step)
                for unit in _UNITS
                for more in ((0, 1) if unit == "days" else (0,))
            )
            known = ~np.isnan(values + times[first] + times[second])
            columns = {result: values, first: times[first], second: times[second]}
            fits = (each for each in found if _nearly_always(each, columns, known, few))
            if known.sum() >= _FEWEST_ROWS and (best := next(fits, None)) is not None:
                yield best
                break


def _nearly_always(found: Elapsed, numbers: Mapping[str, np.ndarray], known: np.ndarray, few: float) -> bool:
    broken = found.breaks(numbers)
    kept = numbers[found.result][known & ~broken]
    return bool(broken.sum() <= few * known.sum()) and len(np.unique(kept)) >= _FEWEST_NUMBERS
