"""The search for changes: the series is described, legs run in their order, their changes are joined, named and placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from isopleth.tasks.changes.bends import at_bends
from isopleth.tasks.changes.described import TIME as DESCRIPTION
from isopleth.tasks.changes.described import CalibratedDescription, described
from isopleth.tasks.changes.description_length import RUNS, logs_of_growth
from isopleth.tasks.changes.incidents import with_incidents
from isopleth.tasks.changes.legs import LEGS
from isopleth.tasks.changes.legs.leg import Candidate, Leg, merged, one_a_gap
from isopleth.tasks.changes.naming import kind_of_location, kind_of_shape, scatter_of
from isopleth.tasks.changes.neighbours import stretch_around
from isopleth.tasks.changes.positions import by_windows, positions_of
from isopleth.tasks.changes.preparation import spikes
from isopleth.tasks.changes.series import ObservedSeries
from isopleth.tasks.changes.states import states_of

# Probability of an interval for the position of a change.
COVERAGE = 0.9
# Fewest steps from an incident within which a change is one of its edges.
_EDGE = 5
# Time of the scans and of all in a progress bar, in simulated series.
_SCANS = RUNS // 2
TIME = 3 * RUNS + DESCRIPTION + _SCANS


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes of a series of n steps."""

    steps: np.ndarray  # (m,), int: first steps after the changes
    kinds: np.ndarray  # (m,), str
    p_values: np.ndarray  # (m,)
    columns: list[tuple[int, ...]]  # columns in which each change was seen
    intervals: np.ndarray  # (m, 2), int
    states: np.ndarray  # (m + 1,), int: states of the segments
    trend: str = ""  # "line" or "curve" if the series drifts along one
    searched: np.ndarray | None = None  # (n, d): values in which changes were sought, in the units of the series
    # Kinds that were sought, and steps that have to follow them.
    followed_by: dict[str, int] = field(default_factory=dict)
    judged: tuple[str, ...] = ()  # how each column was judged given others: "rate" or "residual"

    def of_columns(self, numbers: np.ndarray) -> Changes:
        """Return the changes of a series of which the searched columns are those with these `numbers`."""
        return replace(self, columns=[tuple(int(j) for j in numbers[list(some)]) for some in self.columns])


NOTHING = Changes(
    np.empty(0, dtype=int),
    np.empty(0, dtype="<U9"),
    np.empty(0),
    [],
    np.empty((0, 2), dtype=int),
    np.zeros(1, dtype=int),
)


def changes_of(series: ObservedSeries, rng: np.random.Generator, legs: Sequence[Leg] = LEGS) -> Changes:
    """Find the changes of a series by the legs."""
    model = described(series, rng)
    changes: list[Candidate] = []
    followed_by: dict[str, int] = {}
    for leg in legs:
        for new in leg.candidates(series, model, rng):
            changes = merged(changes, new)
            followed_by |= {kind: min(steps, followed_by.get(kind, steps)) for kind, steps in new.followed_by.items()}
            model = new.described or model
    changes = one_a_gap(changes, np.any(~series.missing, axis=1))
    placed = _placed(series, model, changes, _named(series, model, changes))
    kinds = with_incidents(series.values, placed.steps, placed.kinds, placed.columns)
    trend = "curve" if model.curve is not None else "line" if model.found.location.degree > 0 else ""
    found = _not_beside_incidents(replace(placed, kinds=kinds, trend=trend, followed_by=followed_by), series)
    quantities = {int(step): one.quantity for step, one in zip(placed.steps, changes, strict=True)}
    told = _told(found, _sources(series, model), quantities, model.cycle)
    plain = series.shapes if model.curve is None else series.shapes - model.curve
    found = replace(found, states=states_of(plain, found.steps, model.cycle, rng.spawn(1)[0], told))
    series.tick(_SCANS)
    return _with_sharp_incidents(found, series)


def _told(
    found: Changes, sources: dict[str, np.ndarray], quantities: dict[int, str], cycle: float | None
) -> list[tuple[int, np.ndarray]]:
    """Return the numbers of the changes of a level or a scatter, with these of their columns in all segments.

    A scatter is that of the quantity that was compared: the scatter of cycles may change where that of innovations does not.
    """
    told = []
    for number, (kind, columns) in enumerate(zip(found.kinds.tolist(), found.columns, strict=True)):
        if kind not in ("level", "incident", "scatter"):
            continue
        scatter = kind == "scatter"
        source = sources[quantities[int(found.steps[number])] if scatter else "location"][:, list(columns)]
        parts = np.split(source / np.maximum(source.std(axis=0), 1e-300), found.steps)
        told.append((number, np.array([scatter_of(one, cycle) if scatter else one.mean(axis=0) for one in parts])))
    return told


def _not_beside_incidents(found: Changes, series: ObservedSeries) -> Changes:
    """Leave out the changes beside incidents that were taken out: they are edges of these."""
    kept = np.ones(len(found.steps), dtype=bool)
    for one in series.incidents:
        reach = max(_EDGE, (one.end - one.start) // 2)
        kept &= (found.steps < one.start - reach) | (found.steps > one.end + reach) | (found.kinds == "incident")
    return replace(
        found,
        steps=found.steps[kept],
        kinds=found.kinds[kept],
        p_values=found.p_values[kept],
        columns=[some for some, stays in zip(found.columns, kept, strict=True) if stays],
        intervals=found.intervals[kept],
    )


def _with_sharp_incidents(found: Changes, series: ObservedSeries) -> Changes:
    """Add both ends of each incident that was taken out; one that goes on at the end is a level."""
    for one in series.incidents:
        before, states = int(np.sum(found.steps < one.start)), found.states
        goes_on = one.end == len(series)
        ends = np.array([one.start] if goes_on else [one.start, one.end])
        own = [states[before], int(states.max()) + 1, states[before]][: len(ends) + 1]
        found = replace(
            found,
            steps=np.insert(found.steps, before, ends),
            kinds=np.insert(found.kinds, before, ["level" if goes_on else "incident"] * len(ends)),
            p_values=np.insert(found.p_values, before, [one.pvalue] * len(ends)),
            columns=[*found.columns[:before], *[one.columns] * len(ends), *found.columns[before:]],
            intervals=np.insert(found.intervals, before, np.column_stack([ends, ends]), axis=0),
            states=_numbered(np.concatenate([states[:before], own, states[before + 1 :]])),
        )
    return found


def _numbered(states: np.ndarray) -> np.ndarray:
    """Return states numbered from 0 as they occur."""
    order = {state: number for number, state in enumerate(dict.fromkeys(states.tolist()))}
    return np.array([order[state] for state in states.tolist()])


def _named(
    series: ObservedSeries, model: CalibratedDescription, changes: list[Candidate]
) -> list[tuple[str, tuple[int, ...]]]:
    """Return the kind of each change and its columns, by the segments on either side in the quantity that was compared."""
    bounds, sources = [0, *(one.step for one in changes), len(series)], _sources(series, model)
    named: list[tuple[str, tuple[int, ...]]] = []
    for one, (start, place, end) in zip(changes, zip(bounds, bounds[1:], bounds[2:], strict=False), strict=True):
        source = sources[one.quantity]
        left, right = source[start:place], source[place:end]
        if one.column is not None:
            named.append(("level" if one.quantity == "location" else "relation", (one.column,)))
        elif one.quantity == "location":
            named.append(kind_of_location(left, right, one.lines))
        elif one.quantity == "scatter":
            named.append(("scatter", kind_of_shape(left, right, None)[1]))
        else:
            named.append(kind_of_shape(left, right, model.cycle))
    return [_among_own(series, changes, named, number) for number in range(len(changes))]


def _among_own(
    series: ObservedSeries, changes: list[Candidate], named: list[tuple[str, tuple[int, ...]]], number: int
) -> tuple[str, tuple[int, ...]]:
    """Return the kind and the columns of a change, of a level or slope by the segments of its columns alone.

    A change of another column would cut these short.
    """
    (kind, own), one = named[number], changes[number]
    if one.quantity != "location" or len(own) == series.values.shape[1]:
        return kind, own
    start, end = stretch_around([one.step for one in changes], [columns for _, columns in named], number, len(series))
    left, right = (side[:, list(own)] for side in np.split(series.values[start:end], [one.step - start]))
    return kind_of_location(left, right, one.lines)[0], own


def _sources(series: ObservedSeries, model: CalibratedDescription) -> dict[str, np.ndarray]:
    """Return the quantities that are compared."""
    residuals = series.values if model.residuals is None else model.residuals
    return {"location": series.values, "scatter": model.innovations, "shape": model.shapes, "given": residuals}


def _placed(
    series: ObservedSeries,
    model: CalibratedDescription,
    changes: list[Candidate],
    named: list[tuple[str, tuple[int, ...]]],
) -> Changes:
    """Move the changes that scans place roughly, and add the intervals of all."""
    steps = np.array([one.step for one in changes], dtype=int)
    kinds = np.array([kind for kind, _ in named], dtype="<U9")
    location = model.found.location
    bent = (kinds == "slope") & np.array([one.quantity == "location" for one in changes], dtype=bool)
    steps = at_bends(model.found.prepared, steps, bent, [columns for _, columns in named], location.noises)
    places = by_windows(model.shapes, steps, np.isin(kinds, ["shape", "frequency"]), model.cycle)
    rough = Changes(
        places,
        kinds,
        np.array([one.pvalue for one in changes]),
        [columns for _, columns in named],
        np.empty((len(changes), 2), dtype=int),
        np.arange(len(changes) + 1),
    )
    quantities = np.array([one.quantity for one in changes], dtype="<U8")
    # A scan finds changes in blocks, whose bounds depend on the length of the series; an autoregression for each side places
    # those of scatter, frequency and relation more precisely.
    blockwise = (quantities == "shape") & np.isin(kinds, ["scatter", "frequency", "relation"]) & (places == steps)
    steps, intervals = _positions(series, model, rough, quantities, blockwise)
    return replace(rough, steps=steps, intervals=intervals)


def _positions(
    series: ObservedSeries,
    model: CalibratedDescription,
    changes: Changes,
    quantities: np.ndarray,
    blockwise: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return steps and intervals of changes, each in the quantity that was compared; `blockwise` ones are moved."""
    lines = (changes.kinds == "slope") | (model.found.location.degree > 0)
    plain = logs_of_growth(series.values) - (0.0 if model.curve is None else model.curve)
    used = ~series.missing & ~np.column_stack([spikes(column) for column in plain.T])
    steps, intervals = changes.steps.copy(), changes.intervals.copy()
    for source, own in ((plain, ["location"]), (model.shapes, ["scatter", "shape"]), (model.residuals, ["given"])):
        chosen = np.isin(quantities, own)
        if source is not None and chosen.any():
            moved, ends = positions_of(
                source, changes.steps, changes.columns, lines, blockwise, COVERAGE, used, model.cycle
            )
            steps[chosen], intervals[chosen] = moved[chosen], ends[chosen]
    return steps, intervals
