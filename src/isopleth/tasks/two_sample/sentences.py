"""Sentences of a comparison: what was compared, whether the samples differ, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isopleth.core.p_values import LEVEL
from isopleth.results.text import in_words
from isopleth.tables.checks import TIMES_APART
from isopleth.tables.intervals import stretch_text
from isopleth.tasks.two_sample.findings import findings
from isopleth.tasks.two_sample.shift_given import ShiftGiven
from isopleth.tasks.two_sample.where import GroupsSought

if TYPE_CHECKING:
    from isopleth.tasks.two_sample.result import TwoSampleResult

# Parameters, with their options in the shell, that compare columns that are set aside for a reason.
_KEPT_BY = {"keep_times (--keep-times)": TIMES_APART, "keep_identifiers (--keep-id)": "identifier"}
# Share of rows in both samples from which it is said, beyond those that repeat within a sample.
_SHARED = 0.05


def sentences(found: TwoSampleResult) -> list[str]:
    """Return what a comparison says, in the order in which it is read: what was compared, what differs, and where."""
    changed = found.schema.sentence if found.schema else ""
    units = found.problem.units
    aside = "; ".join(f"{name} ({why})" for name, why in found.set_aside.items())
    keep = [what for what, why in _KEPT_BY.items() if why in found.set_aside.values()]
    how = f" {' and '.join(keep)} would compare more of them." if keep else ""
    words = [changed, f"Not compared: {aside}.{how}" if aside else "", _limited(found), _shared(found)]
    if found.problem.every is not None and found.problem.groups is None:
        used = [f"{some:,} of {every:,}" for some, every in zip(found.problem.sizes, found.sizes, strict=True)]
        words.append(
            f"The test uses {' and '.join(used)} rows, drawn at random; medians, spreads and shares are of all rows."
        )
    if found.problem.groups is not None and len(units.rows) < sum(found.sizes):
        words.append(
            "Groups change places with groups of as many rows only: the test uses "
            f"{len(units.rows):,} of {sum(found.sizes):,} rows, drawn at random."
        )
    return (
        _answer(found)
        + [sentence for sentence in words if sentence]
        + _finding(found)
        + _where(found)
        + _tolerated(found)
    )


def _answer(found: TwoSampleResult) -> list[str]:
    """Return the answer to what was asked for, in words."""
    asked = found.asked
    if asked is None:
        return []
    if isinstance(asked, GroupsSought):
        return asked.sentences()
    second = found.labels[1]
    words = [asked.sentence(second)] if isinstance(asked, ShiftGiven) else asked.sentences(second)
    if asked.target in found.limits:
        words.append(
            f"Limits hide values of {asked.target}, which count as equal here, so that the difference may be larger."
        )
    return words


def _answer_shows(found: TwoSampleResult) -> bool:
    """Tell whether the answer to what was asked for shows a difference."""
    asked = found.asked
    if asked is None:
        return False
    if isinstance(asked, ShiftGiven):
        return asked.pvalue <= LEVEL
    each = asked.found if isinstance(asked, GroupsSought) else asked.shifts
    return any(one.pvalue <= LEVEL for one in each)


def _limited(found: TwoSampleResult) -> str:
    """Return which values count as equal, since limits hide them in some rows."""
    parts = [f"{name} {in_words([stretch_text(*pair) for pair in pairs])}" for name, pairs in found.limits.items()]
    said = (
        [f"Values that a limit hides in some rows count as equal in all of them: {'; '.join(parts)}."] if parts else []
    )
    for name, count in found.drawn_limits.items():
        cells = "cell has a limit that hides" if count == 1 else "cells have a limit that hides"
        said.append(f"{count:,} {cells} more than half of {name}: other numbers inside the limit stand there.")
    return " ".join(said)


def _shared(found: TwoSampleResult) -> str:
    """Return how many rows the samples share, if more than rows repeat within them."""
    weights = found.problem.all_weights
    repeated = (weights - (weights > 0)).sum(axis=0) / found.sizes
    shares = np.array(found.shared_rows) / found.sizes
    if not (shares > _SHARED + 2.0 * repeated).any():
        return ""
    i = int(np.argmax(shares))
    count = "All" if shares[i] == 1.0 else f"{found.shared_rows[i]:,} of"
    names = ("first", "second")
    return f"{count} {found.sizes[i]:,} rows of the {names[i]} sample are also in the {names[1 - i]}."


def _where(found: TwoSampleResult) -> list[str]:
    """Return the groups in which columns changed, in words."""
    return [f"{each}." for each in found.changed_groups]


def _tolerated(found: TwoSampleResult) -> list[str]:
    """Return which columns differ by more and by less than the tolerance, in words."""
    if found.tolerance is None:
        return []
    verdicts, limit = found.against_tolerance(), f"{100.0 * found.tolerance:.3g} % of their values"
    parts = [
        ("more", f"Columns shown to differ in more than {limit}"),
        ("less", f"Columns shown to differ in {limit} at most"),
        ("open", f"Columns for which these rows show neither more nor less than {limit}"),
    ]
    named = [(words, [name for name, verdict in verdicts.items() if verdict == key]) for key, words in parts]
    return [f"{words}: {in_words(columns)}." for words, columns in named if columns]


def _finding(found: TwoSampleResult) -> list[str]:
    """Return what the test found in words, none of which go beyond its p-value."""
    n, m = found.sizes
    if found.pvalue > LEVEL:
        if _answer_shows(found):
            return [
                f"All columns together ({n:,} and {m:,} rows) are not shown to differ: p = {found.pvalue:.3g}. That is another "
                "test, which a difference in one column or group alone moves little; it does not take back the answer above."
            ]
        words = f"No difference between the two samples ({n:,} and {m:,} rows) is shown: p = {found.pvalue:.3g}."
        doubt = "That is no proof that they are equal; small samples show large differences only."
        return [words, *_accuracy(found), doubt]
    first = [f"The two samples ({n:,} and {m:,} rows) differ: p = {found.pvalue:.3g}.", *_accuracy(found)]
    return first + (findings(found) or ["No single column, and no pair of columns, is shown to differ."])


def _accuracy(found: TwoSampleResult) -> list[str]:
    """Return the accuracy of a classifier in words, which claims a difference only if the test shows one."""
    separation = found._separation
    if separation is None:
        return []
    if found.pvalue <= LEVEL:
        words = str(separation)
        return [f"{words[0].upper()}{words[1:]}."]
    limits = (
        f"A classifier assigns {100.0 * separation.accuracy:.1f} % of the rows to their sample, where guessing has 50 %"
    )
    return [
        f"{limits}, which shows no difference either."
        if separation.share_low == 0.0
        else f"{limits}; the test does not confirm this."
    ]
