"""Shift of a column given others in each group of rows: in whom it moved, with p-values that allow for the number of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isopleth.core.errors import InputError, meant, quoted
from isopleth.core.p_values import LEVEL
from isopleth.results.text import counted, in_words
from isopleth.tables.coded_cells import decode_cells
from isopleth.tasks.two_sample.shift_given import RowGroup, ShiftGiven, UnlikeRowsError

if TYPE_CHECKING:
    from isopleth.tasks.two_sample.problem import TwoSampleProblem

# Most words of a column whose groups are compared, the most frequent ones; numbers of more values are cut at their median.
_MOST_GROUPS = 20
# Fewest rows of each sample in a group.
_FEWEST = 10
# Groups that are named in a sentence.
_NAMED = 5


@dataclass(frozen=True)
class ShiftsInGroups:
    """Difference of the means of a column, Y less X, given other columns, in each group of rows.

    Parameters
    ----------
    by : str
        The column whose words, or numbers, are the groups.
    shifts : tuple of ShiftGiven
        The answer for each group that was compared, the surest first. Their p-values are multiplied by the number of groups, and
        the confidence of their intervals is raised so that all of them hold together.
    left_out : dict of str to str
        Groups that were not compared, and why.
    """

    by: str
    shifts: tuple[ShiftGiven, ...]
    left_out: dict[str, str]

    @classmethod
    def of(
        cls,
        problem: TwoSampleProblem,
        names: list[str],
        target: Any,
        by: Any,
        given: Sequence[Any] | None = None,
        confidence_level: Any = 0.95,
        word: Any = None,
    ) -> Self:
        """Compare the target of two prepared samples given other columns in each group of a column."""
        if str(by) not in names or str(by) == str(target):
            why = "is the target" if str(by) == str(target) else f"is not compared{meant([str(by)], names)}"
            raise InputError(
                f"{{parameter}} names {str(by)!r}, which {why}; expected another of {quoted(names)}.", parameter="by"
            )
        found, left = _groups(problem, names, str(by))
        if given is None and problem.encoding.cells[names.index(str(by))].kind == "categorical":
            rest = [name for name in names if name not in (str(by), str(target))]
            given = rest or None  # in the rows of a group its word says nothing
        shifts = []
        for group in found:
            about = target, given, confidence_level, word, group, len(found)
            try:
                shifts.append(ShiftGiven.of(problem, names, *about))
            except UnlikeRowsError:
                left[group.name] = "hardly any rows of the two samples are alike"
        if not shifts:
            raise InputError(f"no group of {str(by)!r} has enough rows of both samples to be compared.", parameter="by")
        return cls(str(by), tuple(sorted(shifts, key=lambda each: (each.pvalue, each.group))), left)

    @property
    def target(self) -> str:
        """Name of the column that is compared."""
        return self.shifts[0].target

    def sentences(self, second: str) -> list[str]:
        """Return the groups in which a difference is shown, else the surest one, and what is said of the others."""
        shown = [each for each in self.shifts if each.pvalue <= LEVEL] or list(self.shifts[:1])
        words = [each.sentence(second) for each in shown]
        if rest := len(self.shifts) - len(shown):
            others = "the other group" if rest == 1 else f"any of the other {rest} groups"
            words.append(f"No difference is shown in {others} of {self.by}.")
        if self.left_out:
            named = [f"{name} ({why})" for name, why in self.left_out.items()]
            words.append(f"Not compared: {in_words(named, _NAMED)}.")
        return words


def _groups(problem: TwoSampleProblem, names: list[str], by: str) -> tuple[list[RowGroup], dict[str, str]]:
    """Return the groups of a column with enough rows of both samples, and the others with the reason."""
    j = names.index(by)
    cell, kind = problem.encoding.cells[j], problem.encoding.kinds[j]
    samples = [rows[:, cell.place] for rows in problem.tables]
    known = np.concatenate(samples)
    missing, known = int(np.isnan(known).sum()), known[~np.isnan(known)]
    codes, counts = np.unique(known, return_counts=True)
    if cell.kind != "categorical" and len(codes) > _MOST_GROUPS:
        cut = float(np.median(known))
        every = [
            RowGroup(f"{by} up to {cut:.6g}", cell.place, -np.inf, cut),
            RowGroup(f"{by} above {cut:.6g}", cell.place, cut, np.inf),
        ]
        codes = codes[:0]
    else:
        every = []
        codes = codes[np.argsort(-counts, kind="stable")]
    for code in codes.tolist():
        word = str(decode_cells(kind, np.array([code]))[0]) if cell.kind == "categorical" else f"{code:.6g}"
        every.append(RowGroup(f"{by} {word}", cell.place, float(np.nextafter(code, -np.inf)), code))
    found, left = list[RowGroup](), dict[str, str]()
    for group in every:
        few = min(int(((rows > group.low) & (rows <= group.high)).sum()) for rows in samples) < _FEWEST
        if few or len(found) >= _MOST_GROUPS:
            left[group.name] = f"fewer than {_FEWEST} rows of a sample" if few else "rarer than the others"
        else:
            found.append(group)
    if missing:
        left[f"{by} missing"] = counted(missing, "row")
    return found, left
