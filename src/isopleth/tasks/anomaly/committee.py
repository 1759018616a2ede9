"""The rule that ranks anomalies: densities of many small samples of the rows, pooled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.spatial.distance import pdist

from isopleth.expansion import KernelExpansion
from isopleth.frame import Frame, bounded
from isopleth.kernels import Laplacian
from isopleth.kernels.base import Workspace
from isopleth.operators import Operator
from isopleth.rows import merge_rows
from isopleth.solvers import fixed_point

# A density of all rows follows every cluster, also one of anomalies. A small sample sees what is common: anomalies
# are seldom in it.
SMALLEST_SAMPLE = 8
SHARE = 8  # no larger sample takes more than one in so many rows
# Of the sample's median distance: nearby the nearest rows decide, far away the whole sample.
LENGTH_SCALE = 1 / 16
TOLERANCE = 0.01  # of the members' coefficients; their average does not see more
COMMON = 16  # copies beyond which a repeated row is a common value and not one observation that was copied
COMMON_VALUE = (
    -1
)  # in place of a fold, for common values among the training rows and for new rows: all committees judge them


def discounted(copies: np.ndarray) -> np.ndarray:
    r"""Weight of a row that occurs `copies` times, :math:`\max(1, c^3/(c^2 + 16^2))`.

    A few copies are one observation written down again, and count once, so that repeating anomalies does not make
    them ordinary; very many are a value that is common, and count in full.
    """
    c = np.asarray(copies, dtype=np.float64)
    return np.maximum(1.0, c**3 / (c**2 + COMMON**2))


def sample_sizes(max_samples: int, available: float) -> list[int]:
    """Powers of two from the smallest sample to `max_samples`, held to a share of the `available` rows."""
    doublings = int(np.log2(max(1.0, max_samples / SMALLEST_SAMPLE)))
    most = max(SMALLEST_SAMPLE, int(available) // SHARE)
    return [min(SMALLEST_SAMPLE << i, most, max_samples) for i in range(doublings + 1)]


def spread(rows: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Standard deviation of each column, with its most extreme hundredth of the rows at either end drawn in to the next one.

    One wild cell would otherwise make all other differences in its column vanish. A column of rare values that is constant
    once they are drawn in keeps its plain standard deviation.
    """

    def deviation(table: np.ndarray) -> np.ndarray:
        return np.sqrt(share @ (table - share @ table) ** 2)

    ends = min(-(-len(rows) // 100), (len(rows) - 1) // 2)
    ordered = np.sort(rows, axis=0)
    drawn_in = deviation(np.clip(rows, ordered[ends], ordered[-1 - ends]))
    return np.where(drawn_in > 0.0, drawn_in, deviation(rows))


@dataclass(frozen=True)
class Member:
    """SOSREP of one sample in some of the committee's columns: the root f has `centers` once divided by the length scale."""

    columns: np.ndarray
    centers: np.ndarray
    coefficients: np.ndarray
    length_scale: float

    @classmethod
    def of(cls, sample: np.ndarray, columns: np.ndarray) -> Self:
        """Fit to the rows of `sample`, in the frame of the committee."""
        z, weights, _ = merge_rows(sample[:, columns], np.ones(len(sample)))
        apart = float(np.median(pdist(z))) if len(z) > 1 else 0.0
        # Standardised rows are sqrt(2 d) apart on average: the scale of a sample whose rows are not apart at all.
        scale = LENGTH_SCALE * (apart if apart > 0.0 else float(np.sqrt(2 * len(columns))))
        solution = fixed_point(Operator(Laplacian(), z / scale, n_jobs=1).store(), weights / weights.sum(), TOLERANCE)
        return cls(columns, z, solution.coefficients, scale)

    def enter(self, z: np.ndarray) -> np.ndarray:
        """The member's columns of rows in the frame of the committee, at unit length scale."""
        return bounded(z[:, self.columns] / self.length_scale)

    def log_density(self, z: np.ndarray, memory_limit: float) -> np.ndarray:
        """log f^2, which is the log density up to a constant."""
        kernel = Laplacian(len(self.columns))
        root = KernelExpansion(kernel, self.centers / self.length_scale, self.coefficients, memory_limit, n_jobs=1)
        return 2.0 * root.log_abs(self.enter(z))

    def log_density_at(self, s: np.ndarray, work: Workspace) -> np.ndarray:
        """:meth:`log_density` at squared scaled distances `s` to the centres, which are its first axis; overwrites `s`."""
        shape = s.shape[1:]
        terms = Laplacian(len(self.columns))._log(s.reshape(len(s), -1), work)
        terms += np.log(self.coefficients)[:, None]
        top = terms.max(axis=0)
        terms -= top
        np.exp(terms, out=terms)
        return (2.0 * (top + np.log(terms.sum(axis=0)))).reshape(shape)


def some_columns(dim: int, rng: np.random.Generator) -> np.ndarray:
    """A random subset of the columns whose size is as likely to be between 1 and 2 as between dim/2 and dim."""
    size = round(dim ** rng.uniform())
    return np.sort(rng.choice(dim, size=size, replace=False))


@dataclass(frozen=True)
class Committee:
    """Members fitted to random samples of the same rows; its score is the mean of their log densities.

    The mean of log densities is the logarithmic opinion pool: a row is ordinary if most small samples have something near it.
    """

    frame: Frame
    members: list[Member]

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        copies: np.ndarray,
        spare: np.ndarray,
        size: int,
        max_samples: int,
        rng: np.random.Generator,
    ) -> Self:
        """Fit `size` members to distinct `rows` that occur `copies` times.

        Columns are divided by their spread, or by `spare` where they do not vary in these rows.
        """
        weights = discounted(copies)
        share = weights / weights.sum()
        scale = spread(rows, share)
        # About 0, the median of the whole table: a mean would follow a wild cell and take the digits of all others.
        frame = Frame(np.ones(rows.shape[1], dtype=bool), np.zeros(rows.shape[1]), np.where(scale > 0.0, scale, spare))
        z = frame.enter(rows)
        sizes = sample_sizes(max_samples, weights.sum())
        cumulative = np.cumsum(share)[:-1]
        everything = np.arange(z.shape[1])
        members = []
        for b in range(size):
            # Anomalies of few columns drown in the distances of all, those of a relation between columns show there only.
            columns = everything if b % 2 == 0 else some_columns(len(everything), rng)
            draws = np.searchsorted(cumulative, rng.uniform(size=sizes[b // 2 % len(sizes)]), side="right")
            members.append(Member.of(z[draws], columns))
        return cls(frame, members)

    def score(self, rows: np.ndarray, memory_limit: float) -> np.ndarray:
        """Mean log density over the members, up to a constant; higher for the more ordinary."""
        z = self.frame.enter(rows)
        total = np.zeros(len(z))
        for member in self.members:
            total += member.log_density(z, memory_limit)
        return total / len(self.members)
