"""The group of rows in which a column changed, if it changed in one group more than elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import ks_2samp

from isopleth.core.laws import normal_scores_of_counts
from isopleth.core.p_values import LEVEL, adjusted_p_values
from isopleth.core.threads import slices
from isopleth.results.text import pvalue_text
from isopleth.tables.coded_cells import decode_cells, displayed_cells
from isopleth.tasks.two_sample.permutation import moment_scores, of_length_one

if TYPE_CHECKING:
    from isopleth.tasks.two_sample.problem import TwoSampleProblem

# Least share of the rows, and least rows of each sample, in a group and outside.
_LEAST_SHARE, _FEWEST = 0.05, 10
# Most quantiles at which numbers are cut, and words of a column that are groups.
_CUTS, _WORDS = 9, 20
# Rows of each sample that are used at least, and products of labels, rows and splits up to which more are.
_ROWS, _PRODUCTS = 2000, 3e9
# Most cells of label vectors that are held as numbers at once.
_AT_ONCE = 4e6
# Least share of known cells in a column.
_KNOWN = 0.5
# By so much larger is the score of several words together, for them to be named in the place of one.
_CLEARER = 4.0
# Steps of proportional fitting.
_FITTING = 50
# Part of the square that a column does not explain, below which squares tell nothing new.
_LEAST_OWN = 1e-6
# Least standard deviation of normal scores in a group: scores of equal cells differ a little between samples, by chance.
_LEAST_SPREAD = 0.25


@dataclass(frozen=True, eq=False)
class ChangedGroup:
    """Group of rows in which a column changed more than in the others.

    Parameters
    ----------
    column : str
        The column that changed.
    group : str
        The group in words, a condition on another column.
    pvalue : float
        p-value of the largest difference between a group and the other rows, adjusted for the columns that were searched.
    change : str
        "higher", "lower", "more spread", "less spread", or that a word is more or less frequent.
    before, after : float
        Medians of the column in the group, of X and Y, or means if the medians are equal; quartile distances if its spread
        changed, shares of a word.
    shown : tuple of two str
        `before` and `after` as they are written.
    elsewhere : bool
        Whether a difference is shown in the other rows, too.
    """

    column: str
    group: str
    pvalue: float
    change: str
    before: float
    after: float
    shown: tuple[str, str]
    elsewhere: bool

    def __str__(self) -> str:
        about = f"in rows with {self.group} ({self.shown[0]} -> {self.shown[1]})"
        if self.elsewhere:
            return f"{self.column} is {self.change} {about}; elsewhere it changed less"
        return f"{self.column} is {self.change} {about}; elsewhere no difference is shown"


@dataclass(frozen=True, eq=False)
class _RowSplit:
    """Rows in a group and those outside, with words for both."""

    column: int
    inside: np.ndarray  # (n,): mask
    names: tuple[str, str]  # of the group and of the other rows
    word: str = ""  # the word, if the group has one


@dataclass(frozen=True, eq=False)
class _LabelledRows:
    """Rows of both samples, drawn from long ones, and label vectors."""

    cells: np.ndarray  # (n, columns of the table)
    first: np.ndarray  # (n,): whether a row is of X
    bits: np.ndarray  # (1 + B, n / 8): label vectors, first of all the observed one, eight rows a byte

    @classmethod
    def of(cls, problem: TwoSampleProblem, most: int) -> _LabelledRows:
        """Draw at most `most` rows of each sample, by what they hold and not by their order."""
        places = [problem.drawn(sample, most, 7) for sample in (0, 1)]
        cells = np.vstack([rows[np.sort(place)] for rows, place in zip(problem.tables, places, strict=True)])
        first = np.arange(len(cells)) < len(places[0])
        rng = np.random.default_rng([problem.seed, 7])
        keys = np.concatenate([np.sort(places[0]), problem.sizes[0] + np.sort(places[1])])
        order = np.argsort(problem.samples.place[keys], kind="stable")
        observed = first[order]
        bits = np.empty((1 + problem.permutations, -(-len(cells) // 8)), dtype=np.uint8)
        bits[0] = np.packbits(first)
        for line in bits[1:]:
            labels = np.empty(len(cells), dtype=bool)
            labels[order] = rng.permutation(observed)
            line[:] = np.packbits(labels)
        return cls(cells, first, bits)

    def sums(self, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the sums of values of known rows over the rows of X under each label vector, (1 + B, k)."""
        out = np.empty((len(self.bits), values.shape[1]))
        for some in slices(len(self.bits), max(1.0, _AT_ONCE / len(self.cells))):
            labels = np.unpackbits(self.bits[some], axis=1, count=len(self.cells))[:, known]
            out[some] = labels.astype(np.float64) @ values
        return out


@dataclass(frozen=True)
class GroupsSought:
    """Answer to the question in which rows of a column's groups other columns changed more than elsewhere.

    Parameters
    ----------
    by : str
        The column whose words, or quantiles, are the groups.
    found : tuple of ChangedGroup
        The clearest group of each column that was searched, the surest first. p-values are adjusted for the number of groups
        and of columns that were looked at.
    """

    by: str
    found: tuple[ChangedGroup, ...]

    def sentences(self) -> list[str]:
        """Return the groups that are shown, else the surest one and that it is not shown."""
        shown = [f"{each}; p {pvalue_text(each.pvalue)}." for each in self.found if each.pvalue <= LEVEL]
        if shown:
            return shown
        if not self.found:
            return [f"The groups of {self.by} have too few rows to be compared."]
        columns = "the column" if len(self.found) == 1 else f"{len(self.found)} columns"
        first, adjusted = self.found[0], f"adjusted for {columns} and their groups"
        return [
            f"No column is shown to have changed more in some groups of {self.by} than in others: the least p-value, {adjusted}, "
            f"is {first.pvalue:.2g}, of {first.column} in rows with {first.group}. With a target its shift in each group is "
            "estimated, which finds smaller ones."
        ]


def changed_groups(
    problem: TwoSampleProblem,
    columns: list[int],
    names: list[str],
    moved: list[int],
    by: int | None = None,
    level: float = LEVEL,
) -> list[ChangedGroup]:
    """Return the groups, of one column if it is named, in which some columns changed more than elsewhere, the clearest first.

    Columns of numbers that `moved` by themselves form no groups: rows above a quantile are not the same rows in both samples.

    The score of a split is its difference of mean and spread between samples, in the group less outside. A change that is alike
    everywhere, as an amount, as a factor or in units of the spread of each group, leaves nothing. The largest score over all
    splits counts, and p-values are adjusted for the number of columns by step-down maxima.
    """
    if problem.units.group == 0 or problem.strata is not None or len(problem.blocks) < 2:
        return []
    columns, most, count = _within_room(problem, columns, moved, range(len(names)) if by is None else [by])
    rows = _LabelledRows.of(problem, count)
    found = []
    for column in columns:
        splits = list(_splits(problem, rows, column, names, most))
        known = _known(problem, rows, column)
        splits = [split for split in splits if _enough(split.inside[known], rows.first[known])]
        if splits and known.mean() >= _KNOWN:
            found.append((column, splits, _scores(problem, rows, column, splits)))
    if not found:
        return []
    statistics = moment_scores(np.stack([scores.max(axis=1) for _, _, scores in found])).T
    p_values, out, mirrored = adjusted_p_values(statistics), [], set()
    # Where two columns go together otherwise than before, each changed in groups of the other one, and one sentence is enough:
    # of a column that moved by itself, or of numbers in rows with a word.
    words = [problem.encoding.cells[column].kind == "categorical" for column, _, _ in found]
    still = [column not in moved for column, _, _ in found]
    for place in np.lexsort([-statistics[0], p_values, words, still]).tolist():
        column, splits, scores = found[place]
        split = splits[int(np.argmax(scores[0]))]
        if p_values[place] <= level and (column, split.column) not in mirrored:
            mirrored.add((split.column, column))
            split = _joined(problem, rows, column, split, splits)
            out.append(_described(problem, rows, column, names, split, p_values[place]))
    return out


def _within_room(
    problem: TwoSampleProblem, columns: list[int], moved: list[int], by: Sequence[int]
) -> tuple[list[int], dict[int, int], int]:
    """Return the columns that there is room for, by how many splits of each column `by`, and how many rows of each sample.

    More rows show smaller changes, and more splits take longer: splits come first, as long as the fewest rows are left.
    """
    room = _PRODUCTS / (1 + problem.permutations)
    columns = columns[: max(1, int(room / (2 * _ROWS)))]
    others = len(by) if len(by) == 1 else len(by) - 1
    each = max(1, int(room / (2 * _ROWS)) // (len(columns) * others))
    most = {j: _most_splits(problem, j, moved, each) for j in by}
    return columns, most, max(_ROWS, int(room / (2 * len(columns) * max(1, sum(most.values())))))


def _known(problem: TwoSampleProblem, rows: _LabelledRows, column: int) -> np.ndarray:
    return ~np.isnan(rows.cells[:, problem.encoding.cells[column].place])


def _most_splits(problem: TwoSampleProblem, column: int, moved: list[int], room: int) -> int:
    """Return by how many words of a column, or quantiles of numbers that did not move, rows are split."""
    cell, kind = problem.encoding.cells[column], problem.encoding.kinds[column]
    if cell.kind == "categorical":
        return min(room, _WORDS, len(kind.levels))
    return 0 if cell.kind == "time" or column in moved else min(room, _CUTS)


def _splits(
    problem: TwoSampleProblem, rows: _LabelledRows, column: int, names: list[str], most: dict[int, int]
) -> Iterator[_RowSplit]:
    """Yield splits by the words and the quantiles of other columns, at most so many of each."""
    for j, count in most.items():
        cell, kind, name = problem.encoding.cells[j], problem.encoding.kinds[j], names[j]
        cells = rows.cells[:, cell.place]
        known = ~np.isnan(cells)
        if j == column or not count or not known.any():
            continue
        missing = "" if known.all() else " or missing"  # rows without the cell stand on the other side
        if cell.kind == "categorical":
            codes, counts = np.unique(cells[known], return_counts=True)
            for code in codes[np.argsort(-counts, kind="stable")][:count]:
                word = str(decode_cells(kind, np.array([code]))[0])
                others = [str(decode_cells(kind, np.array([other]))[0]) for other in codes if other != code]
                outside = f"{name} {others[0]}{missing}" if len(others) == 1 else f"{name} other than {word}{missing}"
                yield _RowSplit(j, cells == code, (f"{name} {word}", outside), word)
            continue
        for cut in np.unique(np.nanquantile(cells, np.arange(1, count + 1) / (count + 1))):
            yield _RowSplit(j, cells <= cut, (f"{name} up to {cut:.4g}", f"{name} above {cut:.4g}{missing}"))


def _enough(mask: np.ndarray, first: np.ndarray) -> bool:
    counts = [int((side & own).sum()) for side in (mask, ~mask) for own in (first, ~first)]
    return min(counts) >= _FEWEST and _LEAST_SHARE <= mask.mean() <= 1.0 - _LEAST_SHARE


def _values(problem: TwoSampleProblem, rows: _LabelledRows, column: int) -> tuple[np.ndarray, str]:
    """Return what is compared of a column: its numbers, or whether a row has the word that changed most, and this word."""
    cell, kind = problem.encoding.cells[column], problem.encoding.kinds[column]
    cells = rows.cells[:, cell.place]
    if cell.kind != "categorical":
        return cells, ""
    codes = np.unique(cells[~np.isnan(cells)])
    shares = [(cells[rows.first] == code).mean() - (cells[~rows.first] == code).mean() for code in codes]
    code = codes[int(np.argmax(np.abs(shares)))]
    return (cells == code).astype(np.float64), str(decode_cells(kind, np.array([code]))[0])


def _scores(problem: TwoSampleProblem, rows: _LabelledRows, column: int, splits: list[_RowSplit]) -> np.ndarray:
    """Return how much the change of a column differs between a group and the other rows, by label vector and split."""
    values, word = _values(problem, rows, column)
    known = _known(problem, rows, column)
    inside = np.column_stack([split.inside for split in splits])[known]
    if word:
        features = _compared(_without_common_odds(values[known], inside, rows.first[known]), inside)
        return np.asarray(rows.sums(known, features) ** 2)
    by, out = np.array([split.column for split in splits]), np.empty((len(rows.bits), len(splits)))
    for of_column in (by == each for each in np.unique(by)):
        out[:, of_column] = _number_scores(values[known], inside[:, of_column], lambda each: rows.sums(known, each))
    return out


def _number_scores(values: np.ndarray, inside: np.ndarray, sums: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return chi-squared of how much more numbers changed in a group than in the others, by label vector and split of a column.

    Changes of mean and spread are those of normal scores of ranks within each group, so that levels and spreads of other groups
    hide nothing. A change is alike if groups moved by one share of their spreads, by one amount or by one factor: the least of
    the three contrasts counts. Groups outside weigh by how exactly each of them predicts the change inside.
    """
    member, inside = _groups_of(inside)
    scores = [member * each[:, None] for each in _scores_in_groups(values, member)]
    of_one, *both = np.split(sums(np.hstack([member, *scores])), 3, axis=1)
    weight = of_one * (1.0 - of_one / member.sum(axis=0))  # reciprocal variance of a difference of means
    per = np.maximum(weight, 1.0)  # groups that lack a sample have no weight, and no difference
    moved, wider = (each / per for each in both)
    contrasts = [_contrast(moved, weight, unit, inside) ** 2 for unit in _units(values, member)]
    return np.asarray(np.minimum.reduce(contrasts) + _contrast(wider, weight, np.ones(len(inside)), inside) ** 2)


def _groups_of(inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which row is of which of the groups that splits make together, and which group is inside which split."""
    groups, group = np.unique(inside, axis=0, return_inverse=True)
    return np.eye(len(groups))[group.ravel()], groups


def _scores_in_groups(values: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return normal scores of ranks within groups, and what these do not explain of their squares, both of variance 1."""
    scores, squares = np.zeros(len(values)), np.zeros(len(values))
    for own in member.T > 0.0:
        _, place, counts = np.unique(values[own], return_inverse=True, return_counts=True)
        each = _standardised(normal_scores_of_counts(counts)[place], _LEAST_SPREAD)
        square = each**2 - np.mean(each**2)
        scores[own], squares[own] = each, _standardised(square - np.mean(square * each) * each, _LEAST_OWN)
    return scores, squares


def _standardised(values: np.ndarray, least: float) -> np.ndarray:
    centred = values - values.mean()
    return np.asarray(centred / max(float(centred.std()), least))


def _units(values: np.ndarray, member: np.ndarray) -> list[np.ndarray]:
    """Return by how much a score in each group changes a value: by one, by its spread, and, of positive numbers, by a factor."""
    levels = np.array([np.median(values[own]) for own in member.T > 0.0])
    spreads = (np.abs(values - member @ levels) @ member) / member.sum(axis=0)
    typical = float(np.abs(values - member @ levels).mean())
    if typical == 0.0:  # each group is one value
        return [np.ones(len(levels))]
    # Groups that hardly vary say little of how others change: zero times a factor is zero.
    spreads = np.maximum(spreads / typical, _LEAST_SPREAD)
    return [np.ones(len(levels)), spreads, *([spreads / levels] if values.min() > 0.0 else [])]


def _contrast(moved: np.ndarray, weight: np.ndarray, unit: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return the changes of the groups inside less those outside over their standard errors, by label vector and split."""
    precision = weight / unit**2
    sides = [(precision @ side, (precision * unit * moved) @ side) for side in (inside, ~inside)]
    means = [sums / np.maximum(total, np.finfo(np.float64).tiny) for total, sums in sides]
    errors = sum(1.0 / np.maximum(total, np.finfo(np.float64).tiny) for total, _ in sides)
    return np.asarray((means[0] - means[1]) / np.sqrt(errors))


def _without_common_odds(values: np.ndarray, inside: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return whether rows have a word, less its share if the odds changed by one factor in all rows, one column a split."""
    groups = [inside & own[:, None] for own in (first, ~first)] + [~inside & own[:, None] for own in (first, ~first)]
    counts = np.array([group.sum(axis=0) for group in groups], dtype=np.float64).reshape(2, 2, -1)
    with_word = np.array([values @ group for group in groups]).reshape(2, 2, -1)
    # Iterative proportional fitting: the rows of samples and of groups with the word, and without it, are those observed.
    tables = np.stack([with_word, counts - with_word])
    margins, fitted = [tables.sum(axis=axis, keepdims=True) for axis in (1, 2)], np.ones_like(tables)
    tiny = np.finfo(np.float64).tiny
    for _ in range(_FITTING):
        for axis, margin in zip((1, 2), margins, strict=True):
            fitted *= margin / np.maximum(fitted.sum(axis=axis, keepdims=True), tiny)
        fitted *= counts / np.maximum(fitted.sum(axis=0), tiny)
    shares = fitted[0] / counts
    expected = sum(np.where(group, share, 0.0) for group, share in zip(groups, shares.reshape(4, -1), strict=True))
    return np.asarray(values[:, None] - expected)


def _compared(values: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return features of length 1 whose signed sums are the change in a group less that outside."""
    count = inside.sum(axis=0)
    means = [(values * mask).sum(axis=0) / mask.sum(axis=0) for mask in (inside, ~inside)]
    out = np.where(inside, (values - means[0]) / count, (means[1] - values) / (len(inside) - count))
    return of_length_one(out)


def _joined(
    problem: TwoSampleProblem, rows: _LabelledRows, column: int, split: _RowSplit, splits: list[_RowSplit]
) -> _RowSplit:
    """Return the side of a split that changed more; of words, those that changed alike, if this is clearer than one alone."""
    values, known = _values(problem, rows, column)[0], _known(problem, rows, column)

    def moves(mask: np.ndarray) -> np.ndarray:
        moved, wider = _moves(values[known & mask], rows.first[known & mask])
        return np.array([moved, np.sqrt(2.0) * wider])

    inside, outside = moves(split.inside), moves(~split.inside)
    others = (inside**2).sum() < (outside**2).sum()
    if not split.word:
        return replace(split, inside=~split.inside, names=split.names[::-1]) if others else split
    changed = outside if others else inside
    words = [each for each in splits if each.column == split.column]
    words = sorted(words, key=lambda each: -float(moves(each.inside) @ changed))
    counts = np.array([(known & each.inside).sum() for each in words], dtype=np.float64)
    sums = counts[:, None] * np.array([moves(each.inside) for each in words])

    def between(chosen: np.ndarray) -> float:
        """Return about the chi-squared of the difference between the changes of these words and those of the others."""
        ends = [sums[side].sum(axis=0) / counts[side].sum() for side in (chosen, ~chosen)]
        weight = counts[chosen].sum() * counts[~chosen].sum() / counts.sum()
        return float(weight / 4.0 * ((ends[0] - ends[1]) ** 2).sum())

    first = [np.arange(len(words)) < count for count in range(1, len(words))]
    alone = np.array([each.word == split.word for each in words])
    clear = [between(chosen) for chosen in first]
    if not clear or max(clear) < between(alone) + _CLEARER:
        return replace(split, inside=~split.inside, names=split.names[::-1]) if others else split
    best = np.logical_or.reduce([each.inside for each in words[: 1 + int(np.argmax(clear))]])
    named = sorted(each.word for each in words if (each.inside & best).any())
    left = sorted(each.word for each in words if (each.inside & ~best).any())
    name = split.names[0].removesuffix(f" {split.word}")
    rest = known & ~best & ~np.logical_or.reduce([each.inside for each in words])
    if rest.any() or len(named) <= len(left):
        return replace(split, inside=best, names=(f"{name} {' or '.join(named)}", ""))
    return replace(split, inside=best, names=(f"{name} other than {' or '.join(left)}", ""))


def _moves(values: np.ndarray, first: np.ndarray) -> tuple[float, float]:
    """Return the difference of means, Y less X, in standard deviations within samples, and the log ratio of these."""
    x, y = values[first], values[~first]
    tiny = np.finfo(np.float64).tiny
    deviations = np.maximum([x.std(), y.std()], max(1e-9 * float(np.abs(values).max(initial=0.0)), tiny))
    within = np.hypot(*deviations) / np.sqrt(2.0)  # not squares, which are 0 for the least numbers
    return float((y.mean() - x.mean()) / within), float(np.log(deviations[1] / deviations[0]))


def _described(
    problem: TwoSampleProblem, rows: _LabelledRows, column: int, names: list[str], split: _RowSplit, p_value: float
) -> ChangedGroup:
    """Return a group with the change of the column in it, in words and figures."""
    values, word = _values(problem, rows, column)
    known = _known(problem, rows, column)
    inside, outside = known & split.inside, known & ~split.inside
    x, y = (values[inside & own] for own in (rows.first, ~rows.first))
    moved, wider = _moves(values[inside], rows.first[inside])
    if word:
        ends = float(x.mean()), float(y.mean())
        change, shown = "more" if moved > 0 else "less", [f"{100.0 * end:.3g} %" for end in ends]
        change = f"{change} often {word}"
    elif abs(moved) >= np.sqrt(2.0) * abs(wider):
        # Of cells of few values the medians may be equal, and not what moved.
        same = float(np.median(x)) == float(np.median(y))
        middle, called = (np.mean, "mean") if same else (np.median, "median")
        ends = float(middle(x)), float(middle(y))
        kind = problem.encoding.kinds[column]
        times = problem.encoding.cells[column].kind == "time"
        shown = [str(displayed_cells(kind, np.array([end]))[0]) if times else f"{end:.4g}" for end in ends]
        change, shown[0] = "higher" if moved > 0 else "lower", f"{called} {shown[0]}"
    else:
        low, high = np.quantile(x, [0.25, 0.75]), np.quantile(y, [0.25, 0.75])
        ends = float(low[1] - low[0]), float(high[1] - high[0])
        called = "quartile distance"
        if ends[0] == ends[1]:
            ends, called = (float(x.std()), float(y.std())), "standard deviation"
        change, shown = "more spread" if wider > 0 else "less spread", [f"{end:.4g}" for end in ends]
        shown[0] = f"{called} {shown[0]}"
    rest, first = values[outside], rows.first[outside]
    elsewhere = bool(ks_2samp(rest[first], rest[~first], method="asymp").pvalue <= LEVEL)
    return ChangedGroup(names[column], split.names[0], float(p_value), change, *ends, (shown[0], shown[1]), elsewhere)
