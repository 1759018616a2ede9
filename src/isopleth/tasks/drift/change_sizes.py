"""Sizes of changes: what was observed in a stream where what is usual, and since when."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isopleth.tasks.drift.causes import GIVEN, KINDS, TOGETHER
from isopleth.tasks.drift.open_causes import DAYS_KEPT, Cause
from isopleth.tasks.drift.page import Page
from isopleth.tasks.drift.stream_rows import KeptRows

# Deviation of a normal law over the median distance from its median.
_DEVIATION = 1.4826
# Deviation of the square of a normal score.
_ROOT = 2.0**0.5
# Normal scores that vary by less than this are equal but for rounding.
_CONSTANT = 1e-9
# Slope of a level that is considered for its start, over the largest one of the evidence.
_LARGER = 2.0


class ChangeSizes:
    """Sizes and starts of changes in the rows of a stream that are kept."""

    def __init__(self, rows: KeptRows, positive: np.ndarray, counts: np.ndarray) -> None:
        self._rows, self._model = rows, rows.model
        self._positive, self._counts = positive, counts  # (d,): columns without negative cells, and of small counts

    def measured(self, page: Page, cause: Cause, t: int, days: int = DAYS_KEPT) -> Page:
        """Return a page with the size of its change in the rows since its start, at most those of some days."""
        first = max(cause.start, t + 1 - days * self._model.per_day, self._rows.first)
        part, (j, other) = self._rows.between(first, t), cause.columns
        known = ~self._rows.missing[part][:, [j, other]].any(axis=1)
        if not known.any():
            return page
        if cause.kind == TOGETHER:
            return self._with_correlation(page, self._rows.innovations(first, t)[known])
        z = self._rows.scores[part][known]
        if KINDS[cause.kind] == "spread":
            size = self._spread(z[:, j], self._rows.innovations(first, t)[known, j], j, page.direction)
        else:
            middle = np.median(z, axis=0)
            given = KINDS[cause.kind] == "given" and self._model.dim > 1
            size = float(self._model.residual(middle)[j] if given else middle[j])
        cells, usual = (each[part][known, j] for each in (self._rows.rows.cells, self._rows.rows.usual))
        if self._counts[j]:  # medians of small counts are often equal before and after
            both = ~np.isnan(usual)
            now, before = (float(each[both].mean()) if both.any() else np.nan for each in (cells, usual))
            return self.sized(page, now, before, size, int(both.sum()))
        if page.kind == "spread":
            return replace(page, size=size)
        return self.sized(page, float(np.median(cells)), float(np.nanmedian(usual)), size)

    def sized(self, page: Page, observed: float, usual: float, size: float, of_rows: int = 0) -> Page:
        """Return a page with what was observed where what is usual."""
        ratio = self._positive[page.columns[0]] and usual > 0.0
        times = float(observed / usual) if ratio else np.nan
        return replace(page, observed=float(observed), usual=float(usual), times=times, size=size, of_rows=of_rows)

    def with_extreme(self, page: Page, t: int, j: int, base: float) -> Page:
        """Return the page of an incident with the cell that is farthest from what is usual."""
        place = t - self._rows.first
        size = float(self._rows.scores[place, j] - base) if place >= 0 else 0.0
        if j != page.columns[0] or (np.isfinite(page.size) and size * page.direction <= page.size * page.direction):
            return page
        return self.sized(page, self._rows.rows.cells[place, j], self._rows.rows.usual[place, j], size)

    def _spread(self, z: np.ndarray, e: np.ndarray, j: int, direction: int) -> float:
        """Return the spread of a column over the usual one: of its scores, or of what the rows before leave open of them.

        The evidence is of the latter, as a column that follows itself may jump from row to row with the spread that it had.
        """
        whole = _DEVIATION * float(np.median(np.abs(z - np.median(z)))) / float(self._model.spread[j])
        return max(direction * whole, direction * float(np.sqrt(np.mean(e**2)))) * direction

    def _with_correlation(self, page: Page, innovations: np.ndarray) -> Page:
        """Return a page of two columns with their correlation in the reference and now."""
        one, other = page.columns[0], page.columns[-1]
        e = innovations[:, [one, other]]
        if len(e) < 3 or not (e.std(axis=0) > _CONSTANT).all():
            return page
        observed, usual = float(np.corrcoef(e.T)[0, 1]), float(self._model.correlation[one, other])
        return replace(page, usual=usual, observed=observed, size=observed - usual)

    def onset(self, t: int, ratio: int, since: int) -> int:
        """Return the row since which any slope of the change is most likely; evidence for a small one begins long before.

        So does that for the largest slope of a level if the change is larger: half of the slope in the rows before is enough.
        """
        model = self._model
        if since < self._rows.first:
            return since
        statistic, sign = model.statistic[ratio], np.sign(model.slope[ratio])
        alike = (model.statistic == statistic) & (np.sign(model.slope) == sign)
        slopes, losses = model.slope[alike], model.loss[alike]
        if model.kind[ratio] <= GIVEN:  # a few rows far out are no start of a spread
            largest = int(np.argmax(np.abs(slopes)))
            slopes = np.append(slopes, _LARGER * slopes[largest])
            losses = np.append(losses, _LARGER**2 * losses[largest])
        rows = self._rows.standard(since, t)[::-1, [statistic]]
        gains = np.cumsum(rows * slopes - losses, axis=0)
        return t - int(np.argmax(gains.max(axis=1)))

    def level_or_spread(self, t: int, ratio: int, since: int) -> int:
        """Return the likelihood ratio that names a change: of a level in the place of a spread if that explains more.

        Rows far from what is usual on one side are far from it at all.
        """
        model = self._model
        if KINDS[model.kind[ratio]] != "spread":
            return ratio
        rows = self._rows.standard(max(since, self._rows.first), t)
        levels = np.flatnonzero((model.kind == 0) & (model.columns[:, 0] == model.columns[ratio, 0]))
        level, square = rows[:, model.statistic[levels[0]]].mean(), 1.0 + _ROOT * rows[:, model.statistic[ratio]].mean()
        if level**2 <= square - 1.0 - np.log(max(square, np.finfo(np.float64).tiny)):  # gains of normal laws, twice
            return ratio
        return int(levels[np.argmax(np.sign(level) * model.slope[levels])])


def extent(page: Page) -> float:
    """Return the size of a change in its direction: of a spread what it has more or less than the usual one."""
    return (page.size - float(page.kind == "spread")) * page.direction
