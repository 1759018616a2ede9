"""The group of rows in which a column changed, if it changed in one group and not elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isopleth.core.inference import LEVEL, normal_quantile, permutation_pvalue
from isopleth.tables.schema import decode_cells

if TYPE_CHECKING:
    from isopleth.tasks.two_sample.problem import TwoSampleProblem

# Least share of the rows, and least rows of each sample, in a group and outside.
_LEAST_SHARE, _FEWEST = 0.05, 10
# Quantiles at which numbers are cut, words of a column, and groups that are compared.
_CUTS, _MOST_WORDS, _MOST = (0.25, 0.5, 0.75), 20, 200
# Most missing cells of a column, and quantiles beyond which its numbers are brought nearer.
_KNOWN, _FAR = 0.5, 0.005


@dataclass(frozen=True)
class ChangedGroup:
    """Group of rows in which a column changed more than in the others.

    Parameters
    ----------
    column : str
        The column that changed.
    group : str
        The group in words, a condition on another column.
    pvalue : float
        p-value of the largest difference between a group and the other rows, over all groups.
    before, after : float
        Medians of the column in the group, of X and Y; NaN for words.
    elsewhere : bool
        Whether a difference is shown in the other rows, too.
    """

    column: str
    group: str
    pvalue: float
    before: float
    after: float
    elsewhere: bool


def changed_group(problem: TwoSampleProblem, column: int, names: list[str], level: float) -> ChangedGroup | None:
    """Return the group in which a column changed, None if no group changed more than the others.

    The change of all rows together is taken off each sample, so that under permuted labels groups differ by chance only. The
    score of a group is its difference of means less that of the other rows, and the largest over all groups counts.
    """
    if problem.units.group != 1 or problem.strata is not None:
        return None
    rows, first = np.vstack(problem.tables), np.arange(sum(problem.sizes)) < problem.sizes[0]
    values = _values(problem, column, rows, first)
    found = [(text, mask) for text, mask in _groups(problem, column, rows, names) if _enough(mask, first)][:_MOST]
    if values is None or not found:
        return None
    left = np.where(first, values - values[first].mean(), values - values[~first].mean())
    features = np.column_stack([_within(left, mask) for _, mask in found])
    scores = _scores(problem, features, first)
    largest = scores.max(axis=1)
    p_value = permutation_pvalue(largest)
    if p_value > level:
        return None
    text, mask = found[int(np.argmax(scores[0]))]
    cell = problem.encoding.cells[column]
    known = mask & ~np.isnan(rows[:, cell.place]) & (cell.kind == "numeric")
    before, after = (
        float(np.median(rows[known & own, cell.place])) if (known & own).any() else np.nan for own in (first, ~first)
    )
    return ChangedGroup(names[column], text, p_value, before, after, _differs(values[~mask], first[~mask]))


def _within(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return values less their means in a group and outside, whose signed sums compare the changes of the two."""
    centred = np.where(mask, values - values[mask].mean(), values - values[~mask].mean())
    return np.asarray(centred * np.where(mask, 1.0 / mask.sum(), -1.0 / (~mask).sum()))


def _scores(problem: TwoSampleProblem, features: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return squared contrasts of features of the rows under the observed labels and permuted ones, (1 + B, k)."""
    rng = np.random.default_rng([problem.seed, 7])
    centred = features - features.mean(axis=0)
    centred /= np.maximum(centred.std(axis=0), np.finfo(np.float64).tiny)
    # Rows in an order of their own: the answer does not depend on that of the samples.
    place = np.argsort(problem.samples.place, kind="stable")
    observed = first[place]
    labels = np.stack([observed, *(rng.permutation(observed) for _ in range(problem.permutations))])
    return np.asarray((labels.astype(np.float64) @ centred[place]) ** 2)


def _values(problem: TwoSampleProblem, column: int, rows: np.ndarray, first: np.ndarray) -> np.ndarray | None:
    """Return what is compared of a column: its numbers without far ones, or whether a row has the word that changed most."""
    cell = problem.encoding.cells[column]
    cells = rows[:, cell.place]
    missing = np.isnan(cells)
    if missing.mean() > _KNOWN:
        return None
    if cell.kind == "categorical":
        codes = np.unique(cells[~missing])[: _MOST_WORDS * 5]
        shares = [(cells[first] == code).mean() - (cells[~first] == code).mean() for code in codes]
        return np.asarray(cells == codes[int(np.argmax(np.abs(shares)))], dtype=np.float64)
    # In their own units: ranks would turn a change of all rows into a larger one where most rows are.
    low, high = np.nanquantile(cells, [_FAR, 1.0 - _FAR])
    return np.asarray(np.where(missing, np.nanmedian(cells), np.clip(cells, low, high)))


def _groups(
    problem: TwoSampleProblem, column: int, rows: np.ndarray, names: list[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield groups of rows by the words of other columns, and by the quartiles of their numbers."""
    for j, (cell, kind) in enumerate(zip(problem.encoding.cells, problem.encoding.kinds, strict=True)):
        cells = rows[:, cell.place]
        if j == column or cell.kind == "time":
            continue
        if cell.kind == "categorical":
            codes, counts = np.unique(cells[~np.isnan(cells)], return_counts=True)
            for code in codes[np.argsort(-counts, kind="stable")][:_MOST_WORDS]:
                yield f"{names[j]} {decode_cells(kind, np.array([code]))[0]}", cells == code
            continue
        for cut in np.unique(np.nanquantile(cells, _CUTS)):
            yield f"{names[j]} up to {cut:.4g}", cells <= cut
            yield f"{names[j]} above {cut:.4g}", cells > cut


def _enough(mask: np.ndarray, first: np.ndarray) -> bool:
    counts = [int((side & own).sum()) for side in (mask, ~mask) for own in (first, ~first)]
    return min(counts) >= _FEWEST and _LEAST_SHARE <= mask.mean() <= 1.0 - _LEAST_SHARE


def _differs(values: np.ndarray, first: np.ndarray) -> bool:
    """Tell whether the means of two parts differ at the level of sentences."""
    x, y = values[first], values[~first]
    error = np.sqrt(x.var() / len(x) + y.var() / len(y))
    return bool(abs(x.mean() - y.mean()) > normal_quantile(1.0 - LEVEL) * error)
