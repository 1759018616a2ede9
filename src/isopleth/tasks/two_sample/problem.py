"""Two samples laid out for a permutation test: units, labels, and functions around centres of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isopleth.difference.samples import TwoSamples
from isopleth.errors import InputError
from isopleth.frame import bounded
from isopleth.operators.threads import effective_n_jobs
from isopleth.tasks.two_sample.permutation import Labels, Units
from isopleth.tasks.two_sample.permutation_scores import Basis, bases, drawn_in, frame_of, length_scales, score_table

_SCALES, _SCALES_OF_COLUMNS = 12, 6
_CENTERS_OF_COLUMNS = 40


@dataclass(frozen=True, eq=False)
class TwoSampleProblem:
    """Everything here comes from the rows of both samples together, so that labels can be permuted afterwards.

    Parameters
    ----------
    samples : TwoSamples
        The rows.
    names : list of str
        What messages call the columns.
    permutations, centers : int
        How many.
    seed : int
        Of the units, the permutations and the centres.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.
    """

    samples: TwoSamples
    names: list[str]
    permutations: int
    centers: int
    seed: int
    memory_limit: float
    n_jobs: int | None

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of the samples."""
        return self.samples.split, len(self.samples.place) - self.samples.split

    @property
    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """The samples as they came."""
        rows = self.samples.rows[self.samples.place]
        return rows[: self.samples.split], rows[self.samples.split :]

    @cached_property
    def units(self) -> Units:
        """What is permuted."""
        return Units.of(*self.sizes, np.random.default_rng(self.seed))

    @cached_property
    def frame(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Columns that vary, as a mask, and over all rows of both samples what :func:`frame_of` says of each.

        Rows count as often as they come: if equal ones were merged, a column's frame would depend on the other columns.

        Raises
        ------
        InputError
            If a column is of a size at which these cannot be formed.
        """
        keep = self.samples.rows.min(axis=0) < self.samples.rows.max(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            # In lexical order: sums round by order, and which row came first must not matter.
            middle, spread, far = frame_of(
                np.repeat(self.samples.rows[:, keep], np.bincount(self.samples.place), axis=0)
            )
        bad = ~(np.isfinite(spread) & (spread > 1e-150) & (spread < 1e150))
        if bad.any():
            name = self.names[np.flatnonzero(keep)[np.argmax(bad)]]
            raise InputError(f"{name} is of a size that leaves no length scale; rescale it to numbers nearer to 1.")
        return keep, middle, spread, far

    @cached_property
    def rows(self) -> np.ndarray:
        """Distinct rows in the frame, in lexical order."""
        return self.enter(self.samples.rows)

    def enter(self, X: np.ndarray) -> np.ndarray:
        """Rows in the frame."""
        keep, middle, spread, far = self.frame
        with np.errstate(over="ignore"):
            return drawn_in(bounded((X[:, keep] - middle) / spread), far)

    @cached_property
    def _distinct_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the distinct rows that single-row units have, and of each unit among them."""
        used, place = np.unique(self.samples.place[self.units.rows], return_inverse=True)
        return used, place.ravel()

    @property
    def _bytes_of_labels(self) -> float:
        """Of all label vectors, and of their differences of means at the length scales in work."""
        scratch = 2 * min(self.centers, len(self.rows)) * min(self.workers, _SCALES)
        return 8.0 * (1 + self.permutations) * (Labels.floats(self.units.sizes) + scratch)

    @cached_property
    def labels(self) -> Labels:
        """Which units are in the smaller sample, observed and permuted."""
        rng = np.random.default_rng([self.seed, 1])
        grouped = self.units.group > 1
        if self._bytes_of_labels > self.memory_limit:
            raise InputError(
                f"n_permutations = {self.permutations} needs {self._bytes_of_labels / 1e9:.2g} GB for these samples, more than "
                "memory_limit; use fewer or raise memory_limit."
            )
        place = np.arange(sum(self.units.sizes)) if grouped else self._distinct_units[1]
        return Labels.draw(place, self.units.sizes, self.permutations, rng)

    @cached_property
    def unit_rows(self) -> np.ndarray:
        """Rows of the units in the frame: those of groups one below the other, single ones once each."""
        if self.units.group > 1:
            return np.asarray(self.rows[self.samples.place[self.units.rows]])
        return np.asarray(self.rows[self._distinct_units[0]])

    @property
    def workers(self) -> int:
        """Threads."""
        return effective_n_jobs(self.n_jobs)

    @cached_property
    def joint_bases(self) -> list[Basis]:
        """Functions of all columns, one set a length scale."""
        rng = np.random.default_rng([self.seed, 2])
        chosen = np.sort(rng.permutation(len(self.rows))[: self.centers])
        return bases(self.rows[chosen], length_scales(self.rows, _SCALES), self.workers)

    def _scores(self, found: list[Basis], rows: np.ndarray) -> np.ndarray:
        left = self.memory_limit - self._bytes_of_labels
        return score_table(found, rows, self.units.group, self.labels, left, self.workers)

    def joint_scores(self) -> np.ndarray:
        """Normal scores of all columns together, by length scale, ridge and label vector."""
        return self._scores(self.joint_bases, self.unit_rows)

    def column_scores(self) -> np.ndarray:
        """Largest normal score of each column alone, of shape (1 + B, n_features); -inf for columns that are constant.

        The labels are those of the joint test, permuted for all columns alike.
        """
        out = np.full((1 + self.permutations, len(self.names)), -np.inf)
        varying = np.flatnonzero(self.frame[0])
        if len(varying) == 1:  # the joint test is the one of this column
            out[:, varying[0]] = self.joint_scores().max(axis=(0, 1))
            return out
        for place, (column, j) in enumerate(zip(self.rows.T, varying, strict=True)):
            values = np.unique(column)
            some = np.unique(np.linspace(0, len(values) - 1, min(len(values), _CENTERS_OF_COLUMNS)).astype(int))
            scales = length_scales(values[:, None], _SCALES_OF_COLUMNS)
            found = bases(values[some][:, None], scales, self.workers)
            out[:, j] = self._scores(found, self.unit_rows[:, place : place + 1]).max(axis=(0, 1))
        return out
