r"""Series given other columns at the same step: counts as rates per exposure, other columns as what a regression leaves.

A count of errors follows the number of requests, and a latency the load. With blocks :math:`b` of consecutive steps, each with a
level of its own so that changes do not pass for relations, the models are

.. math:: E\,y_t = r_b \prod_k g_{tk}^{\beta_k} \quad \text{(counts)}, \qquad E\,y_t = a_b + f(g_t) \quad \text{(numbers)}.

Counts given one column are proportional to it (:math:`\beta = 1`, an exposure) unless they clearly are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopleth.core.arrays import to_numpy
from isopleth.core.errors import InputError, listed, meant
from isopleth.tables.given import Given
from isopleth.tasks.changes.preparation import TO_SIGMA
from isopleth.tasks.running_totals import increments, is_running_total

# Fewest steps of a block, and most blocks. A day of minutes or of hours, in which a load rises and falls, is in few of them.
_STEPS_A_BLOCK, _MOST_BLOCKS = 40, 30
# Robust deviations at which residuals are clipped, so that incidents have no part in a relation, and rounds of this.
_WILD, _ROUNDS = 3.5, 8
# Knots of the bends of a relation, as shares of the ranks, and fewest steps for these.
_KNOTS, _STEPS_FOR_KNOTS = (0.25, 0.5, 0.75), 400
# Least eigenvalue of the normal equations, as a share of the largest: columns that follow from others add nothing.
_COLLINEAR = 1e-9
# Least deviation of an exponent from 1 that matters, in standard errors and by itself, and fewest blocks that give these.
_CLEAR, _MATTERS, _FEW_BLOCKS = 4.0, 0.1, 5


@dataclass(frozen=True, eq=False)
class GivenLeft:
    """Rest of a column given others."""

    sought: np.ndarray  # (n,): values in which changes are sought, of about equal scatter
    told: np.ndarray  # (n,): rates, or values at the usual values of the given columns, in the units of the column
    kind: str  # "rate" for a count in proportion to one column, else "residual"


@dataclass(frozen=True, eq=False)
class GivenColumns:
    """Columns that are given, one row a step."""

    values: np.ndarray  # (T, k); NaN where a value is missing
    names: tuple[str, ...]

    def left_of(self, columns: np.ndarray, names: Sequence[str]) -> list[GivenLeft]:
        """Return what they leave of each column (T, d); running totals are given by their increments."""
        given = np.column_stack([increments(g) if is_running_total(g) else g for g in self.values.T])
        return [self._left(column, given, str(name)) for column, name in zip(columns.T, names, strict=True)]

    def _left(self, column: np.ndarray, given: np.ndarray, name: str) -> GivenLeft:
        left = left_of(column, given)
        lost = int(np.sum(np.isnan(left.sought) & ~np.isnan(column)))
        if 2 * int(np.sum(~np.isnan(left.sought))) < len(column) and lost:
            text = f"{listed(list(self.names))} ({{parameter}}) is missing or 0 at {lost} steps, at which {name} has no rate"
            hint = "give columns that are above 0 at half of the steps at least"
            raise InputError(text, parameter="given", hint=hint)
        return left


def split_given(series: Any, given: Any) -> tuple[Any, GivenColumns | None]:
    """Return a series without the columns that are given, and these: names of columns of a frame, or their values."""
    if given is None:
        return series, None
    names = [given] if isinstance(given, str) else list(given) if _are_names(given) else None
    if names is None:
        found = _numbers(given)
        if len(found.values) != len(series):
            text = (
                f"{{parameter}} has {len(found.values)} rows, and the series {len(series)}; expected one for each step."
            )
            raise InputError(text, parameter="given")
        return series, found
    is_frame = hasattr(series, "columns")
    table = Given.of(series, "series") if is_frame else None
    there = [] if table is None else list(table.names or ())
    for name in names:
        if name not in there:
            has = f"it has {listed(there)}" if is_frame else "it is no data frame"
            text = f"series has no column {name!r} ({{parameter}}){meant([name], there)}; {has}."
            raise InputError(text, parameter="given", column=name)
    rest = [name for name in there if name not in names]
    assert table is not None
    if not rest:
        raise InputError("series has no column besides those that are given; add the values.", parameter="given")
    return table.select(rest).table, _numbers(table.select(names).table)


def _are_names(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and bool(given) and all(isinstance(name, str) for name in given)


def _numbers(given: Any) -> GivenColumns:
    """Return given columns as numbers; refuse words and infinite values."""
    table = Given.of(given, "given") if hasattr(given, "columns") else None
    names = (
        tuple(map(str, table.names or ()))
        if table is not None
        else (getattr(given, "name", None) or "the given column",)
    )
    try:
        cells = to_numpy(given) if table is None or table.frame is None else table.frame.to_numpy()
        values = np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{listed(list(names))} ({{parameter}}) holds what are no numbers",
            parameter="given",
            hint="give columns of numbers",
        ) from None
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.shape[1]:
        raise InputError(f"given has the shape {values.shape}; expected (T,) or (T, k).", parameter="given")
    if np.isinf(values).any():
        raise InputError(
            f"{listed(list(names))} ({{parameter}}) holds infinite values; expected numbers or NaN.", parameter="given"
        )
    if len(names) != values.shape[1]:
        names = tuple(f"given column {k}" for k in range(values.shape[1]))
    return GivenColumns(values, names)


def follows(count: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether a count clearly rises with a larger one, and in proportion to it, as with an exposure."""
    known = ~np.isnan(count) & (other > 0.0)
    if 2 * known.sum() < len(count) or not is_count(count) or not is_count(other):
        return False
    y, logs = count[known], np.log(other[known])[:, None]
    block = _blocks(len(y))
    centred = logs[:, 0] - _means(logs, block)[block, 0]
    scores = np.bincount(block, centred * (y - _means(y[:, None], block)[block, 0]))
    error = float(np.sqrt(np.sum((scores - scores.mean()) ** 2)))
    return bool(
        len(scores) >= _FEW_BLOCKS
        and y.mean() < other[known].mean()
        and scores.sum() > _CLEAR * error
        and _exponents(y, logs, block).tolist() == [1.0]
    )


def is_count(column: np.ndarray) -> bool:
    """Tell whether the known values of a column are whole numbers from 0 on."""
    known = column[~np.isnan(column)]
    return bool(len(known) and known.min() >= 0.0 and (known == np.round(known)).all() and known.max() > 0.0)


def left_of(column: np.ndarray, given: np.ndarray) -> GivenLeft:
    """Return what the `given` columns (n, k) leave of a column, NaN where one of them is missing."""
    if is_count(column) and not (given < 0.0).any():
        return _rate(column, given)
    known = ~np.isnan(column) & ~np.isnan(given).any(axis=1)
    left = np.full(len(column), np.nan)
    if known.any():
        left[known] = column[known] - _along(column[known], _bases(given[known]))
    return GivenLeft(left, left, "residual")


def _blocks(count: int) -> np.ndarray:
    """Return the number of the block of each step."""
    return np.arange(count) * min(max(count // _STEPS_A_BLOCK, 1), _MOST_BLOCKS) // count


def _bases(given: np.ndarray) -> np.ndarray:
    """Return the given columns, and bends of each at the knots, less their values at the medians; of shape (n, p)."""
    out = []
    for g in given.T:
        knots = np.quantile(g, _KNOTS) if len(g) >= _STEPS_FOR_KNOTS else np.empty(0)
        middle = float(np.median(g))
        out += [g - middle, *(np.maximum(g - knot, 0.0) - max(middle - knot, 0.0) for knot in knots)]
    return np.column_stack(out)


def _along(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the regression of y on the bases x with a level for each block, robust against values far off."""
    block = _blocks(len(y))
    centred = x - _means(x, block)[block]
    inverse = _pseudo_inverse(centred.T @ centred)
    fit, clipped = np.zeros(len(y)), y
    for _ in range(_ROUNDS):
        slopes = inverse @ (centred.T @ clipped)
        fit = x @ slopes
        level = _medians(y - fit, block)[block]
        off = y - fit - level
        most = _WILD * TO_SIGMA * float(np.median(np.abs(off)))
        clipped = fit + level + np.clip(off, -most, most)
    return fit


def _pseudo_inverse(gram: np.ndarray) -> np.ndarray:
    return np.linalg.pinv(gram, rcond=_COLLINEAR, hermitian=True)


def _means(rows: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return the means of the rows of each block."""
    count = np.bincount(block)
    return np.column_stack([np.bincount(block, column) for column in rows.T]) / count[:, None]


def _medians(values: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return the median of each block."""
    return np.array([np.median(part) for part in np.split(values, np.flatnonzero(np.diff(block)) + 1)])


def _rate(column: np.ndarray, given: np.ndarray) -> GivenLeft:
    """Return a count given columns, in deviations of a negative binomial law about a constant rate, and the rate."""
    known = ~np.isnan(column) & (given > 0.0).all(axis=1)  # without an exposure there is no rate
    if not known.any():
        nothing = np.full(len(column), np.nan)
        return GivenLeft(nothing, nothing, "rate")
    y, logs = column[known], np.log(given[known])
    block = _blocks(len(y))
    exponents = _exponents(y, logs, block)
    power = logs @ exponents
    kind = "rate" if exponents.tolist() == [1.0] else "residual"
    exposure = np.exp(power - (0.0 if kind == "rate" else np.median(power)))
    rates = np.bincount(block, y) / np.bincount(block, exposure)
    expected = (float(np.median(rates)) or float(y.sum() / exposure.sum())) * exposure
    variance = expected + _dispersion(y, rates[block] * exposure, block) * expected**2
    told, sought = np.full(len(column), np.nan), np.full(len(column), np.nan)
    told[known], sought[known] = y / exposure, (y - expected) / np.sqrt(variance)
    return GivenLeft(sought, told, kind)


def _dispersion(y: np.ndarray, mean: np.ndarray, block: np.ndarray) -> float:
    """Return how much the variance exceeds that of a Poisson law, in units of squared means: the median of the blocks."""
    excess, squares = np.bincount(block, (y - mean) ** 2 - mean), np.bincount(block, mean**2)
    found = excess[squares > 0.0] / squares[squares > 0.0]
    return max(float(np.median(found)), 0.0) if len(found) else 0.0


def _exponents(y: np.ndarray, logs: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return the exponents of given columns by quasi-likelihood, with a rate for each block; of one column 1 where that fits."""
    single = logs.shape[1] == 1
    exponents, clipped = np.full(logs.shape[1], float(single)), y
    for _ in range(_ROUNDS):
        power = logs @ exponents
        weights = np.exp(power - power.max())
        total = np.bincount(block, weights)
        mean = (np.bincount(block, clipped) / total)[block] * weights
        middle = np.column_stack([np.bincount(block, weights * x) for x in logs.T]) / total[:, None]
        centred = logs - middle[block]
        scores = centred * (clipped - mean)[:, None]
        inverse = _pseudo_inverse((centred * mean[:, None]).T @ centred)
        step = inverse @ scores.sum(axis=0)
        if single and exponents[0] == 1.0 and not _is_clear(step[0], inverse[0, 0] * np.bincount(block, scores[:, 0])):
            break
        exponents = exponents + step
        unit = np.sqrt(np.maximum(mean, 1.0))
        most = _WILD * unit * max(1.0, TO_SIGMA * float(np.median(np.abs(y - mean) / unit)))
        clipped = np.clip(y, mean - most, mean + most)
    return exponents


def _is_clear(deviation: float, of_blocks: np.ndarray) -> bool:
    """Tell whether a deviation of an exponent matters, and is beyond the error that its parts from blocks show."""
    if len(of_blocks) < _FEW_BLOCKS:
        return False
    error = float(np.sqrt(np.sum((of_blocks - of_blocks.mean()) ** 2)))
    return abs(deviation) > max(_MATTERS, _CLEAR * error)
