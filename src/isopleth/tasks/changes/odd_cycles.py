"""Cycles of a season that are absent, such as a holiday on a working day, or come where there usually is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from isopleth.tasks.changes.preparation import TO_SIGMA

# Fewest steps of a cycle, fewest cycles, and fewest of the longest season where cycles at its phases are compared.
_SHORTEST, _FEWEST, _FEWEST_LONG = 8, 10, 3
# Parts of a season that are tried as cycles, which are the days of a week, and least share of its variance that their mean has.
_DAYS, _SHARE = 7, 0.3
# Least deviation of a size, in those of the working days beside it, and largest share of the cycles that deviate.
_LEAST, _MOST = 0.75, 0.15
# Cycles for a degree of freedom of the robust deviation of sizes; with it the probability is right for 10 to 60 normal sizes.
_CYCLES_A_FREEDOM = 2.0
# Working days before a cycle and after it, whose median sizes are the usual ones: it deviates from both, since days that grow
# with the level of a rate deviate from one.
_BESIDE, _NEAREST = 14, 5
# Share of a cycle by which one may come early or late, and least part of a usual size that it then has: it is not absent.
_LATE, _PRESENT = 0.25, 0.5
# Largest difference of the levels on both sides, as a share of the height.
_COMES_BACK = 0.5
# Share of a cycle in which it is lowest, where it begins; and how far the middle of its range is below its mean, as a share of
# the range, if it dips and begins where it is highest.
_QUIET, _DIPS = 0.25, 0.04


@dataclass(frozen=True, eq=False)
class OddCycles:
    """A column with its season, cut into cycles whose sizes are compared."""

    values: np.ndarray  # (n,)
    wave: np.ndarray  # (n,): the mean cycle
    bounds: np.ndarray  # (m + 1,)
    alike: int  # number of cycles after which they are alike, as days of the week are; 1 if all are

    @classmethod
    def of(cls, values: np.ndarray, season: np.ndarray, periods: Sequence[float]) -> OddCycles | None:
        """Cut a column into the shortest cycles that its season has; None if these are short or few."""
        longest = max((one for one in periods if _FEWEST_LONG * one <= len(values)), default=min(periods))
        for period in (min(periods) / _DAYS, min(periods)):
            wave = _mean_cycle(season, period)
            if period < _SHORTEST or len(values) < _FEWEST * period or np.var(wave) < _SHARE * np.var(season):
                continue
            alike = round(longest / period)
            alike = alike if abs(longest - alike * period) < 0.5 else 1
            return cls(values, wave, _bounds(wave, period), alike) if np.ptp(wave) > 0.0 else None
        return None

    def found(self, rate: float) -> list[tuple[int, int, float]]:
        """Return start, end and p-value of what deviates in each cycle that is absent or comes where there is none."""
        sizes = self._sizes()
        like = np.array([np.median(sizes[k % self.alike :: self.alike]) for k in range(len(sizes))])
        # Working days are compared with all working days, and days off with all of these.
        working = like >= 0.5 * like.max()
        usual = _medians_beside(sizes, np.flatnonzero(working))
        if usual.min() <= 0.0:
            return []
        shares = sizes / usual
        both = shares - np.where(working, 1.0, np.median(shares[:, ~working]) if not working.all() else 0.0)
        spread = TO_SIGMA * float(np.median(np.abs(both - np.median(both))))
        if spread <= 0.0:
            return []
        off = np.where(both[0] * both[1] > 0.0, both[np.abs(both).argmin(axis=0), np.arange(len(sizes))], 0.0)
        chances = 2.0 * len(off) * student.sf(np.abs(off) / spread, len(off) / _CYCLES_A_FREEDOM)
        odd = np.flatnonzero((chances <= rate) & (np.abs(off) >= _LEAST))
        if len(odd) > _MOST * len(off):
            return []
        kept = [k for k in odd.tolist() if off[k] > 0.0 or not self._is_late(k, _PRESENT * usual[:, k].min())]
        stretches = [(self._stretch(k, k % self.alike), float(chances[k])) for k in kept]
        return [(*stretch, chance) for stretch, chance in stretches if stretch is not None]

    def _sizes(self) -> np.ndarray:
        """Return the size of each cycle."""
        cycles = zip(*(np.split(one, self.bounds)[1:-1] for one in (self.values, self.wave)), strict=True)
        return np.array([_size(y, x) for y, x in cycles])

    def _is_late(self, number: int, least: float) -> bool:
        """Tell whether a cycle comes early or late, as those of a period that wanders."""
        start, end = self.bounds[number : number + 2].tolist()
        most = round(_LATE * (end - start))
        wave, steps = self.wave[start:end], np.arange(start, end)
        return any(_size(self._at(steps + by), wave) >= least for by in range(-most, most + 1))

    def _stretch(self, number: int, phase: int) -> tuple[int, int] | None:
        """Return first step and end of what deviates in a cycle from those alike; None if no level comes back beside it."""
        start, end = self.bounds[number : number + 2].tolist()
        shifts = np.delete(self.bounds[phase : -1 : self.alike] - start, number // self.alike)
        steps = np.arange(2 * start - end, 2 * end - start)
        own, others = self._at(steps), self._at(steps + shifts[:, None])
        before, off, after = np.split(own - np.nanmedian(others, axis=0), 3)
        sums = np.concatenate([[0.0], np.cumsum(off)])
        first, last = np.triu_indices(len(sums), 1)
        best = int(np.argmax(np.abs(sums[last] - sums[first]) / np.sqrt(last - first)))
        low, high = int(first[best]), int(last[best])
        height = abs(sums[high] - sums[low]) / (high - low)
        return None if abs(after.mean() - before.mean()) > _COMES_BACK * height else (start + low, start + high)

    def _at(self, steps: np.ndarray) -> np.ndarray:
        """Return the values at steps; those beyond an end are the last ones at the same phase."""
        period = self.bounds[1] - self.bounds[0]
        last = len(self.values) - 1
        inside = np.where(steps < 0, steps + period, np.where(steps > last, steps - period, steps))
        return np.asarray(self.values[np.clip(inside, 0, last)])


def _size(values: np.ndarray, wave: np.ndarray) -> float:
    """Return the size of a cycle, by least squares on the mean cycle."""
    away = wave - wave.mean()
    return float((values - values.mean()) @ away / (away @ away))


def _medians_beside(sizes: np.ndarray, these: np.ndarray) -> np.ndarray:
    """Return the median sizes of the nearest of these before each cycle and after it, (2, m); near an end, of the few nearest."""
    out = np.empty((2, len(sizes)))
    for k in range(len(sizes)):
        first, last = np.searchsorted(these, [k, k + 1])
        sides = these[max(first - _BESIDE, 0) : first], these[last : last + _BESIDE]
        both = np.concatenate(sides)
        near = both[np.argsort(np.abs(both - k), kind="stable")[:_NEAREST]]
        out[:, k] = [np.median(sizes[side if 2 * len(side) > _NEAREST else near]) for side in sides]
    return out


def _mean_cycle(season: np.ndarray, period: float) -> np.ndarray:
    """Return the mean cycle of a season at each step."""
    phases = (np.arange(len(season)) % period).astype(int)
    means = np.bincount(phases, season) / np.bincount(phases)
    return np.asarray(means[phases] - means.mean())


def _bounds(wave: np.ndarray, period: float) -> np.ndarray:
    """Return the bounds of whole cycles, which begin where the mean cycle is low, or high if it dips."""
    length = round(period)
    quiet = max(round(_QUIET * length), 1)
    rolled = np.convolve(np.resize(wave[:length], length + quiet - 1), np.full(quiet, 1.0 / quiet), mode="valid")
    dips = -0.5 * (rolled.min() + rolled.max()) > _DIPS * np.ptp(rolled)
    first = (int(np.argmax(rolled) if dips else np.argmin(rolled)) + quiet // 2) % length
    count = int((len(wave) - first) / period)
    return np.round(first + period * np.arange(count + 1)).astype(int)
