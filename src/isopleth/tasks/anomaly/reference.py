"""The rule for clean references: the density of all rows at a width tied to their nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isopleth.scaled_columns import bounded
from isopleth.tasks.anomaly.evidence import Ellipsoid
from isopleth.tasks.anomaly.table import (
    NEW,
    Limits,
    TrainingTable,
    blocks,
    counterfactual_distances,
    distances_between,
    map_blocks,
)

WIDTH = 1 / 4  # width of the kernel over the median distance between nearest neighbours
WIDTH_ROWS = 1000  # number of rows that determine this median
MOST_CENTERS = 20_000  # of more rows, this many are drawn at random
AT_ONCE = 2**17  # distances in one block of a thread, so that they stay in the processor's cache


@dataclass(frozen=True)
class ReferenceDensity:
    r"""Kernel density :math:`\sum_i c_i \exp(-|x - x_i|_1/h)` of all distinct rows.

    If all training rows are ordinary, the density may follow each of them. With h a quarter of the median distance
    between nearest neighbours, the density near a row depends mostly on this row, and farther away on all rows of a
    region. A training row is judged by the density without one copy of it or, if rows belong to groups, without the rows of
    its group.

    Parameters
    ----------
    scale : ndarray of shape (d,)
        Divides each column: its standard deviation.
    centers : ndarray of shape (m, d)
        Distinct rows, divided by the scale.
    copies : ndarray of shape (m,)
        Number of times each row occurs.
    number : ndarray of int
        Index among the centres of each distinct training row; NEW for rows that were not drawn.
    width : float
        The width h.
    level : float
        Log density of a median training row, from which log densities are counted.
    mismatch : ndarray of shape (q,)
        Distance of unlike categories in the last q columns.
    filler : Ellipsoid, optional
        Fills missing cells, where training rows had any.
    groups : ndarray of int, optional
        Group of each distinct training row.
    """

    scale: np.ndarray
    centers: np.ndarray
    copies: np.ndarray
    number: np.ndarray
    width: float
    mismatch: np.ndarray
    filler: Ellipsoid | None = None
    groups: np.ndarray | None = None
    level: float = 0.0

    @classmethod
    def fit(cls, table: TrainingTable, seed: int, limits: Limits) -> tuple[Self, np.ndarray]:
        """Fit to distinct rows.

        Returns
        -------
        density : ReferenceDensity
            The rule.
        surprises : ndarray of shape (m, 1)
            Result of its :meth:`surprises` for the distinct training rows.
        """
        filler = None
        training = table
        if table.has_gaps:
            filler = Ellipsoid.fit(table, limits)
            table = table.filled(filler.fill(table.rows, limits))
        # Ordinary rows have no extreme values, so the plain standard deviation is used.
        scale = np.sqrt(
            table.copies @ (table.rows - table.copies @ table.rows / table.copies.sum()) ** 2 / table.copies.sum()
        )
        scale = np.where(scale > 0.0, scale, table.spread)
        scale[table.categories.n_numeric :] = 1.0  # codes stay codes
        mismatch = table.categories.mismatch
        n = len(table.rows)
        rng = np.random.default_rng(seed)
        drawn = np.arange(n) if n <= MOST_CENTERS else np.sort(rng.choice(n, size=MOST_CENTERS, replace=False))
        centers = bounded(table.rows[drawn] / scale)
        number = np.full(n, NEW)
        number[drawn] = np.arange(len(drawn))
        some = rng.permutation(len(centers))[:WIDTH_ROWS]
        # Distinct rows are 0 apart only where gaps were filled alike.
        of_group = None if table.groups is None else table.groups[drawn]
        apart = _nearest(centers, np.sort(some), mismatch, of_group, limits)
        width = WIDTH * float(np.median(apart[apart > 0.0])) if (apart > 0.0).any() else 1.0
        density = cls(scale, centers, table.copies[drawn], number, width, mismatch, filler, table.groups)
        found = density.surprises(training.rows, table.known, limits)[:, 0]
        level = -float(np.median(found[table.place]))
        return replace(density, level=level), (found + level)[:, None]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Name of the only kind of evidence."""
        return ("density",)

    def surprises(self, rows: np.ndarray, known: np.ndarray, limits: Limits) -> np.ndarray:
        """Return minus the log density of rows, of shape (n, 1); `known` are numbers of training rows, or NEW."""
        m = len(self.centers)
        rows = self.complete(rows, limits)
        parts = blocks(len(rows), 8.0 * 3 * m, limits, max(1, AT_ONCE // m))

        def surprise(part: slice) -> np.ndarray:
            distances = distances_between(self.centers, bounded(rows[part] / self.scale), self.mismatch)
            return self._surprise(distances[:, :, None], known[part])[:, 0]

        return np.concatenate(map_blocks("density of all rows", surprise, parts, limits))[:, None]

    def complete(self, rows: np.ndarray, limits: Limits) -> np.ndarray:
        """Return rows with their gaps filled: by the conditional mean or, if no training row had a gap, by the median."""
        if self.filler is not None:
            return self.filler.fill(rows, limits)
        return np.where(np.isnan(rows), 0.0, rows)

    def counterfactual_surprise(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the surprise of rows as they are and with each of `values` in each cell, of shape (n, d, 1 + k)."""
        complete = self.complete(rows, Limits(np.inf, 1))
        here, there = bounded(complete / self.scale), bounded(values / self.scale)
        after = counterfactual_distances(here, there, self.centers, self.mismatch)
        return np.stack([self._surprise(distances, known) for distances in after], axis=1)

    def counterfactual_bytes(self, values: int) -> float:
        """Return the scratch memory of :meth:`counterfactual_surprise` for one row and this number of values."""
        m, d = self.centers.shape
        return 8.0 * m * d * (values + 4)

    def _surprise(self, distances: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return minus the log density at distances of shape (m, n, k), which are overwritten."""
        distances *= -1.0 / self.width
        distances += np.log(self.copies)[:, None, None]
        if self.groups is not None:
            return self._without_groups(distances, known, self.groups)
        own = np.where(known == NEW, NEW, self.number[known])
        for i in np.flatnonzero(own != NEW):
            copies = self.copies[own[i]]
            distances[own[i], i] += np.log((copies - 1.0) / copies) if copies > 1.0 else -np.inf
        top = distances.max(axis=0)
        distances -= top
        np.exp(distances, out=distances)
        total = self.copies.sum() - (own != NEW)
        return self.level - (top + np.log(distances.sum(axis=0)) - np.log(total)[:, None])

    def _without_groups(self, terms: np.ndarray, known: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return minus the log density of each row without the rows of its group, from the logarithms of its terms."""
        own = np.where(known == NEW, -1, groups[known])
        of_center = np.empty(len(self.centers), dtype=np.intp)
        drawn = self.number != NEW
        of_center[self.number[drawn]] = groups[drawn]
        same = of_center[:, None] == own
        terms[same] = -np.inf
        total = self.copies.sum() - self.copies @ same
        top = terms.max(axis=0)
        terms -= top
        np.exp(terms, out=terms)
        return self.level - (top + np.log(terms.sum(axis=0)) - np.log(total)[:, None])


def _nearest(
    centers: np.ndarray, some: np.ndarray, mismatch: np.ndarray, groups: np.ndarray | None, limits: Limits
) -> np.ndarray:
    """Return the distance of `some` of the centres to the nearest other centre, of another group if there are groups."""

    def nearest(part: slice) -> np.ndarray:
        distances = distances_between(centers[some[part]], centers, mismatch)
        distances[np.arange(len(distances)), some[part]] = np.inf
        if groups is not None:
            distances[groups[some[part], None] == groups] = np.inf
        return distances.min(axis=1)

    parts = blocks(len(some), 8.0 * 2 * len(centers), limits, max(1, AT_ONCE // len(centers)))
    return np.concatenate(map_blocks("nearest rows", nearest, parts, limits))
