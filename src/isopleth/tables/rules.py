"""Rules that nearly all rows of a table keep: sums, products, orders, words that tell words, signs, known words and others."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import permutations
from typing import Any, ClassVar, Self

import numpy as np

from isopleth.core.errors import InputError
from isopleth.core.steps import recorded_step
from isopleth.tables.elapsed import Elapsed, elapsed_of
from isopleth.tables.kinds import Column
from isopleth.tables.proportions import Proportion, proportions_of
from isopleth.tables.relations import Relation, nearly_all, out_of_order_by_chance
from isopleth.tables.spelling import case_forms, meant_words, misspelt
from isopleth.tables.sums import Sum, sums_of

# Share of the rows that may break a rule, by its kind, and fewest rows that must keep it.
_EQUATION, _DETERMINED, _PLAIN, _FEWEST = 0.035, 0.03, 0.02, 30
# Share of rows that keep an equation whose parts come from other rows, from which it holds by chance.
_BY_CHANCE = 0.5
# Share of the rows that may break an order of two columns, and least share of them that would with numbers of other rows.
_DISORDER, _ROOM = 0.01, 0.2
# Negative numbers looked at nearest to 0, fewest others beside them, and standard errors from which they are no tail of these.
_NEAREST, _BESIDE, _NO_TAIL = 10, 5, 2.6
# Most distinct numbers of a column that can tell another column, rows of a word that tell something, share of the commonest word.
_FEW_NUMBERS, _ROWS_OF_A_WORD, _COMMON = 12, 5, 0.9
# Exceptions from a rule that are as usual as the cells that keep it: more than so many, and so large a share of all exceptions,
# are a custom and no errors. Share of the cells at each end of a column beyond which one is not as usual. Rows of an exception
# to words that tell words from which it repeats.
_MOST_REGULAR, _SHARE_REGULAR, _END, _REPEATS = 3, 0.5, 0.05, 3
# Share of the other numbers, from the least one, that may be wrong where it is asked how far they stand from 0, and share of them
# that has to be within twice the least one.
_LEAST, _NEAR_LEAST = 0.002, 0.05
# A word that repeats is a wrong form of one that has so many times its rows: rare codes that look alike repeat too.
_OFTEN = 100
# Words that occur once are looked at where they are few and the others are few.
_FEW_SINGLE, _SHARE_SINGLE, _SHARE_WORDS = 3, 0.02, 0.1
# Most rows of a word that may be a misspelt one. More single words than this, and from this share of the rows with one or so many
# words of few rows for each one, a column has ever new words: names and codes of all frequencies.
_FEW_ROWS, _SINGLE, _OPEN, _OPEN_WORDS = 5, 10, 0.05, 0.5


@dataclass(frozen=True, eq=False)
class Words:
    """Column of words."""

    levels: tuple[str, ...]
    codes: np.ndarray  # (n,): place in the levels, -1 where a cell is missing

    @classmethod
    def of_numbers(cls, values: np.ndarray) -> Self:
        """Return numbers as words, as people write them."""
        known = ~np.isnan(values)
        found, place = np.unique(values[known], return_inverse=True)
        codes = np.full(len(values), -1)
        codes[known] = place
        return cls(tuple(f"{value:.12g}" for value in found), codes)

    def among(self, words: Collection[str]) -> np.ndarray:
        """Return a mask of the cells that hold one of `words`."""
        return np.append([word in words for word in self.levels], False).astype(bool)[self.codes]

    def as_codes_of(self, words: Mapping[str, int]) -> np.ndarray:
        """Return the number that `words` give each cell, -1 for other words and missing cells."""
        return np.append([words.get(word, -1) for word in self.levels], -1).astype(np.intp)[self.codes]

    @property
    def known(self) -> np.ndarray:
        """Mask of the cells that are not missing."""
        return self.codes >= 0


@dataclass(frozen=True, eq=False)
class Times:
    """Column of dates or times."""

    seconds: np.ndarray  # (n,): since 1970, NaN where a cell is missing
    zoned: bool  # whether they are instants: others are compared with each other only
    origin: float = 0.0  # seconds since 1970 from which the encoded cells count


# Columns by name: numbers, NaN where a cell is missing, words, or times.
Cells = Mapping[str, Any]


def judged_cells(column: Column, values: np.ndarray) -> np.ndarray | Words | Times | None:
    """Return the encoded cells of a column as rules see them; None for times of day, which come after midnight, too."""
    if column.kind == "numeric":
        return values
    if column.kind == "categorical":
        return Words((*map(str, column.levels), ""), np.where(np.isnan(values), -1, values).astype(np.intp))
    return None if column.clock else Times(values + column.origin, column.zone is not None, column.origin)


class Rule(ABC):
    """Rule about the cells of a row."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns that it speaks about."""

    @property
    def blamed(self) -> tuple[str, ...]:
        """Columns whose cell is doubtful where it is broken."""
        return self.columns

    @abstractmethod
    def judged(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows whose cells it needs are known."""

    @abstractmethod
    def breaks(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows that break it."""

    def beyond(self, cells: Cells) -> tuple[np.ndarray, np.ndarray, str]:
        """Return masks of further rows that it is about and of those that break it, not judged, and which rows it is about."""
        none = np.zeros(0, dtype=bool)
        return none, none, ""

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as data for JSON."""
        return {"rule": self.kind, **asdict(self)}  # type: ignore[call-overload]


class Exact(Rule):
    """Rule that says the number of a cell by the others of its row."""

    @property
    @abstractmethod
    def result(self) -> str | None:
        """Column that is computed from the others; None where none is."""

    @abstractmethod
    def solved_for(self, name: str, cells: Cells) -> np.ndarray:
        """Return what it says of one of its columns, not finite where the others do not tell."""


@dataclass(frozen=True)
class Equation(Exact):
    """Sum or product of columns of numbers, with a discount or a constant factor, or the time from one column to another."""

    relation: Relation | Proportion | Elapsed
    kind: ClassVar[str] = "equation"

    def __str__(self) -> str:
        return str(self.relation)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it speaks about."""
        return self.relation.columns

    def judged(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows whose cells it needs are known."""
        return ~np.isnan(np.stack(list(self._numbers(cells).values()))).any(axis=0)

    def _numbers(self, cells: Cells) -> dict[str, np.ndarray]:
        return {name: _as_numbers(cells[name]) for name in self.columns}

    def breaks(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows that break it by more than the rounding of the result."""
        return self.relation.breaks(self._numbers(cells))

    @property
    def result(self) -> str:
        """Column that is computed from the others."""
        return self.relation.result

    def solved_for(self, name: str, cells: Cells) -> np.ndarray:
        """Return what it says of one of its columns, not finite where the others do not tell."""
        return self.relation.solved_for(name, self._numbers(cells))


@dataclass(frozen=True)
class AddsUp(Exact):
    """Parts that add up to a constant, or three and more that add up to another column."""

    sum: Sum
    kind: ClassVar[str] = "sum"

    def __str__(self) -> str:
        return str(self.sum)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it speaks about."""
        return self.sum.columns

    @property
    def result(self) -> str | None:
        """Column that is the sum of the others; None for a constant."""
        return self.sum.result

    def judged(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows whose cells it needs are known."""
        return ~np.isnan(self.sum.excess(cells))

    def breaks(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows that break it by more than the rounding of the numbers."""
        return self.sum.breaks(cells)

    def solved_for(self, name: str, cells: Cells) -> np.ndarray:
        """Return what the other columns say of one."""
        return self.sum.solved_for(name, cells)


@dataclass(frozen=True)
class OfTwoColumns(Rule):
    """Rule about the cells of two columns."""

    first: str
    second: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it speaks about."""
        return self.first, self.second


@dataclass(frozen=True)
class Determines(OfTwoColumns):
    """Each word of one column comes with one word of another: ``first -> second``."""

    words: dict[str, str]

    kind: ClassVar[str] = "determines"

    def __str__(self) -> str:
        return f"{self.first} -> {self.second}"

    @property
    def blamed(self) -> tuple[str, ...]:
        """The column that is told: what stands there is known, and of the other one only that it is none of many."""
        return (self.second,)

    def judged(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows whose first word tells something and whose second one is known."""
        return _as_words(cells[self.first]).among(self.words) & _as_words(cells[self.second]).known

    def breaks(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows whose second word is another one."""
        other = _as_words(cells[self.second])
        place = {word: k for k, word in enumerate(dict.fromkeys([*self.words.values(), *other.levels]))}
        told = {word: place[second] for word, second in self.words.items()}
        return self.judged(cells) & (_as_words(cells[self.first]).as_codes_of(told) != other.as_codes_of(place))

    def beyond(self, cells: Cells) -> tuple[np.ndarray, np.ndarray, str]:
        """Return masks of other rows whose first word repeats, and of those that have not its most frequent second word.

        They are too few to tell which word is right, but the rule does not hold where they differ.
        """
        one, two = _as_words(cells[self.first]), _as_words(cells[self.second])
        known, judged = one.known & two.known, self.judged(cells)
        repeated = known & (np.bincount(one.codes[known], minlength=len(one.levels) + 1)[one.codes] > 1)
        further = repeated & ~judged
        at, second = one.codes[further], two.codes[further]
        pairs, place, counts = np.unique(at * len(two.levels) + second, return_inverse=True, return_counts=True)
        first_row = np.full(len(pairs), len(at))
        np.minimum.at(first_row, place, np.arange(len(at)))
        words = pairs // max(len(two.levels), 1)
        order = np.lexsort([first_row, -counts, words])
        usual = order[np.append(True, np.diff(words[order]) > 0)[: len(order)]]
        broken = np.zeros(len(known), dtype=bool)
        broken[further] = ~np.isin(place, usual)
        stands = (repeated | judged).sum() < known.sum()
        return further, broken, f" whose {self.first} stands in several rows" * bool(stands)

    def says(self, cells: Cells, levels: Sequence[str]) -> np.ndarray:
        """Return the place among `levels` of the word that the first column tells, -1 where it tells none of them."""
        place = {word: k for k, word in enumerate(levels)}
        told = {word: place[second] for word, second in self.words.items() if second in place}
        return _as_words(cells[self.first]).as_codes_of(told)


@dataclass(frozen=True)
class InOrder(OfTwoColumns):
    """Numbers or times of one column are not below those of another: ``second >= first``."""

    kind: ClassVar[str] = "in order"

    def __str__(self) -> str:
        return f"{self.second} >= {self.first}"

    def apart(self, cells: Cells) -> np.ndarray:
        """Return the second column less the first one, NaN where a cell is missing."""
        return np.asarray(_as_numbers(cells[self.second]) - _as_numbers(cells[self.first]))

    def judged(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows whose cells are both known."""
        return ~np.isnan(self.apart(cells))

    def breaks(self, cells: Cells) -> np.ndarray:
        """Return a mask of the rows in which the first one is larger."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.apart(cells) < 0.0)


def is_certain(rule: Rule, cells: Cells) -> bool:
    """Tell whether a row that breaks a rule is wrong: equations, and orders of times; orders of numbers may be coincidences."""
    return isinstance(rule, Exact) or (isinstance(rule, InOrder) and isinstance(cells[rule.first], Times))


def _as_numbers(cells: Any) -> np.ndarray:
    return cells.seconds if isinstance(cells, Times) else np.asarray(cells)


@dataclass(frozen=True)
class OfColumn(Rule):
    """Rule about the cells of one column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def judged(self, cells: Cells) -> np.ndarray:
        """Return a mask of the known cells."""
        values = cells[self.column]
        return values.known if isinstance(values, Words) else ~np.isnan(values)


@dataclass(frozen=True)
class NotNegative(OfColumn):
    """Numbers of a column are 0 or more."""

    kind: ClassVar[str] = "not negative"

    def __str__(self) -> str:
        return f"{self.column} >= 0"

    def breaks(self, cells: Cells) -> np.ndarray:
        """Return a mask of the negative numbers."""
        with np.errstate(invalid="ignore"):
            return np.asarray(cells[self.column] < 0.0)


@dataclass(frozen=True)
class NotZero(OfColumn):
    """Numbers of a column are not 0: a 0 stands for a missing cell."""

    kind: ClassVar[str] = "not zero"

    def __str__(self) -> str:
        return f"{self.column} is not 0"

    def breaks(self, cells: Cells) -> np.ndarray:
        """Return a mask of the zeros."""
        return np.asarray(cells[self.column] == 0.0)


@dataclass(frozen=True)
class Whole(OfColumn):
    """Numbers of a column are whole."""

    kind: ClassVar[str] = "whole"

    def __str__(self) -> str:
        return f"{self.column} is whole"

    def breaks(self, cells: Cells) -> np.ndarray:
        """Return a mask of the numbers with a fraction."""
        values = cells[self.column]
        return np.asarray(~np.isnan(values) & (values != np.rint(values)))


@dataclass(frozen=True)
class OneOf(OfColumn):
    """Words of a column are among its usual ones."""

    words: tuple[str, ...]
    kind: ClassVar[str] = "one of"

    def __str__(self) -> str:
        return f"{self.column} is one of its {len(self.words)} usual words"

    def breaks(self, cells: Cells) -> np.ndarray:
        """Return a mask of the other words."""
        words = _as_words(cells[self.column])
        return words.known & ~words.among(self.words)


def _as_words(cells: Any) -> Words:
    return cells if isinstance(cells, Words) else Words.of_numbers(cells)


@dataclass(frozen=True, eq=False)
class FoundRule:
    """Rule with the rows that it was found by."""

    rule: Rule
    rows: int  # rows that it judges
    broken: np.ndarray  # numbers of the rows that break it
    # Further rows that it is about, too few of a word to judge by, and numbers of those in which it does not hold.
    further: int = 0
    contrary: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    about: str = ""  # which rows of the table it is about, if not all whose cells are known

    @classmethod
    def of(cls, rule: Rule, cells: Cells) -> Self:
        """Return a rule with the rows of a table."""
        further, contrary, about = rule.beyond(cells)
        judged, broken = int(rule.judged(cells).sum()), np.flatnonzero(rule.breaks(cells))
        return cls(rule, judged, broken, int(further.sum()), np.flatnonzero(contrary), about)

    @property
    def weight(self) -> float:
        """Evidence of a broken rule against a cell, in nats; greatest for a rule that hardly any row breaks."""
        return float(np.log(max(self.rows, 2) / max(len(self.broken), 1)))

    @property
    def rows_about(self) -> int:
        """Number of rows that it is about."""
        return self.rows + self.further

    @property
    def exceptions(self) -> np.ndarray:
        """Numbers of all rows in which it does not hold, those among them that it does not judge."""
        return np.union1d(self.broken, self.contrary).astype(np.intp)

    @property
    def kept_in(self) -> str:
        """Number of rows that keep it, in words."""
        kept = f"{self.rows_about - len(self.exceptions):,} of {'the ' * bool(self.about)}"
        return f"{kept}{self.rows_about:,} row{'s' * (self.rows_about != 1)}{self.about}"


def find_rules(cells: Cells, *, several: bool = False) -> list[FoundRule]:
    """Find the rules that nearly all rows keep, those that no row breaks among them; `several`: those about several columns."""
    times = {name: values for name, values in cells.items() if isinstance(values, Times)}
    untimed = {name: values for name, values in cells.items() if name not in times}
    numbers = {name: values for name, values in untimed.items() if not isinstance(values, Words)}
    found = []
    of_one = () if several else (*_plain(numbers), *_single_words(untimed))
    equations = list(_equations(numbers, times))
    orders = [*_orders(times), *_orders(numbers, [set(rule.columns) for rule in equations])]
    for rule in (*equations, *of_one, *_determined(untimed), *orders):
        found.append(FoundRule.of(rule, cells))
    return found


def _equations(numbers: Cells, times: Cells) -> Iterator[Exact]:
    """Yield equations and sums that nearly all rows keep, and that are not kept by chance."""
    computed: dict[str, set[str]] = {}
    for relation, _ in nearly_all(numbers, _EQUATION):
        rule = Equation(relation)
        if not _is_by_chance(rule, relation.result, numbers):
            computed.setdefault(relation.result, set()).update(set(relation.columns) - {relation.result})
            yield rule
    for found in sums_of(numbers, _EQUATION, frozenset(computed)):
        if not _is_by_chance(AddsUp(found), found.parts[0], numbers):
            if found.result is not None:
                computed[found.result] = set(found.parts)
            yield AddsUp(found)
    for proportion in map(Equation, proportions_of(numbers, _EQUATION, computed)):
        if not _is_by_chance(proportion, proportion.result, numbers):
            yield proportion
    for elapsed in _times_between(numbers, times):
        if not _is_by_chance(elapsed, elapsed.result, {**numbers, **times}):
            yield elapsed


def _times_between(numbers: Cells, times: Cells) -> Iterator[Equation]:
    """Yield the columns of numbers that are the time between two columns, which both are instants or both are not."""
    for zoned in (False, True):
        alike = {name: each.seconds for name, each in times.items() if each.zoned == zoned}
        yield from map(Equation, elapsed_of(numbers, alike, _EQUATION))


def _is_by_chance(rule: Exact, name: str, numbers: Cells) -> bool:
    """Tell whether many rows keep a rule with the numbers of other rows in one of its columns."""
    places = np.flatnonzero(rule.judged(numbers))
    mixed = numbers[name].copy()
    mixed[places] = np.roll(mixed[places], max(len(places) // 3, 1))
    return bool(rule.breaks({**numbers, name: mixed})[places].mean() <= 1.0 - _BY_CHANCE)


def _plain(numbers: Cells) -> Iterator[Rule]:
    """Yield signs and whole numbers that nearly all numbers of a column keep."""
    for name, values in numbers.items():
        known = values[~np.isnan(values)]
        if len(known) < _FEWEST or len(np.unique(known[:1000])) < 2:
            continue
        if (known >= 0.0).mean() >= 1.0 - _PLAIN and not _runs_through_zero(known):
            yield NotNegative(name)
        if 0.0 < (known == 0.0).mean() <= _PLAIN and _stand_apart_from_zero(known):
            yield NotZero(name)
        whole = known == np.rint(known)
        if whole.mean() >= 1.0 - _PLAIN and not _fractions_are_usual(known[whole], known[~whole]):
            yield Whole(name)


def _orders(columns: Cells, equations: Sequence[set[str]] = ()) -> Iterator[InOrder]:
    """Yield orders of two columns that few rows break, though numbers of other rows would often break them.

    Columns of one equation are left out, which says more. Differences that run on through 0 are a spread without a rule.
    """
    for low, high in permutations(columns, 2):
        one, two = columns[low], columns[high]
        if getattr(one, "zoned", None) != getattr(two, "zoned", None) or any({low, high} <= each for each in equations):
            continue
        rule = InOrder(low, high)
        apart = rule.apart(columns)
        known = ~np.isnan(apart)
        broken, count = int((apart[known] < 0.0).sum()), int(known.sum())
        if count < _FEWEST or not 0 < broken <= _DISORDER * count:
            continue
        by_chance = out_of_order_by_chance(_as_numbers(one)[known], _as_numbers(two)[known])
        if by_chance >= _ROOM and not _runs_through_zero(apart[known]):
            yield rule


def _fractions_are_usual(whole: np.ndarray, fractions: np.ndarray) -> bool:
    """Tell whether fractions among whole numbers are a custom: numbers like the others, of which a few were recorded finer.

    Errors come from somewhere, such as a lost decimal point or another column, and hardly ever stand in the middle of the others.
    """
    low, high = np.quantile(whole, [_END, 1.0 - _END])
    return _is_custom(int(((fractions >= low) & (fractions <= high)).sum()), len(fractions))


def _is_custom(regular: int, exceptions: int) -> bool:
    """Tell whether exceptions from a rule are a custom, by how many of them look like no error."""
    return regular > _MOST_REGULAR and regular >= _SHARE_REGULAR * exceptions


def _stand_apart_from_zero(values: np.ndarray) -> bool:
    """Tell whether 0 is no number of a column: the others begin far from it, at a place where they lie dense."""
    above = np.sort(values[values > 0.0])
    if len(above) < (1.0 - _PLAIN) * (values != 0.0).sum() or len(above) < _FEWEST:
        return False
    least, near = above[round(_LEAST * len(above))], above[round(_NEAR_LEAST * len(above))]
    step = recorded_step(np.unique(above), share=1.0 - _PLAIN)
    return bool(near < 2.0 * least and least > 2.0 * step)


def _runs_through_zero(values: np.ndarray) -> bool:
    """Tell whether the negative numbers go on where the others end: a column that reaches 0 by its spread has no rule there.

    Counts in four equal widths about 0 fall by about equal ratios in a tail. A wrong sign stands apart, and a code such as -1
    has nothing below it.
    """
    below, above = np.sort(-values[values < 0.0]), np.sort(values[values >= 0.0])
    if not len(below):
        return False
    width = max(below[min(_NEAREST, len(below)) - 1], above[min(_BESIDE, len(above)) - 1])
    in_widths = [np.searchsorted(above, [width, 2.0 * width]), np.searchsorted(below, [width, 2.0 * width], "right")]
    near, far = np.array(in_widths, dtype=float).T
    counts = np.array([far[0] - near[0], near[0], near[1], far[1] - near[1]]) + 0.5  # from above 0 to below it
    logs, errors = np.log(counts), 1.0 / counts
    bends = logs[2:] - 2.0 * logs[1:3] + logs[:2]
    return bool((np.abs(bends) <= _NO_TAIL * np.sqrt(errors[2:] + 4.0 * errors[1:3] + errors[:2])).all())


def _single_words(cells: Cells) -> Iterator[OneOf]:
    """Yield columns of words in which hardly any word occurs once; those that may be wrong ones are not among the usual words."""
    for name, words in cells.items():
        if not isinstance(words, Words) or words.known.sum() < _FEWEST:
            continue
        n, counts = int(words.known.sum()), np.bincount(words.codes[words.known], minlength=len(words.levels))
        single, repeated = int((counts == 1).sum()), int((counts > 1).sum())
        if single <= max(_FEW_SINGLE, _SHARE_SINGLE * n) and 0 < repeated <= _SHARE_WORDS * n:
            usual = (counts > 1) | ((counts == 1) & ~doubtful_words(name, cells))
            for code, right in meant_words(words.levels, counts).items():
                usual[code] &= counts[code] == 1 or counts[right[0]] < _OFTEN * counts[code]  # a wrong form may repeat
            yield OneOf(name, tuple(sorted(words.levels[code] for code in np.flatnonzero(usual))))


def doubtful_words(name: str, cells: Cells) -> np.ndarray:
    """Return a mask of the words of a column that may be wrong ones: wrong words come from somewhere.

    A word of few rows that looks like one of more rows may be misspelt or of another case, and a word of one row that another
    column has may be of that one. Other rare words are rare, and so are those of a column that has ever new words.
    """
    words = cells[name]
    counts = np.bincount(words.codes[words.known], minlength=len(words.levels))
    doubtful = np.zeros(len(words.levels), dtype=bool)
    single = np.flatnonzero(counts == 1)
    few = int(((counts > 1) & (counts <= _FEW_ROWS)).sum())
    if len(single) > _SINGLE and (len(single) > _OPEN * counts.sum() or few >= _OPEN_WORDS * len(single)):
        return doubtful
    for count in range(1, _FEW_ROWS + 1):
        rare = np.flatnonzero(counts == count)
        right = [words.levels[code] for code in np.flatnonzero(counts > count)]
        doubtful[rare] = misspelt([words.levels[code] for code in rare], right)
    doubtful[list(case_forms(words.levels, counts))] = True
    others = (cells[other] for other in cells if other != name and isinstance(cells[other], Words))
    foreign = {each.levels[code] for each in others for code in np.unique(each.codes[each.known])}
    if len(single) <= _SINGLE:  # of many such words the columns have one vocabulary
        doubtful[single] |= np.array([words.levels[code] in foreign for code in single], dtype=bool)
    return doubtful


def _determined(cells: Cells) -> Iterator[Determines]:
    """Yield pairs of columns of which the word of one tells that of the other."""
    words = {}
    for name, values in cells.items():
        if isinstance(values, Words):
            words[name] = values
        elif len(np.unique(values[~np.isnan(values)])) <= _FEW_NUMBERS:
            words[name] = Words.of_numbers(values)
    for first, second in permutations(words, 2):
        rule = _told_by(first, second, words)
        if rule is not None:
            yield rule


def _told_by(first: str, second: str, words: Mapping[str, Words]) -> Determines | None:
    """Return the rule that words of `first` tell those of `second`; None where they do not."""
    one, two = words[first], words[second]
    known = one.known & two.known
    if known.sum() < _FEWEST:
        return None
    pairs, counts = np.unique(one.codes[known] * len(two.levels) + two.codes[known], return_counts=True)
    at, to = np.divmod(pairs, len(two.levels))
    total = np.bincount(at, counts, len(one.levels))
    order = np.lexsort([to, -counts, at])
    best = order[np.concatenate([[True], np.diff(at[order]) > 0])]
    best = best[total[at[best]] >= _ROWS_OF_A_WORD]
    common = np.bincount(to, counts).max() / known.sum()
    if len(best) < 2 or len(np.unique(to[best])) < 2 or common > _COMMON:
        return None
    if counts[best].sum() < (1.0 - _DETERMINED) * total[at[best]].sum():
        return None
    others = np.setdiff1d(np.flatnonzero(np.isin(at, at[best])), best)
    if _is_custom(int(counts[others][counts[others] >= _REPEATS].sum()), int(counts[others].sum())):
        return None
    return Determines(first, second, {one.levels[i]: two.levels[j] for i, j in zip(at[best], to[best], strict=True)})


_KINDS: dict[str, type] = {
    each.kind: each for each in (Equation, AddsUp, Determines, InOrder, NotNegative, NotZero, Whole, OneOf)
}


def rules_to_json(found: Sequence[FoundRule]) -> str:
    """Return rules as a text that :func:`rules_of_json` reads."""
    rules = [{**each.rule.to_dict(), "rows": each.rows, "broken": len(each.broken)} for each in found]
    return json.dumps({"rules": rules}, indent=1, ensure_ascii=False) + "\n"


def _relation_of(fields: Mapping[str, Any]) -> Relation | Proportion | Elapsed:
    """Return the relation of an equation by its fields."""
    for kind, of_kind in (("factor", Proportion), ("unit", Elapsed)):
        if kind in fields:
            return of_kind(**fields)
    return Relation(**fields)


def rules_of_json(text: str, source: str) -> list[Rule]:
    """Return the rules of a text; InputError where it holds something else."""
    try:
        found = []
        for entry in json.loads(text)["rules"]:
            fields = {key: value for key, value in entry.items() if key not in ("rule", "rows", "broken")}
            if entry["rule"] == OneOf.kind:
                fields["words"] = tuple(fields["words"])
            if entry["rule"] == Equation.kind:
                fields["relation"] = _relation_of(fields["relation"])
            if entry["rule"] == AddsUp.kind:
                fields["sum"] = Sum(**fields["sum"] | {"parts": tuple(fields["sum"]["parts"])})
            found.append(_KINDS[entry["rule"]](**fields))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{source} holds no rules that can be read ({type(error).__name__}: {error}); expected a file that "
            "`isopleth cells --rules` wrote."
        ) from error
    return found
