r"""Shift of the mean of one column between two samples, given chosen other columns.

With D = 1 in the second sample, Z the given columns, and cross-fitted regressions :math:`m(Z) = E[Y \mid Z]` and
:math:`e(Z) = P(D = 1 \mid Z)` over the rows of both samples, the shift is :math:`\sum (D - e)(Y - m) / \sum (D - e)^2`
(P. M. Robinson, Econometrica 56, 1988; V. Chernozhukov et al., Econometrics Journal 21, 2018). Errors of the two regressions
enter by their product only, so that the shift is right if either is, and rows without a counterpart in the other sample have no
weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from scipy.stats import t as t_law

from isopleth.conditional import ConditionalDensity
from isopleth.core.budget import Budget
from isopleth.core.errors import Hint, InputError, meant, probability, quoted
from isopleth.results.text import in_words, pvalue_text
from isopleth.tables.coded_cells import decode_cells
from isopleth.tasks.two_sample.separation import folds_of_groups

if TYPE_CHECKING:
    from isopleth.tasks.two_sample.problem import TwoSampleProblem

# Most rows of each sample, and fewest with a known target.
_MOST, _FEWEST = 5000, 10
_TREES, _FOLDS, _SEED = 50, 5, 8
# Rows by which the scale is chosen.
_ROWS_OF_SCALE = 1000
_FALSE, _TRUE = "no", "yes"
_TINY = np.finfo(np.float64).tiny
# Rows that a mean of differences needs for its normal law.
_FEWEST_COMPARED = 10.0
# Share of the rows below which it is said how many have counterparts.
_MANY = 0.5


class UnlikeRowsError(InputError):
    """Error about samples of which hardly any rows are alike in the given columns: of one group, the others can be compared."""


@dataclass(frozen=True)
class ShiftGiven:
    """Difference of the means of a column, Y less X, among rows that are alike in given columns.

    Parameters
    ----------
    target : str
        The column. Of a column of words the share of one word is compared.
    given : tuple of str
        The given columns.
    shift, low, high : float
        The difference in units of the target, with its confidence interval.
    ratio, ratio_low, ratio_high : float
        The same as a share of the value in X: -0.04 is lower by 4 %; NaN if the target is not positive throughout.
    pvalue : float
        p-value of no difference.
    alone : float
        Difference of the means over all rows, whatever the given columns hold.
    rows : tuple of two int
        Rows of X and Y that were used.
    compared : float
        Number of rows that say as much as those used: rows without counterparts in the other sample count less.
    by_ratio : bool
        Whether logarithms were compared, since the spread of the target grows with it.
    confidence_level : float
        Confidence of the intervals.
    word : str
        Of a target of words the word whose share is compared; empty of others.
    group : str
        The rows that are compared, in words; empty if they are all.
    groups : int
        Number of groups that were looked at. The p-value and the confidence of the intervals allow for it.

    Notes
    -----
    The p-value and the intervals are those of a normal law of the mean: they hold in large samples, where either regression is
    right, and they are not exact as that of the whole test is.
    """

    target: str
    given: tuple[str, ...]
    shift: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    pvalue: float
    alone: float
    rows: tuple[int, int]
    compared: float
    by_ratio: bool
    confidence_level: float
    word: str = ""
    group: str = ""
    groups: int = 1

    @classmethod
    def of(
        cls,
        problem: TwoSampleProblem,
        names: list[str],
        target: Any,
        given: Sequence[Any] | None = None,
        confidence_level: Any = 0.95,
        word: Any = None,
        group: RowGroup | None = None,
        groups: int = 1,
    ) -> Self:
        """Compare the target of two prepared samples given other columns, by default all others; in one of some groups."""
        level = 1.0 - (1.0 - probability("confidence_level", confidence_level)) / groups
        column, others = _chosen(names, target, given)
        word, code = _word_of(problem, column, word)
        rows = _TargetRows.of(problem, column, others, code, group)
        by_ratio, values = _in_best_scale(rows)
        expected = _cross_fitted(rows, values)
        unexpected = (rows.other - _cross_fitted(rows, rows.other)) * (1.0 if rows.later == 1 else -1.0)
        found = _Effect.of(values - expected, unexpected, rows.groups, level)
        if not found.rows >= _FEWEST_COMPARED:
            raise UnlikeRowsError(
                f"given {in_words([names[j] for j in others])}, hardly any rows of the two samples are alike, so "
                f"{names[column]} cannot be compared; give fewer columns."
            )
        middle = float(rows.y[~rows.second].mean())
        three = np.array([found.effect, found.effect - found.half, found.effect + found.half])
        ratios = (
            np.expm1(three) if by_ratio else three / middle if not word and rows.y.min() > 0.0 else np.full(3, np.nan)
        )
        shift, low, high = map(float, ratios * middle if by_ratio else three)
        ratio, ratio_low, ratio_high = map(float, ratios)
        return cls(
            names[column],
            tuple(names[j] for j in others),
            shift,
            low,
            high,
            ratio,
            ratio_low,
            ratio_high,
            min(1.0, groups * found.pvalue),
            alone=float(rows.y[rows.second].mean()) - middle,
            rows=(int((~rows.second).sum()), int(rows.second.sum())),
            compared=found.rows,
            by_ratio=by_ratio,
            confidence_level=level,
            word=word,
            group="" if group is None else group.name,
            groups=groups,
        )

    @staticmethod
    def given_columns(names: list[str], target: Any, given: Sequence[Any] | None) -> list[str]:
        """Return the names of the given columns, by default all others; columns that are not among `names` are refused."""
        wanted = [name for name in names if name != str(target)] if given is None else [str(name) for name in given]
        for parameter, asked in (("target", [str(target)]), ("given", wanted)):
            unknown = [name for name in asked if name not in names]
            if unknown:
                offered = f"{meant(unknown, names)}; expected one of {quoted(names)}"
                raise InputError(
                    f"{{parameter}} names {unknown[0]!r}, which is not compared{offered}.", parameter=parameter
                )
        if str(target) in wanted:
            raise InputError(
                "{parameter} names {column} too, which is the target; leave it out there.",
                parameter="given",
                column=str(target),
            )
        if not wanted:
            raise InputError("{parameter} names no column; name at least one.", parameter="given")
        return wanted

    @staticmethod
    def refuse_words(name: Any, words: list[str], word: Any = None) -> NoReturn:
        """Refuse a target whose word is not named, or is none of its words."""
        unknown = "" if word is None else f"does not hold {str(word)!r}{meant([str(word)], words)}"
        how = unknown or "holds words, which have no mean"
        hint = Hint("name the word whose share is meant, as in {target}", target=[f"{name}={words[0]}"])
        raise InputError(
            f"{{column}} {how}; its words are {quoted(words)}", column=str(name), parameter="target", hint=hint
        )

    def __str__(self) -> str:
        """Return the answer as a sentence."""
        return self.sentence("Y")

    def sentence(self, second: str) -> str:
        """Return the answer as a sentence in which the second sample has a name."""
        given, name = in_words(list(self.given), len(self.given)), self.target
        given = f"Given {given}" if not self.group else f"In rows with {self.group}, given {given}"
        level = f"{100.0 * self.confidence_level:.4g} %"
        p = f"p {pvalue_text(self.pvalue)}" + (f" for {self.groups} groups" if self.groups > 1 else "")
        alone = f"whatever these hold, its mean is {_higher(self.alone)} by {abs(self.alone):.3g}"
        if self.word:
            name = f"the share of {self.word!r} in {name}"
            alone = f"whatever these hold, it is {_higher(self.alone)} by {100.0 * abs(self.alone):.3g} points"
        if self.low <= 0.0 <= self.high:
            ends = f"{self.low:+.3g} to {self.high:+.3g}"
            if self.word:
                ends = f"{100.0 * self.low:+.3g} to {100.0 * self.high:+.3g} points"
            elif np.isfinite(self.ratio):
                ends += f", {100.0 * self.ratio_low:+.3g} % to {100.0 * self.ratio_high:+.3g} %"
            return f"{given}, no difference of {name} is shown ({level} interval: {ends}; {p}); {alone}.{self._overlap}"
        return (
            f"{given}, {name} is {_higher(self.shift)} in {second} by {self._size(level)}; {p}; {alone}.{self._overlap}"
        )

    def _size(self, level: str) -> str:
        """Return the size of the shift with its interval, in words."""
        low, high = sorted(abs(end) for end in (self.low, self.high))
        if self.word:
            return f"{100.0 * abs(self.shift):.3g} points ({level} interval: {100.0 * low:.3g} to {100.0 * high:.3g})"
        if not np.isfinite(self.ratio):
            return f"{abs(self.shift):.3g} ({level} interval: {low:.3g} to {high:.3g})"
        low, high = sorted(100.0 * abs(end) for end in (self.ratio_low, self.ratio_high))
        return f"{100.0 * abs(self.ratio):.3g} % ({level} interval: {low:.3g} % to {high:.3g} %), about {abs(self.shift):.3g}"

    @property
    def _overlap(self) -> str:
        """The sentence on rows without counterparts; empty where most have them."""
        if self.compared >= _MANY * sum(self.rows):
            return ""
        return (
            " The samples differ in the given columns: the answer is for rows that both have, and as sure as one by "
            f"{self.compared:,.0f} of the {sum(self.rows):,} rows that are alike."
        )


def _higher(shift: float) -> str:
    return "higher" if shift > 0.0 else "lower"


def _chosen(names: list[str], target: Any, given: Sequence[Any] | None) -> tuple[int, list[int]]:
    """Return the numbers of the target and of the given columns, in the order of the table."""
    wanted = ShiftGiven.given_columns(names, target, given)
    return names.index(str(target)), sorted(names.index(name) for name in set(wanted))


def _word_of(problem: TwoSampleProblem, column: int, word: Any) -> tuple[str, float | None]:
    """Return the word of a target whose share is compared, and its code; of two words the rarer one if none is named."""
    cell, kind = problem.encoding.cells[column], problem.encoding.kinds[column]
    if cell.kind != "categorical":
        if word is not None:
            raise InputError(f"{{column}} holds no words, so that {word!r} has no share in it", column=str(cell.name))
        return "", None
    cells = np.concatenate([rows[:, cell.place] for rows in problem.tables])
    codes, counts = np.unique(cells[~np.isnan(cells)], return_counts=True)
    words = [str(decode_cells(kind, np.array([code]))[0]) for code in codes]
    if word is None and len(words) == 2:
        rarer = min(range(2), key=lambda k: (counts[k], words[k]))
        return words[rarer], float(codes[rarer])
    if str(word) not in words:
        ShiftGiven.refuse_words(cell.name, [words[k] for k in np.argsort(-counts, kind="stable")], word)
    return str(word), float(codes[words.index(str(word))])


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Rows whose cell in a column has one code, or numbers up to a cut or above it, in words."""

    name: str
    place: int  # of the column in the checked rows
    low: float
    high: float

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Tell which rows are in the group."""
        own = cells[:, self.place]
        return np.asarray((own > self.low) & (own <= self.high))


@dataclass(frozen=True, eq=False)
class _TargetRows:
    """Rows of both samples in which the target is known, drawn from long ones."""

    y: np.ndarray  # (n,): the target; of words whether it is the word that is asked for
    z: np.ndarray  # (n, p): coordinates of the given columns; NaN for missing numbers
    other: np.ndarray  # (n,): whether a row is of the later sample in an order by what the samples hold
    later: int  # which sample that is
    groups: np.ndarray | None  # (n,): rows of a group depend on each other
    budget: Budget

    @property
    def second(self) -> np.ndarray:
        """Mask of the rows of Y."""
        return self.other if self.later == 1 else ~self.other

    @classmethod
    def of(
        cls,
        problem: TwoSampleProblem,
        column: int,
        others: list[int],
        code: float | None = None,
        group: RowGroup | None = None,
    ) -> Self:
        """Draw rows, of a group if there is one, by what they hold and not by their order; of words, which have a code."""
        cell, parts, samples = problem.encoding.cells[column], [], problem.samples.order
        for sample in samples:
            place = problem.drawn(sample, problem.sizes[sample], 9)
            own = problem.tables[sample][place]
            inside = True if group is None else group(own)
            parts.append(place[~np.isnan(own[:, cell.place]) & inside][:_MOST])
            if len(parts[-1]) < _FEWEST:
                raise InputError(
                    f"{{column}} is known in {len(parts[-1])} rows of the {('first', 'second')[sample]} sample; a comparison "
                    f"given other columns needs {_FEWEST} in each.",
                    column=cell.name,
                )
        cells = np.vstack([problem.tables[i][part] for i, part in zip(samples, parts, strict=True)])
        other = np.repeat([False, True], [len(part) for part in parts])
        groups = None
        if problem.groups is not None:
            groups = np.concatenate([problem.groups[i][part] for i, part in zip(samples, parts, strict=True)])
        y = cells[:, cell.place] if code is None else cells[:, cell.place] == code
        return cls(y, _coordinates(problem, cells, others), other, samples[1], groups, problem.budget)


def _coordinates(problem: TwoSampleProblem, cells: np.ndarray, columns: list[int]) -> np.ndarray:
    """Return the coordinates of some columns that vary; missing numbers stay missing, for trees to put them on a side."""
    encoded, parts = problem.encoding(cells), []
    for j in columns:
        part = encoded[:, problem.blocks[j]].copy()
        if problem.encoding.cells[j].kind != "categorical":
            part[np.isnan(cells[:, problem.encoding.cells[j].place]), 0] = np.nan
        parts.append(part)
    rows = np.hstack(parts)
    known = np.where(np.isnan(rows), np.inf, rows).min(axis=0), np.where(np.isnan(rows), -np.inf, rows).max(axis=0)
    return np.asarray(rows[:, known[0] < known[1]])


def _in_best_scale(rows: _TargetRows) -> tuple[bool, np.ndarray]:
    """Return whether the target is compared in logarithms, and its values: where the residuals are likelier so.

    The samples have no part in the choice, so that it does not favour a difference.
    """
    if rows.y.dtype == bool or not rows.y.min() > 0.0:
        return False, rows.y
    step = -(-len(rows.y) // _ROWS_OF_SCALE)
    some = replace(rows, y=rows.y[::step], z=rows.z[::step], other=rows.other[::step], groups=None)
    logs = np.log(some.y)
    plain, by_ratio = (float(np.std(values - _cross_fitted(some, values))) for values in (some.y, logs))
    # The density of a logarithm is that of the number times the number.
    better = np.log(max(by_ratio, _TINY)) + float(logs.mean()) < np.log(max(plain, _TINY))
    return better, np.log(rows.y) if better else rows.y


def _cross_fitted(rows: _TargetRows, values: np.ndarray) -> np.ndarray:
    """Return the mean of values given the coordinates, of each row by a fit that does not know it, nor its group."""
    if not rows.z.shape[1] or (values == values[0]).all():
        return np.full(len(values), float(np.mean(values)))
    if rows.groups is None:
        return _mean_of(_fitted(rows, values, slice(None)), None)
    folds = folds_of_groups(rows.other.astype(np.intp), rows.groups, _SEED)
    out = np.empty(len(values))
    for fold in np.unique(folds):
        out[folds == fold] = _mean_of(_fitted(rows, values, folds != fold), rows.z[folds == fold])
    return out


def _fitted(rows: _TargetRows, values: np.ndarray, part: Any) -> ConditionalDensity:
    """Return the law of values given the coordinates; truth values become words, whose laws are probabilities."""
    y = np.where(values, _TRUE, _FALSE) if values.dtype == bool else values
    return ConditionalDensity(_TREES, forests=1, random_state=_SEED, n_jobs=rows.budget.n_jobs).fit(
        rows.z[part], y[part]
    )


def _mean_of(model: ConditionalDensity, rows: np.ndarray | None) -> np.ndarray:
    """Return the mean of numbers, or the probability of True."""
    if not hasattr(model, "classes_"):
        return np.asarray(model.predict(rows))
    return np.asarray(model.probabilities(rows)[:, list(model.classes_).index(_TRUE)])


@dataclass(frozen=True)
class _Effect:
    """Shift of residuals between samples: the slope of those of the target on those of the sample."""

    effect: float
    half: float  # half the length of its interval
    pvalue: float
    rows: float  # rows that say as much, each of weight 1

    @classmethod
    def of(cls, target: np.ndarray, sample: np.ndarray, groups: np.ndarray | None, level: float) -> Self:
        """Estimate the slope; rows of a group count as one sum."""
        weight = sample**2
        total = max(float(weight.sum()), _TINY)
        effect = float(sample @ target) / total
        unit = np.arange(len(target)) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
        # Under the null, of scores without an effect; the interval is of those with it.
        null, scores = (np.bincount(unit, sample * rest) for rest in (target, target - effect * sample))
        law = t_law(max(len(null) - 2, 1))
        error, under_null = (float(np.sqrt((each**2).sum())) for each in (scores, null))
        size = abs(float(null.sum())) / max(under_null, _TINY)
        half = float(law.ppf(0.5 + 0.5 * level)) * error / total
        return cls(effect, half, float(2.0 * law.sf(size)), float(weight.sum() ** 2 / max((weight**2).sum(), _TINY)))
