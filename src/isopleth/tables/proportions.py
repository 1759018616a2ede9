"""Products with a constant factor, such as ``vat = 0.19 x net``, that nearly all rows keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from isopleth.core.rows import row_keys
from isopleth.core.steps import recorded_step
from isopleth.tables.relations import tolerance, varying

# Rows of the table among which products are looked for, rows of these that are looked at first, fewest of them with a product
# other than 0, and the ones with the largest products, whose ratios say the factor best.
_POOL, _FIRST, _USABLE, _LARGEST = 2048, 20, 10, 7
# Fewest rows and fewest distinct results of rows that keep a product.
_FEWEST = 20
# Most digits of a factor or of its reciprocal, and share of the rows with the largest products, which the factor is estimated by.
_DIGITS, _SHARE = 4, 0.1


@dataclass(frozen=True)
class Proportion:
    """Column that is another one, or the product of two, times a constant factor."""

    result: str
    first: str
    second: str | None
    factor: float
    step: float  # numbers of the result are multiples of it; 0 for none

    def __str__(self) -> str:
        """Return it as people write it."""
        parts = self.first if self.second is None else f"{self.first} x {self.second}"
        if _is_divisor(self.factor):
            return f"{self.result} = {parts} / {1.0 / self.factor:.{_DIGITS}g}"
        return f"{self.result} = {self.factor:.{_DIGITS}g} x {parts}"

    @property
    def parts(self) -> tuple[str, ...]:
        """Columns that the result is computed from."""
        return (self.first,) if self.second is None else (self.first, self.second)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it speaks about."""
        return (self.result, *self.parts)

    def _product(self, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(np.prod([numbers[name] for name in self.parts], axis=0))

    def solved_for(self, name: str, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return what it says of one of its columns, by the others; not finite where they do not tell."""
        if name == self.result:
            return self.factor * self._product(numbers)
        with np.errstate(divide="ignore", invalid="ignore"):
            others = np.prod([numbers[part] for part in self.parts if part != name], axis=0)  # 1 without any
            return np.asarray(numbers[self.result] / (self.factor * others))

    def breaks(self, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return a mask of the rows in which it does not hold; gaps break nothing."""
        with np.errstate(invalid="ignore"):
            away = np.abs(numbers[self.result] - self.factor * self._product(numbers))
            return np.asarray(away > tolerance(numbers[self.result], self.step))


def _is_divisor(factor: float) -> bool:
    """Tell whether a factor is written as a division: by 100, or by 12, whose reciprocal has many digits."""
    power = np.log10(abs(factor))
    return (power < 0.0 and abs(power - np.rint(power)) < 1e-9) or float(f"{factor:.{_DIGITS}g}") != factor


def proportions_of(
    numbers: Mapping[str, np.ndarray], few: float, known: Mapping[str, set[str]]
) -> Iterator[Proportion]:
    """Yield products with a factor that all rows keep but the share `few`, one for each result.

    Those of one column come before those of two, and factors of few digits before others: of ``vat = 0.19 x net`` and
    ``net = gross / 1.19`` the first one says the second one where gross is their sum. `known` has the parts that equations
    without a factor compute results from.
    """
    numbers = varying(numbers)
    names = list(numbers)
    steps = [recorded_step(np.unique(values[~np.isnan(values)]), share=1.0 - few) for values in numbers.values()]
    found = []
    for result, parts in _likely(list(numbers.values()), steps, few):
        if names[result] not in known:
            chosen = _proportion([names[j] for j in (result, *parts)], numbers, steps[result], few)
            if chosen is not None:
                found.append((len(parts), chosen[0], -result, chosen[1]))
    computed = dict(known)
    for *_, proportion in sorted(found, key=lambda each: each[:-1]):  # of equal ones the later column is the result
        name = proportion.result
        if name not in computed and not any(_follows(part, name, computed) for part in proportion.parts):
            computed[name] = set(proportion.parts)
            yield proportion


def _follows(name: str, other: str, computed: Mapping[str, set[str]]) -> bool:
    """Tell whether a column is computed from another one, maybe by way of further ones."""
    left, seen = [name], set[str]()
    while left:
        part = left.pop()
        if part == other:
            return True
        if part not in seen:
            seen.add(part)
            left += computed.get(part, ())
    return False


def _likely(columns: Sequence[np.ndarray], steps: Sequence[float], few: float) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the places of results and parts whose ratio is about constant in enough of the rows that are looked at first."""
    if len(columns) < 2:
        return
    pool = _pool(columns)
    doubts = np.stack([tolerance(values, step) for values, step in zip(pool, steps, strict=True)])
    most, places = 10 * few * _FIRST, range(len(columns))  # among so few rows some may come together
    for parts in (*((i,) for i in places), *combinations(places, 2)):
        product = np.prod(pool[list(parts)], axis=0)
        usable = np.flatnonzero(np.isfinite(product) & (product != 0.0))
        if len(usable) < _USABLE:
            continue
        rows = _spread(usable[np.argsort(product[usable], kind="stable")], _FIRST)
        first, within, product = pool[:, rows], doubts[:, rows], product[rows]
        largest = np.argsort(-np.abs(product), kind="stable")[:_LARGEST]
        ratios, doubt = first[:, largest] / product[largest], within[:, largest] / np.abs(product[largest])
        factor, unsure = _medians(ratios), _medians(doubt)
        with np.errstate(invalid="ignore"):
            away = np.abs(first - factor[:, None] * product) > within + unsure[:, None] * np.abs(product)
        for k in np.flatnonzero((away.sum(axis=1) <= most) & np.isfinite(factor) & (factor != 0.0)):
            if k not in parts:
                yield int(k), parts


def _pool(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rows among which products are looked for, of shape (d, m), chosen by their values: their order says nothing."""
    rows = np.stack(columns, axis=1)
    keys = row_keys(np.where(np.isnan(rows), np.inf, rows))
    return np.ascontiguousarray(rows[_spread(np.argsort(keys, kind="stable"), _POOL)].T)


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many of the rows, from the first to the last one at even distances."""
    return np.asarray(rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.intp)])


def _medians(values: np.ndarray) -> np.ndarray:
    """Return the median of the known numbers of each row, NaN where none is known."""
    ordered, counts = np.sort(values, axis=1), (~np.isnan(values)).sum(axis=1)  # NaN comes last
    return np.asarray(ordered[np.arange(len(values)), np.maximum(counts - 1, 0) // 2])


def _proportion(
    names: Sequence[str], numbers: Mapping[str, np.ndarray], step: float, few: float
) -> tuple[int, Proportion] | None:
    """Return the product of columns with the first factor that nearly all rows keep, and its place; None without one."""
    result, parts = numbers[names[0]], [numbers[name] for name in names[1:]]
    product = np.prod(parts, axis=0)
    usable = np.flatnonzero(np.isfinite(result) & np.isfinite(product) & (product != 0.0))
    if len(usable) < _FEWEST:
        return None
    largest = usable[np.argsort(-np.abs(product[usable]), kind="stable")[: max(int(_SHARE * len(usable)), _LARGEST)]]
    ratio = float(np.median(result[largest] / product[largest]))
    for place, factor in enumerate(_factors(ratio)):
        found = Proportion(names[0], names[1], names[2] if len(names) > 2 else None, factor, step)
        broken = found.breaks(numbers)
        # Where the result is 0 up to its rounding, any factor does.
        kept = np.isfinite(result) & np.isfinite(product) & ~broken & (np.abs(result) > tolerance(result, step))
        if broken.sum() <= few * kept.sum() and len(np.unique(result[kept])) >= _FEWEST:
            return place, found
    return None


def _factors(ratio: float) -> list[float]:
    """Return numbers of few digits near a ratio and reciprocals of such, those of fewest digits first; 1 is no factor."""
    if ratio == 0.0 or not np.isfinite(ratio):
        return []
    found = [
        factor
        for digits in range(_DIGITS)
        for factor in (float(f"{ratio:.{digits}e}"), 1.0 / float(f"{1.0 / ratio:.{digits}e}"))
    ]
    return [factor for factor in found if abs(factor) != 1.0]
