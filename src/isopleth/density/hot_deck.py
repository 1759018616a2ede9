"""Missing cells filled from similar rows, without random numbers.

A gap gets a cell of a donor: the quantile, at a level in [0, 1], of the cells of all donors, weighted by the kernel of the cells
that both rows have. The levels are spread evenly over the rows and are continuous functions of their known cells, so fills follow
the conditional distribution, and they depend on no order, on no name, and not on the last bits of a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isopleth.core.budget import ONE_THREAD
from isopleth.core.errors import InputError
from isopleth.core.rows import merge_rows, merge_with_gaps
from isopleth.core.threads import ONE_BLAS_THREAD, check_stopped, slices
from isopleth.kernels.product import ColumnKernel
from isopleth.operators import Operator
from isopleth.operators.blocks import LOG_VALUE

# Most donors: more of them cost time and hardly change a quantile.
MOST_DONORS = 2000
_CELLS = 2**21  # pairs of rows that are compared at once
# Most centres of a fit with gaps: each pattern of missing cells has sums over all pairs of centres.
MOST_CENTERS = 2000
# Most fills of one row with gaps, so that no centre rests on a single one, and most filled rows for which there is more than one.
_FILLS, _FILLED = 6, 800
# Periods of the triangle wave for each unit of a cell: neighbouring rows get unlike levels, and 1e-12 stays below 1e-9.
_WAVES = 100.0


@dataclass(frozen=True)
class Signatures:
    """Numbers of rows and columns that are continuous in the cells and do not depend on orders or names."""

    rows: np.ndarray  # (n,): sum over the known cells of each row: numbers, and the shares of words
    columns: np.ndarray  # (d,): mean cosine of the numbers of a column, or the sum of the squared shares of its words

    @classmethod
    def of(cls, kernel: ColumnKernel, Z: np.ndarray, like: np.ndarray, weights: np.ndarray) -> Signatures:
        """Return the signatures of the rows `Z`; those of columns, and shares of words, are from the rows `like`."""
        rows, columns = np.zeros(len(Z)), np.empty(Z.shape[1])
        for j in range(Z.shape[1]):
            known, asked = ~np.isnan(like[:, j]), ~np.isnan(Z[:, j])
            mass = weights[known] / max(float(weights[known].sum()), 1e-300)
            if j < kernel.n_numeric:
                columns[j] = mass @ np.cos(like[known, j])
                rows[asked] += Z[asked, j]
            else:
                shares = np.bincount(like[known, j].astype(np.intp), mass, minlength=kernel.sizes[j - kernel.n_numeric])
                columns[j] = shares @ shares
                rows[asked] += shares[Z[asked, j].astype(np.intp)]
        return cls(rows, columns)

    def levels(self, column: int, rows: np.ndarray, turn: float) -> np.ndarray:
        """Return numbers in [0, 1] for cells of a column, spread evenly over the rows, and over turns from 0 to 1."""
        own = self.columns[column]
        return _triangle(_WAVES * ((1.0 + own) * self.rows[rows] + own) + 2.0 * turn)


def _triangle(x: np.ndarray) -> np.ndarray:
    """Triangle wave of period 2 between 0 and 1."""
    return np.asarray(np.abs(x % 2.0 - 1.0))


def some_rows(kernel: ColumnKernel, Z: np.ndarray, weights: np.ndarray, most: int) -> np.ndarray:
    """Return the numbers of at most `most` rows that are spread over the table, in ascending order."""
    if len(Z) <= most:
        return np.arange(len(Z))
    key = _triangle(_WAVES * Signatures.of(kernel, Z, Z, weights).rows)
    return np.sort(np.argsort(key, kind="stable")[:most])


def filled_rows(
    kernel: ColumnKernel, Z: np.ndarray, donors: np.ndarray, weights: np.ndarray, turn: float = 0.0
) -> np.ndarray:
    """Fill the missing cells of rows from donors; evenly spaced values of `turn` in [0, 1] give fills at other levels."""
    chosen = donors_of_gaps(kernel, Z, donors, weights, turn)
    cells = np.take_along_axis(donors, np.maximum(chosen, 0), axis=0)
    return np.asarray(np.where(chosen < 0, Z, cells))


def donors_of_gaps(
    kernel: ColumnKernel, Z: np.ndarray, donors: np.ndarray, weights: np.ndarray, turn: float = 0.0
) -> np.ndarray:
    """Return the number of the donor of each missing cell, as :func:`filled_rows` takes them; -1 for known cells."""
    have = ~np.isnan(donors)
    if not have.any(axis=0).all():
        raise InputError(f"column {int(np.argmin(have.any(axis=0)))} has no observed cell; leave it out.")
    out = np.full(Z.shape, -1, dtype=np.intp)
    gappy = np.flatnonzero(np.isnan(Z).any(axis=1))
    some = some_rows(kernel, donors, weights, MOST_DONORS)
    if not have[some].any(axis=0).all():  # a column that hardly any row has
        some = np.arange(len(donors))
    signatures = Signatures.of(kernel, Z, donors, weights)
    orders = _donors_by_value(kernel, donors[some], weights[some])
    for part in slices(len(gappy), _CELLS // len(some)):
        check_stopped()
        rows = gappy[part]
        with ONE_BLAS_THREAD:  # more threads cost more than they gain
            logs = _similarity(kernel, Z[rows], donors[some])
        for j, order in enumerate(orders):
            asked = np.flatnonzero(np.isnan(Z[rows, j]))
            mass = logs[np.ix_(asked, order)]
            mass -= mass.max(axis=1, keepdims=True)
            cumulative = np.cumsum(weights[some[order]] * np.exp(mass), axis=1)
            level = signatures.levels(j, rows[asked], turn) * cumulative[:, -1]
            place = np.minimum((cumulative <= level[:, None]).sum(axis=1), len(order) - 1)
            out[rows[asked], j] = some[order[place]]
    return out


def _donors_by_value(kernel: ColumnKernel, donors: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """Return the donors that have a cell of each column, by its value; words by their shares."""
    own = Signatures.of(kernel, donors, donors, weights).rows
    out = []
    for j in range(donors.shape[1]):
        known = np.flatnonzero(~np.isnan(donors[:, j]))
        keys = donors[known, j]
        if j >= kernel.n_numeric:
            code = keys.astype(np.intp)
            mass, total = np.bincount(code, weights[known]), np.bincount(code, weights[known] * own[known])
            ranks = np.empty(len(mass))
            ranks[np.lexsort((total, mass))] = np.arange(len(mass))
            keys = ranks[code]
        out.append(known[np.lexsort((own[known], keys))])
    return out


def log_kernels(kernel: ColumnKernel, Z: np.ndarray, donors: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the logarithm of the kernel of each column between rows and donors, 0 where one of them has no cell."""
    seen, have = ~np.isnan(Z), ~np.isnan(donors)
    cells = np.where(have, donors, 0.0)
    for j in range(Z.shape[1]):
        x = np.where(seen[:, [j]], Z[:, [j]], 0.0)
        y = np.ascontiguousarray(cells[:, [j]])
        one = Operator(kernel.take(np.array([j])), x, y, block=LOG_VALUE, budget=ONE_THREAD).dense()
        one[~seen[:, j]] = 0.0
        one[:, ~have[:, j]] = 0.0
        yield one


def _similarity(kernel: ColumnKernel, Z: np.ndarray, donors: np.ndarray) -> np.ndarray:
    """Return the logarithms of the kernel of the cells that rows and donors both have."""
    shared = (~np.isnan(Z)).astype(float) @ (~np.isnan(donors)).T.astype(float)
    logs = np.zeros(shared.shape)
    for one in log_kernels(kernel, Z, donors):
        logs += one
    # Sums over few shared cells are small, so the mean over the shared cells is compared.
    most = np.maximum(shared.max(axis=1, keepdims=True), 1.0)
    return np.asarray(np.where(shared > 0.0, logs / np.maximum(shared, 1.0) * most, -1e3))


def completed(
    kernel: ColumnKernel, Z: np.ndarray, weights: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return at most `most` distinct rows without gaps, their weights, and a mask of filled cells; None if none was missing."""
    counted = np.where(np.isnan(Z).all(axis=1), 0.0, weights)
    if not (counted > 0.0).any():
        raise InputError("no row has an observed cell and a positive weight; expected at least two.")
    rows, mass, _ = merge_with_gaps(Z, counted)
    gaps, mass = np.isnan(rows), mass / mass.sum()
    if not gaps.any():
        return rows, mass, None
    chosen = some_rows(kernel, rows, mass, most)
    rows_with_gaps = gaps[chosen].any(axis=1)
    times = int(np.clip(_FILLED // rows_with_gaps.sum(), 1, _FILLS)) if rows_with_gaps.any() else 1
    chosen = np.concatenate([chosen[~rows_with_gaps], *[chosen[rows_with_gaps]] * times])
    complete = len(chosen) - times * int(rows_with_gaps.sum())
    filled = rows[chosen]
    for turn, part in enumerate(np.split(np.arange(complete, len(chosen)), times)):
        filled[part] = filled_rows(kernel, filled[part], rows, mass, turn / times)
    share = np.where(np.arange(len(chosen)) < complete, 1.0, 1.0 / times)
    centers, own, place = merge_rows(filled, share * mass[chosen])
    return centers, own / own.sum(), _filled_cells(gaps[chosen], place, len(centers))


def _filled_cells(gaps: np.ndarray, place: np.ndarray, n_centers: int) -> np.ndarray:
    """Return a mask of the cells of centres that are missing in the row with the fewest gaps that the centre was made of."""
    filled = np.ones((n_centers, gaps.shape[1]), dtype=bool)
    fewest = np.argsort(-gaps.sum(axis=1), kind="stable")
    filled[place[fewest]] = gaps[fewest]
    return filled
