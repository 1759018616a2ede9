"""Scales of columns: shifted and scaled columns, and simple rules for length scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import pdist

from isopleth.core.errors import InputError
from isopleth.core.parameters import given_numbers

# Coordinates are limited to this, so that no square of them overflows.
FARTHEST = 1e150


def bounded(z: np.ndarray) -> np.ndarray:
    """Limit coordinates, in the memory of `z`, so that no square overflows."""
    return np.clip(z, -FARTHEST, FARTHEST, out=z)


def medians(X: np.ndarray) -> np.ndarray:
    """Return the median of each column, bit for bit that of np.median, which is several times slower."""
    half = len(X) // 2
    ordered = np.array(X.T, order="C")  # columns whose cells are not next to each other are partitioned more slowly
    ordered.partition(half, axis=1)
    upper = ordered[:, half].copy()  # a copy, so that `ordered` can be freed
    return upper if len(X) % 2 else 0.5 * ordered[:, :half].max(axis=1) + 0.5 * upper


def deviations(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted standard deviation of each column, for numbers of any size."""
    share = weights / weights.sum()
    largest = np.abs(rows).max(axis=0)  # squares of the numbers themselves may over- or underflow
    unit = rows / np.where(largest > 0.0, largest, 1.0)
    return np.asarray(largest * np.sqrt(share @ (unit - share @ unit) ** 2))


def without_constants(scale: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the deviations of columns, infinite for those that vary by rounding only, which become 0 divided by them."""
    return np.where(scale <= 1e-12 * np.abs(rows).max(axis=0, initial=0.0), np.inf, scale)


def centre_and_scale(rows: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations by which columns are standardised; constant ones become 0."""
    centre = share @ rows
    return centre, without_constants(np.sqrt(share @ (rows - centre) ** 2), rows)


@dataclass(frozen=True)
class ScaledColumns:
    """Map x -> (x - shift) / scale of the columns that vary."""

    keep: np.ndarray  # (n_features,): mask of the columns that vary; constant ones have no density and are dropped
    # (d,): centre of the kept columns. Far from the centre, squared distances by products lose digits
    shift: np.ndarray
    scale: np.ndarray  # (d,): length scale of each kept column, in the units of the data

    @classmethod
    def centred(cls, X: np.ndarray, keep: np.ndarray) -> Self:
        """Return the frame of the kept columns at unit scale about their median, which a single far row hardly changes."""
        shift = medians(X if keep.all() else X[:, keep])
        return cls(keep, shift, np.ones(len(shift)))

    def scaled(self, scale: np.ndarray) -> ScaledColumns:
        """Return the frame with the same centre and another length scale."""
        return replace(self, scale=scale)

    def take(self, columns: np.ndarray) -> ScaledColumns:
        """Return the frame of some of the columns of the data."""
        place = (np.cumsum(self.keep) - 1)[columns]
        kept = place[self.keep[columns]]
        return ScaledColumns(self.keep[columns], self.shift[kept], self.scale[kept])

    @property
    def dim(self) -> int:
        """Number of kept columns."""
        return int(self.shift.shape[0])

    @property
    def log_volume(self) -> float:
        """Sum of the logarithms of the scales, which log densities in the units of the data lose."""
        return math.fsum(np.log(self.scale))

    def by_column(self, values: np.ndarray) -> np.ndarray:
        """Return `values` of the kept columns as one for each column of the data, NaN for dropped columns."""
        out = np.full(len(self.keep), np.nan)
        out[self.keep] = values
        return out

    def centre(self, X: np.ndarray) -> np.ndarray:
        """Return the kept columns less their centre, in the units of the data."""
        return (X if self.keep.all() else X[:, self.keep]) - self.shift

    def enter(self, X: np.ndarray) -> np.ndarray:
        """Return points in frame coordinates, limited so that no square overflows."""
        with np.errstate(over="ignore"):
            return bounded(self.centre(X) / self.scale)

    def leave(self, Z: np.ndarray, fill: np.ndarray) -> np.ndarray:
        """Return points in the units of the data; `fill` is a row with the values of the dropped columns."""
        X = np.tile(fill, (len(Z), 1))
        X[:, self.keep] = Z * self.scale + self.shift
        return X


MEDIAN_ROWS = 1000

# Function of rows and weights that returns the length scale of each column.
Rule = Callable[[np.ndarray, np.ndarray], np.ndarray]


def scott(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return Scott's rule :math:`\ell_j = \sigma_j\, n^{-1/(d+4)}`; n is the sum of the weights, at least the number of rows."""
    n = max(float(weights.sum()), len(rows))
    return np.asarray(deviations(rows, weights) * n ** (-1.0 / (rows.shape[1] + 4)))


def median(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted median distance between at most MEDIAN_ROWS distinct rows, the same number for every column."""
    chosen = np.linspace(0, len(rows) - 1, min(len(rows), MEDIAN_ROWS)).astype(int)
    largest = np.abs(rows).max()
    distances = largest * pdist(rows[chosen] / largest)
    share = weights[chosen] / weights[chosen].max()  # products of the weights themselves may over- or underflow
    if (share == 1.0).all():
        place = (len(distances) + 1) // 2 - 1
        return np.full(rows.shape[1], np.partition(distances, place)[place])
    i, j = np.triu_indices(len(chosen), 1)
    mass = share[i] * share[j]
    order = np.argsort(distances)
    cumulative = np.cumsum(mass[order])
    middle = distances[order][np.searchsorted(cumulative, 0.5 * cumulative[-1] * (1 - 1e-12))]
    return np.full(rows.shape[1], middle)


def scott_of_known(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Scott's rule with the standard deviation of the known cells of each column; NaN is a missing cell."""
    n = max(float(weights.sum()), len(rows))
    sizes = []
    for column in rows.T:
        known = np.isfinite(column)
        sizes.append(deviations(column[known, None], weights[known])[0])
    return np.array(sizes) * n ** (-1.0 / (rows.shape[1] + 4))


def median_of_complete(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the median distance of the complete rows."""
    complete = np.isfinite(rows).all(axis=1)
    if complete.sum() < 2:
        raise InputError("length_scale = 'median': fewer than two rows are complete; take 'scott' or numbers.")
    return median(rows[complete], weights[complete])


def is_auto(length_scale: Any) -> bool:
    """Tell whether a parameter leaves the length scale to the estimator."""
    return isinstance(length_scale, str) and length_scale == "auto"


# Rules for rows with missing cells.
RULES_WITH_GAPS: Mapping[str, Rule] = {"auto": scott_of_known, "scott": scott_of_known, "median": median_of_complete}

RULES: Mapping[str, Rule] = {"auto": scott, "scott": scott, "median": median}


def loss_units(scale: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the unit of each column in Hyvarinen losses: length scales times a factor, which makes paths comparable."""
    with np.errstate(divide="ignore"):
        size = np.mean(np.log(deviations(rows, weights)))
    return np.asarray(np.exp(np.log(scale) + size - np.mean(np.log(scale))))


# Smallest size of a column whose square does not underflow; that of the largest is one over it.
LEAST_SIZE = 1e-150


def refuse_sizes(scale: np.ndarray, keep: np.ndarray, name: Callable[[int], str], least: float = 0.0) -> None:
    """Refuse columns that are so small or large that no length scale follows; `name` returns the name of a coordinate."""
    most = 1.0 / least if least else np.inf
    bad = ~((scale > least) & (scale < most))
    if bad.any():
        column = name(int(np.flatnonzero(keep)[np.argmax(bad)]))
        raise InputError(f"{column} is of a size that leaves no length scale; rescale it to numbers nearer to 1.")


def resolve_length_scale(
    length_scale: Any,
    rows: np.ndarray,
    weights: np.ndarray,
    names: list[str],
    keep: np.ndarray,
    what: str = "length_scale",
    rules: Mapping[str, Rule] = RULES,
) -> np.ndarray:
    """Return the length scale of each kept column of the centred, distinct `rows`."""
    *others, last = map(repr, rules)
    expected = f"a number, one a column, {', '.join(others)} or {last}"
    if isinstance(length_scale, str):
        if length_scale not in rules:
            raise InputError(f"{what} = {length_scale!r}: expected {expected}.")
        scale = rules[length_scale](rows, weights)
        refuse_sizes(scale, keep, names.__getitem__)
        return scale
    given = given_numbers(what, length_scale, expected)
    if given.ndim > 1 or (given.ndim == 1 and given.shape != keep.shape):
        raise InputError(
            f"{what} has shape {given.shape}; expected one number, or one for each of {len(keep)} columns."
        )
    scale = np.broadcast_to(given, keep.shape)
    if not ((np.isfinite(scale) & (scale > 0)) | (np.isnan(scale) & ~keep)).all():
        raise InputError(f"{what} = {length_scale!r}: expected positive, finite numbers in the units of the columns.")
    return scale[keep]
