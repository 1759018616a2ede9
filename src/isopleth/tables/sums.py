"""Sums that nearly all rows keep: parts that add up to a constant, and three parts or more that are another column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from isopleth.core.rows import lexical_order
from isopleth.core.steps import NEARLY_ALL_IN_STEPS, recorded_step

# Columns and rows that are looked at; fewest rows, and fewest in which a part has another value than its most frequent one.
_MOST_COLUMNS, _MOST_ROWS, _FEWEST_ROWS = 30, 1000, 30
# Steps of the regression of least absolute residuals, and singular values that are left out, over the largest.
_STEPS, _RANK = 12, 1e-2
# Coefficient in scales of the columns below which a column is no part.
_NOTHING = 1e-3
# How far a coefficient may be from -1, 0 or 1 before the sum is checked in all rows.
_NEAR = 0.1
# Scales from the median beyond which numbers count as so far: a sum of such rows is not the one of the others.
_FARTHEST = 1e6
# Rounding errors of numbers that are not recorded in a step, over their size.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Sum:
    """Columns that add up to another column, or to a constant."""

    parts: tuple[str, ...]
    result: str | None
    total: float  # the constant; 0 with a result
    within: float  # half the steps in which the numbers are recorded, 0 where they add up exactly

    def __str__(self) -> str:
        """Return it as people write it."""
        parts = " + ".join(self.parts)
        return f"{parts} = {self.total:.12g}" if self.result is None else f"{self.result} = {parts}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it speaks about."""
        return self.parts if self.result is None else (self.result, *self.parts)

    def excess(self, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return by how much the parts are more than what they should add up to; NaN where a cell is missing."""
        found = np.sum([numbers[name] for name in self.parts], axis=0) - self.total
        return np.asarray(found if self.result is None else found - numbers[self.result])

    def breaks(self, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return a mask of the rows in which it does not hold; gaps break nothing."""
        size = np.abs(self.total) + np.sum([np.abs(numbers[name]) for name in self.columns], axis=0)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.excess(numbers)) > self.within * (1.0 + 1e-6) + _ROUNDING * size)

    def solved_for(self, name: str, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return what the other columns say of one."""
        return numbers[name] + (self.excess(numbers) if name == self.result else -self.excess(numbers))


def sums_of(numbers: Mapping[str, np.ndarray], few: float, computed: frozenset[str] = frozenset()) -> Iterator[Sum]:
    """Yield the sums that all rows keep but the share `few`; columns that are `computed` from others are left out.

    Each column is a line of the others with the least absolute residuals, which goes exactly through rows that keep a sum
    though others break it. Its coefficients are then 0 and 1 with either sign.
    """
    numbers = {name: values for name, values in sorted(numbers.items()) if name not in computed and _varies(values)}
    names = list(numbers)[:_MOST_COLUMNS]
    if len(names) < 2:
        return
    table = np.stack([numbers[name] for name in names], axis=1)
    rows = table[~np.isnan(table).any(axis=1)]
    if len(rows) < _FEWEST_ROWS:
        return
    places = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).astype(np.intp))
    rows = rows[lexical_order(rows)[places]]
    scales = _scales(rows)
    used = (scales > 0.0) & (scales < np.inf)
    if used.sum() < 2:
        return
    names, rows, scales = np.array(names)[used].tolist(), rows[:, used], scales[used]
    steps = {
        name: recorded_step(np.unique(numbers[name][~np.isnan(numbers[name])]), share=NEARLY_ALL_IN_STEPS)
        for name in names
    }
    seen = set()
    for j in range(len(names)):
        found = _of_line(names, j, _coefficients(rows, scales, j), rows)
        if found is not None and frozenset(found.columns) not in seen:
            seen.add(frozenset(found.columns))
            for within in (0.0, 0.5 * sum(steps[name] for name in found.columns)):
                rule = Sum(found.parts, found.result, found.total, within)
                known = ~np.isnan(rule.excess(numbers))
                if rule.breaks(numbers).sum() <= few * known.sum():
                    yield rule
                    break


def _varies(values: np.ndarray) -> bool:
    known = values[~np.isnan(values)]
    if 2 * len(known) < len(values) or not len(known):
        return False
    return bool(len(known) - np.unique(known, return_counts=True)[1].max() >= _FEWEST_ROWS)


def _scales(rows: np.ndarray) -> np.ndarray:
    """Return the median distance of each column from its median, or the deviation where that is 0.

    Rows without gaps may be alike in a column whose others are not.
    """
    with np.errstate(over="ignore"):
        away = np.abs(rows - np.median(rows, axis=0))
        scales = np.median(away, axis=0)
        return np.asarray(np.where(scales > 0.0, scales, rows.std(axis=0)))


def _coefficients(rows: np.ndarray, scale: np.ndarray, j: int) -> np.ndarray:
    """Return the coefficients of the other columns in the line of column j, with 0 in its own place."""
    with np.errstate(over="ignore"):
        Z = np.clip((rows - np.median(rows, axis=0)) / scale, -_FARTHEST, _FARTHEST)
    others = np.delete(np.column_stack([Z, np.ones(len(Z))]), j, axis=1)
    weights = np.ones(len(Z))
    for _ in range(_STEPS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(root[:, None] * others, root * Z[:, j], rcond=_RANK)[0]
        weights = 1.0 / np.maximum(np.abs(Z[:, j] - others @ found), 1e-4)
        weights /= weights.max()
    found[np.abs(found) < _NOTHING] = 0.0  # in the units of a column of small numbers it may be many
    with np.errstate(over="ignore"):
        return np.asarray(np.insert(found[:-1], j, 0.0) * scale[j] / scale)


def _of_line(names: list[str], j: int, coefficients: np.ndarray, rows: np.ndarray) -> Sum | None:
    """Return the sum that a line says; None for other coefficients, and for a sum of two columns that is a third one."""
    signs = np.rint(np.clip(coefficients, -2.0, 2.0))
    if (np.abs(coefficients - signs) > _NEAR).any() or (np.abs(signs) > 1.0).any() or not signs.any():
        return None
    signs[j] = -1.0
    sides = [[names[k] for k in np.flatnonzero(signs == sign)] for sign in (-1.0, 1.0)]
    total = float(np.median(rows @ -signs))
    if not sides[1]:
        return Sum(tuple(sides[0]), None, round(total, 9), 0.0)
    small, large = sorted(sides, key=len)
    if len(small) > 1 or len(large) < 3 or abs(total) > _NEAR * np.abs(rows[:, j]).mean():
        return None
    return Sum(tuple(large), small[0], 0.0, 0.0)
