"""Scores of a row of which one cell is moved, the others held."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.kernels.base import Workspace
from isopleth.operators.threads import map_threads
from isopleth.tasks.anomaly.committee import COMMON_VALUE, Committee, Member

MOST_VALUES = 64  # of a column are tried
MOST_ROWS = 16  # at once: what is in work for them stays in the processor's cache


def values_to_try(X: np.ndarray) -> np.ndarray:
    """Values of each column among the rows of `X`, its least and its greatest among them.

    All distinct values where there are at most MOST_VALUES, else quantiles that are values of rows. Nothing between them: in
    a column of counts or codes, a value that no row has would be no answer.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.

    Returns
    -------
    ndarray of shape (k, d)
        In each column the values, rising; where they are fewer than k, the last one fills up.
    """
    columns = [_spread_out(np.sort(column)) for column in X.T]
    most = max(map(len, columns))
    return np.stack([np.pad(column, (0, most - len(column)), mode="edge") for column in columns], axis=1)


def _spread_out(ordered: np.ndarray) -> np.ndarray:
    distinct = np.unique(ordered)
    if len(distinct) <= MOST_VALUES:
        return distinct
    return np.unique(ordered[np.linspace(0, len(ordered) - 1, MOST_VALUES).round().astype(int)])


@dataclass(frozen=True)
class Moves:
    """Moves of one cell of a row to each of the values that its column may take.

    Parameters
    ----------
    values : ndarray of shape (k, d)
        Values of each column, rising, as :meth:`Committee.score` takes rows.
    counts : ndarray of shape (d,)
        How many of them are to be tried.
    """

    values: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, entered: np.ndarray) -> Self:
        """Moves to `values` as :func:`values_to_try` gave them, that are `entered` in the frame of the committees."""
        return cls(entered, 1 + (np.diff(values, axis=0) > 0.0).sum(axis=0))

    def rows_at_once(self, committees: list[Committee], memory: float, share: float) -> int:
        """So many rows that their scratch fits `memory` and no thread has more than its `share` of them."""
        k, d = self.values.shape
        largest = max(len(member.centers) for committee in committees for member in committee.members)
        numbers = largest * (4 * d + 2 * (k + 1)) + 3 * d * k
        return max(1, min(MOST_ROWS, math.ceil(share), int(memory / (8 * numbers))))

    def best(self, committees: list[Committee], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best move of each cell.

        Parameters
        ----------
        committees : list of Committee
            Who judge together: the mean of their scores counts.
        rows : ndarray of shape (n, d)
            Rows.

        Returns
        -------
        rise : ndarray of shape (n, d)
            What the score gains, in nats; 0 where no move gains anything.
        place : ndarray of shape (n, d), int
            Which of the values is the best.
        """
        work = Workspace()
        scores = np.mean([self.scores(committee, rows, work) for committee in committees], axis=0)
        # Not by what each move gains: beside the gains of a wild cell the values would seem to be alike.
        after = scores[:, :, 1:]
        return np.maximum(after.max(axis=2) - scores[:, :, 0], 0.0), after.argmax(axis=2)

    def scores(self, committee: Committee, rows: np.ndarray, work: Workspace) -> np.ndarray:
        r"""The committee's score of each row as it is and after each move, by the members that look at the column.

        The squared distance of a row to a centre is a sum over columns, of which a move changes one term:

        .. math:: s' = \sum_{i \ne j} (z_i - c_i)^2 + (v - c_j)^2 .

        The sum over the other columns is taken without that term, not by subtracting it: a wild cell would take all digits of
        what remains.

        Parameters
        ----------
        committee : Committee
            Who judges.
        rows : ndarray of shape (n, d)
            Rows.
        work : Workspace
            Scratch.

        Returns
        -------
        ndarray of shape (n, d, 1 + k)
            In nats; minus infinity beyond the `counts`.
        """
        z, values = committee.frame.enter(rows), committee.frame.enter(self.values)
        tried = np.arange(len(values)) < self.counts[:, None]
        start = np.pad(np.where(tried, 0.0, -np.inf), ((0, 0), (1, 0)))
        total = np.repeat(start[None], len(z), axis=0)
        for member in committee.members:
            self._add(member, z, values, total, work)
        total /= len(committee.members)
        return total

    def _add(self, member: Member, z: np.ndarray, values: np.ndarray, total: np.ndarray, work: Workspace) -> None:
        """Add to `total` the member's log densities, in each of its columns."""
        centers = (member.centers / member.length_scale).T
        here, there = member.enter(z).T, member.enter(values).T
        squares = (here[:, None, :] - centers[:, :, None]) ** 2
        others = _sums_of_others(squares)
        for i, j in enumerate(member.columns):
            k = self.counts[j]
            s = work.empty("squared distances", (centers.shape[1], len(z), k + 1), z.dtype)
            # The row as it is goes through the same arithmetic, so that a move to where it is gains exactly nothing.
            s[:, :, 0] = squares[i]
            s[:, :, 1:] = ((there[i, :k] - centers[i, :, None]) ** 2)[:, None, :]
            s += others[i, :, :, None]
            total[:, j, : k + 1] += member.log_density_at(s, work)


def _sums_of_others(terms: np.ndarray) -> np.ndarray:
    """Sums over the first axis without each of its terms."""
    before, after = np.zeros_like(terms), np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=before[1:])
    np.cumsum(terms[:0:-1], axis=0, out=after[-2::-1])
    before += after
    return before


def parted(judge: np.ndarray, most: int) -> list[np.ndarray]:
    """Positions of the rows in parts of at most `most`, each of rows with the same `judge`."""
    groups = [np.flatnonzero(judge == k) for k in np.unique(judge)]
    return [group[i : i + most] for group in groups for i in range(0, len(group), most)]


def best_moves(
    moves: Moves, rows: np.ndarray, judge: np.ndarray, committees: list[Committee], memory_limit: float, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """:meth:`Moves.best` of rows of which each has a committee that judges it, or COMMON_VALUE for all of them."""

    def best(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = judge[part[0]]
        return moves.best(committees if k == COMMON_VALUE else [committees[k]], rows[part])

    parts = parted(judge, moves.rows_at_once(committees, memory_limit / threads, len(rows) / threads))
    rise, place = np.empty(rows.shape), np.empty(rows.shape, dtype=int)
    for part, found in zip(parts, map_threads(best, parts, threads), strict=True):
        rise[part], place[part] = found
    return rise, place
