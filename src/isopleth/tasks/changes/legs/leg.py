"""A leg of the search for changes: what it returns, and how its changes are joined with those of other legs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from isopleth.tasks.changes.described import CalibratedDescription
from isopleth.tasks.changes.series import ObservedSeries

# Reaches within which changes of two legs are the same change.
NEAR = 2.0


@dataclass(frozen=True)
class Candidate:
    """A change that one leg found."""

    step: int  # first step after the change
    pvalue: float  # least rate of the leg at which it would be found
    # What was compared: "location", "scatter" (of innovations), "shape" (mean embeddings) or "given" (the other columns).
    quantity: str
    column: int | None = None  # column that was compared alone, if one was
    lines: bool = False  # whether it is between lines and not between levels


@dataclass(frozen=True, eq=False)
class LegCandidates:
    """Changes that a leg found together."""

    changes: list[Candidate]
    reach: float = 0.0  # accuracy of the steps: a change of an earlier leg within twice this is the same change
    described: CalibratedDescription | None = (
        None  # description that later legs get, if it is no longer the one that was given
    )
    # Kinds of changes that were sought, and how many steps have to follow them.
    followed_by: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Leg:
    """One way to look for changes.

    `run(series, described, rng)` yields candidates at the rate ``series.rate``, which is the detector's times `share`; their
    p-values are least rates of the leg. A leg that does not apply to a series yields nothing.
    """

    name: str
    share: float  # share of the false alarm rate of the detector
    run: Callable[[ObservedSeries, CalibratedDescription, np.random.Generator], Iterable[LegCandidates]]

    def candidates(
        self, series: ObservedSeries, described: CalibratedDescription, rng: np.random.Generator
    ) -> Iterable[LegCandidates]:
        """Yield the candidates with p-values of the whole detector."""
        for found in self.run(replace(series, rate=self.share * series.rate), described, rng):
            changes = [replace(one, pvalue=min(1.0, one.pvalue / self.share)) for one in found.changes]
            yield replace(found, changes=changes)


def merged(changes: list[Candidate], found: LegCandidates) -> list[Candidate]:
    """Add candidates that are farther from the changes known than twice their reach."""
    near = NEAR * found.reach
    return changes + [one for one in found.changes if all(abs(one.step - other.step) > near for other in changes)]


def one_a_gap(changes: list[Candidate], known: np.ndarray) -> list[Candidate]:
    """Keep the surest of changes between which more steps are missing than known: a gap is filled along a line."""
    kept: list[Candidate] = []
    for one in sorted(changes, key=lambda one: one.step):
        if kept and 2 * np.sum(known[kept[-1].step : one.step]) < one.step - kept[-1].step:
            kept.append(min(kept.pop(), one, key=lambda two: two.pvalue))
        else:
            kept.append(one)
    return kept
