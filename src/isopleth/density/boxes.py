"""Probability of a box under a density of the columns of a table: limits of numbers and times, and sets of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from isopleth.core.budget import DEFAULT_BUDGET
from isopleth.core.errors import InputError, quoted
from isopleth.core.interval_cells import IntervalCells
from isopleth.tables.coded_cells import encode_cell
from isopleth.tables.kinds import Column

# Most columns with limits that are integrated along; of more, rows are drawn.
_MOST_INTEGRATED = 2
_DRAWS, _SEED = 50_000, 0
# Most combinations of words whose probabilities are added up.
_MOST_WORDS = 10_000


class BoxProbability(NamedTuple):
    """Probability of a box; `standard_error` is 0 where it was integrated, and that of draws otherwise."""

    probability: float
    standard_error: float


def box_probability(density: Any, box: Any) -> BoxProbability:
    """Return the probability of a box of some columns of a :class:`TableDensity`."""
    if not isinstance(box, Mapping) or not box:
        text = f"{{parameter}} = {box!r}: expected a dict from columns to pairs of limits, or to words."
        raise InputError(text, parameter="box")
    places = [density._place(name, "box") for name in box]
    if len(set(places)) < len(places):
        raise InputError("{parameter} names a column twice, by name and by number.", parameter="box")
    limits: dict[Any, tuple[float, float]] = {}
    words: dict[Any, list[float]] = {}
    at = density.coordinates
    for place, asked in zip(places, box.values(), strict=True):
        column, j = density.columns.columns[place], int(density._encoded_places([place])[0])
        if column.kind == "categorical":
            words[column.name] = _codes(column, asked, density)
            continue
        low, high = _ends(column, asked, density)
        varies = bool(at.frame.keep[j])
        if low >= high if varies else not low <= at.constants[j] <= high:
            return BoxProbability(0.0, 0.0)
        if varies and (low > -np.inf or high < np.inf):
            limits[column.name] = low, high
    if not limits and not words:
        return BoxProbability(1.0, 0.0)
    part = density.marginal([*limits, *words])
    where = {name: int(part._encoded_places([part._place(name, "box")])[0]) for name in [*limits, *words]}
    return _of_part(
        part,
        {where[name]: ends for name, ends in limits.items()},
        {where[name]: codes for name, codes in words.items()},
    )


def _of_part(density: Any, limits: dict[int, tuple[float, float]], words: dict[int, list[float]]) -> BoxProbability:
    """Return the probability of limits and words of all columns of a density, by the places of encoded columns."""
    if len(limits) <= _MOST_INTEGRATED and density.rows.fit_rows is not None:
        found = sum(_integrated(density, limits, chosen) for chosen in _combinations(words))
        return BoxProbability(min(max(float(found), 0.0), 1.0), 0.0)
    return _of_draws(density, limits, words)


def _ends(column: Column, asked: Any, density: Any) -> tuple[float, float]:
    """Return the limits of a column of numbers or times; None is no limit."""
    if isinstance(asked, str) or np.shape(np.asarray(asked, dtype=object)) != (2,):
        text = f"{{parameter}}: {{column}} holds numbers or times, and {asked!r} is no pair of limits"
        hint = "give the lowest and the highest value, as in (30, 40); None for no limit"
        raise InputError(text, parameter="box", column=column.name, hint=hint)
    low, high = asked
    numbers = [
        none if end is None else encode_cell(column, end, density.columns.missing)
        for end, none in ((low, -np.inf), (high, np.inf))
    ]
    if np.isnan(numbers).any():
        text = "{parameter}: a limit of {column} is missing; give None for no limit."
        raise InputError(text, parameter="box", column=column.name)
    return numbers[0], numbers[1]


def _codes(column: Column, asked: Any, density: Any) -> list[float]:
    """Return the codes of the words of a box: one word, or several."""
    several = isinstance(asked, (set, frozenset, list, tuple, np.ndarray))
    every = list(asked) if several else [asked]
    codes = [encode_cell(column, word, density.columns.missing) for word in every]
    if not every or any(np.isnan(code) or code >= len(column.levels) for code in codes):
        text = "{parameter} has no word for {column}, or one that no training row has"
        hint = f"expected some of {quoted([str(word) for word in column.levels])}"
        raise InputError(text, parameter="box", column=column.name, hint=hint)
    return sorted(set(codes))


def _combinations(words: dict[int, list[float]]) -> Iterator[dict[int, float]]:
    """Yield the combinations of the words of a box."""
    count = int(np.prod([len(codes) for codes in words.values()], dtype=float))
    if count > _MOST_WORDS:
        text = (
            f"{{parameter}}: its words make {count:,} combinations, more than {_MOST_WORDS:,}; leave out columns that may have "
            "any word."
        )
        raise InputError(text, parameter="box")
    for chosen in product(*words.values()):
        yield dict(zip(words, chosen, strict=True))


def _integrated(density: Any, limits: dict[int, tuple[float, float]], words: dict[int, float]) -> float:
    """Return the probability of limits and one word in each other column."""
    row = density._nothing()
    row[0, list(words)] = list(words.values())
    columns = np.array(sorted(limits), dtype=np.intp)
    if not len(columns):
        return float(np.exp(density.log_density(row)[0])) if words else 1.0
    low, high = np.array([[limits[j] for j in columns.tolist()]]).transpose(2, 0, 1)
    return float(np.exp(density.log_density(row, IntervalCells(columns, low, high))[0]))


def _of_draws(density: Any, limits: dict[int, tuple[float, float]], words: dict[int, list[float]]) -> BoxProbability:
    """Return the share of drawn rows in the box."""
    rows = density._draw(_DRAWS, np.random.default_rng(_SEED), DEFAULT_BUDGET)
    inside = np.ones(len(rows), dtype=bool)
    for j, (low, high) in limits.items():
        inside &= (rows[:, j] >= low) & (rows[:, j] <= high)
    for j, codes in words.items():
        inside &= np.isin(rows[:, j], codes)
    share = float(inside.mean())
    # Half a row beside none and all of them: an error of 0 would be too sure.
    bounded = min(max(share, 0.5 / _DRAWS), 1.0 - 0.5 / _DRAWS)
    return BoxProbability(share, float(np.sqrt(bounded * (1.0 - bounded) / _DRAWS)))
