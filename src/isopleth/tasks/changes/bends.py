"""Steps of changes of slope: a line that bends without a jump has one best place, two lines have one on either side of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isopleth.tasks.changes.neighbours import stretch_around
from isopleth.tasks.changes.segments import Noise

# Fewest steps between a bend and the changes beside it.
_LEAST = 6
# Least share of its square that a bent line keeps beside a straight one.
_APART = 1e-9
# Share of the square beside a straight line below which all is rounding.
_NOTHING = 1e-10


def at_bends(
    values: np.ndarray, steps: np.ndarray, chosen: np.ndarray, columns: Sequence[Sequence[int]], noises: Sequence[Noise]
) -> np.ndarray:
    """Move the `chosen` changes to where one line bends, if two lines without a common point describe no more.

    Two lines are fitted to the noise beside a bend as well, so that their best place is a few steps before or after it, and goes
    from one to the other with a few more values. Values are those of the description, with the noise of each column.
    """
    steps = np.array(steps, dtype=int)
    for i in np.flatnonzero(chosen).tolist():
        (start, end), place, own = stretch_around(steps, columns, i, len(values)), int(steps[i]), list(columns[i])
        if min(place - start, end - place) >= _LEAST:
            steps[i] = start + _bend(values[start:end, own], place - start, [noises[j] for j in own])
    return steps


def _bend(rows: np.ndarray, place: int, noises: list[Noise]) -> int:
    """Return the place of the bend of each column together, or `place` if a jump there saves more than its logarithm."""
    places = np.arange(_LEAST, len(rows) - _LEAST + 1)
    bent, broken = np.zeros(len(places)), 0.0
    for column, noise in zip(rows.T, noises, strict=True):
        count = len(column) - noise.order
        left, both = _sums_of_squares(column, places, place, noise)
        if both == 0.0:  # without noise all places are compared by rounding errors
            return place
        bent += count * np.log(left)
        broken += count * np.log(both) + np.log(count)
    return int(places[bent.argmin()]) if bent.min() <= broken else place


def _sums_of_squares(column: np.ndarray, places: np.ndarray, place: int, noise: Noise) -> tuple[np.ndarray, float]:
    """Return the sums of squared innovations beside a line that bends at each of the places, and beside two lines."""
    n = len(column)
    design = np.column_stack([np.ones(n), np.linspace(-1.0, 1.0, n)])
    own, *line = (_predicted(one, noise) for one in (column, *design.T))
    base = np.linalg.qr(np.column_stack(line))[0]
    away = own - base @ (base.T @ own)
    # A bend at p is a ramp that begins there, before which all is 0.
    ramp = np.convolve(noise.predictors[-1], np.arange(n) / n)[: len(own)]
    shifted = _products(np.array([away, *base.T]), ramp)
    squares = np.cumsum(ramp**2)[::-1]
    rest = squares - np.sum(shifted[1:] ** 2, axis=0)
    explained = np.where(rest > _APART * squares, shifted[0] ** 2 / np.maximum(rest, 1e-300), 0.0)
    after = np.arange(n) >= place
    two = np.column_stack([*line, *(_predicted(one * after, noise) for one in design.T)])
    apart = own - two @ np.linalg.lstsq(two, own, rcond=None)[0]
    straight = float(away @ away)
    left, both = straight - explained[places - noise.order], float(apart @ apart)
    return np.maximum(left, _NOTHING * straight), both if both > _NOTHING * straight else 0.0


def _products(rows: np.ndarray, ramp: np.ndarray) -> np.ndarray:
    """Return the products of rows with a ramp that begins at each of their steps."""
    size = 2 * len(ramp)
    spectra = np.fft.rfft(rows, size) * np.conj(np.fft.rfft(ramp, size))
    return np.asarray(np.fft.irfft(spectra, size)[:, : len(ramp)])


def _predicted(values: np.ndarray, noise: Noise) -> np.ndarray:
    """Return the errors of predictions by the noise, where all its lags exist."""
    return np.convolve(noise.predictors[-1], values)[noise.order : len(values)]
