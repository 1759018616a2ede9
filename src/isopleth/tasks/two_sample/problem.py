"""Two samples prepared for a permutation test: units, labels, and functions around centres of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isopleth.difference.samples import TwoSamples
from isopleth.errors import InputError
from isopleth.operators.threads import effective_n_jobs, map_threads
from isopleth.tasks.two_sample.permutation import (
    Basis,
    ColumnUnits,
    Labels,
    LaplaceBasis,
    Units,
    city_block_scale,
    column_contrasts,
    gaussian_bases,
    length_scales,
    moment_scores,
    quadratic_forms,
    rank_scores,
    unit_features,
)

_CENTERS_OF_COLUMNS = 40


@dataclass(frozen=True, eq=False)
class TwoSampleProblem:
    """Two samples, with everything that the test computes from their rows together.

    Only the first label vector tells which row is from which sample, so that labels can be permuted.

    Parameters
    ----------
    samples : TwoSamples
        The rows.
    names : list of str
        Names of the columns in messages.
    permutations, centers : int
        Numbers of permutations and of centres.
    seed : int
        Seed of the units, the permutations and the centres.
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
        """Number of rows of each sample."""
        return self.samples.split, len(self.samples.place) - self.samples.split

    @property
    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """The samples in their original order."""
        rows = self.samples.rows[self.samples.place]
        return rows[: self.samples.split], rows[self.samples.split :]

    @cached_property
    def units(self) -> Units:
        """Units of permutation."""
        return Units.of(*self.sizes, np.random.default_rng(self.seed))

    @cached_property
    def varying(self) -> np.ndarray:
        """Mask of the columns that vary."""
        return np.asarray(self.samples.rows.min(axis=0) < self.samples.rows.max(axis=0))

    @cached_property
    def column_units(self) -> ColumnUnits:
        """Units of the columns that vary.

        Repeated rows count repeatedly: if equal rows were merged, the unit of a column would depend on the other columns.

        Raises
        ------
        InputError
            If the values of a column are too large or too small.
        """
        keep = self.varying
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            # In lexical order: rounding depends on the order of a sum, and the order of the rows must not matter.
            found = ColumnUnits.of(np.repeat(self.samples.rows[:, keep], np.bincount(self.samples.place), axis=0))
        bad = ~(np.isfinite(found.scale) & (found.scale > 1e-150) & (found.scale < 1e150))
        if bad.any():
            name = self.names[np.flatnonzero(keep)[np.argmax(bad)]]
            raise InputError(f"{name} is of a size that leaves no length scale; rescale it to numbers nearer to 1.")
        return found

    @cached_property
    def rows(self) -> np.ndarray:
        """Distinct rows in units of the columns, in lexical order."""
        return self.enter(self.samples.rows)

    def enter(self, X: np.ndarray) -> np.ndarray:
        """Return rows in units of the columns."""
        with np.errstate(over="ignore"):
            return self.column_units(X[:, self.varying])

    @cached_property
    def _distinct_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the distinct rows among units of single rows, and of each unit among them."""
        used, place = np.unique(self.samples.place[self.units.rows], return_inverse=True)
        return used, place.ravel()

    @property
    def _bytes_of_labels(self) -> float:
        """Bytes of all label vectors, and of their differences of means at the length scales computed at a time."""
        scratch = 2 * max(min(self.centers, len(self.rows)) * self.workers, self.rows.shape[1])
        return 8.0 * (1 + self.permutations) * (Labels.floats(self.units.sizes) + scratch)

    @cached_property
    def labels(self) -> Labels:
        """Label vectors, observed and permuted: the units in the smaller sample."""
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
        """Scaled rows of the units: the rows of each group one after another, single distinct rows once."""
        if self.units.group > 1:
            return np.asarray(self.rows[self.samples.place[self.units.rows]])
        return np.asarray(self.rows[self._distinct_units[0]])

    @property
    def workers(self) -> int:
        """Number of threads."""
        return effective_n_jobs(self.n_jobs)

    @cached_property
    def bases(self) -> list[Basis]:
        """Functions of all columns: Gaussians of six length scales, and products of Laplace functions."""
        rng = np.random.default_rng([self.seed, 2])
        centers = self.rows[np.sort(rng.permutation(len(self.rows))[: self.centers])]
        found = gaussian_bases(centers, length_scales(self.rows), self.workers)
        return [*found, LaplaceBasis.of(centers, city_block_scale(self.rows))]

    def _forms(self, found: list[Basis], rows: np.ndarray) -> np.ndarray:
        """Return quadratic forms and column contrasts by statistic and label vector, of shape (k + d, 1 + B)."""
        labels, group = self.labels, self.units.group
        features = unit_features(found, rows, group, self.memory_limit - self._bytes_of_labels, self.workers)
        pairs = list(zip(found, features, strict=True))
        forms = map_threads(lambda p: quadratic_forms(*p, labels), pairs, min(self.workers, len(pairs)))
        return np.vstack([*forms, column_contrasts(rows, group, labels).T])

    @cached_property
    def scores(self) -> np.ndarray:
        """Normal scores of all columns together, of shape (9, 1 + B): the kernels, and the largest column contrast."""
        forms, k = self._forms(self.bases, self.unit_rows), len(self.kernels)
        return rank_scores(np.vstack([forms[:k], forms[k:].max(axis=0)]))

    @property
    def kernels(self) -> list[tuple[Basis, float]]:
        """Functions and ridge of each LSDD behind :attr:`scores`, in their order."""
        return [(basis, alpha) for basis in self.bases for alpha in basis.alphas]

    @property
    def score_names(self) -> list[str]:
        """Names of the statistics behind :attr:`scores`."""
        names = {"sqeuclidean": "Gaussian", "cityblock": "Laplace"}
        kernels = [
            f"{names[b.metric]}, length scale {b.length_scale:.3g}, ridge {alpha:g}" for b, alpha in self.kernels
        ]
        return [*kernels, "mean and spread of a column"]

    def column_scores(self) -> np.ndarray:
        """Return the largest score of each column alone, of shape (1 + B, n_features); -inf for columns that are constant.

        The labels are those of the joint test, permuted for all columns alike.
        """
        out = np.full((1 + self.permutations, len(self.names)), -np.inf)
        varying = np.flatnonzero(self.varying)
        if len(varying) == 1:  # the joint test is the test of this column
            out[:, varying[0]] = self.scores.max(axis=0)
            return out
        for place, (column, j) in enumerate(zip(self.rows.T, varying, strict=True)):
            values = np.unique(column)
            some = np.unique(np.linspace(0, len(values) - 1, min(len(values), _CENTERS_OF_COLUMNS)).astype(int))
            found = gaussian_bases(values[some][:, None], length_scales(values[:, None]), self.workers)
            out[:, j] = moment_scores(self._forms(found, self.unit_rows[:, place : place + 1])).max(axis=0)
        return out
