"""Scores of a row of which one cell is moved to another value, the others held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isopleth.operators.threads import map_threads
from isopleth.tasks.anomaly.table import Limits, blocks

MOST_VALUES = 64  # of a column are tried
MOST_ROWS = 16  # at once, so that their distances stay in the processor's cache


@dataclass(frozen=True)
class Moves:
    """Values to which the cells of each column are moved.

    Parameters
    ----------
    values : ndarray of shape (k, d)
        Values of each column, rising; in columns of fewer than k distinct values, the last one fills up.
    """

    values: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Moves:
        """Values of each column among the rows of `X`, its least and its greatest among them.

        All distinct values where there are at most MOST_VALUES, else quantiles that are values of rows. Nothing
        between them: in a column of counts or codes, a value that no row has would be no answer.
        """
        columns = [_spread_out(np.sort(column)) for column in X.T]
        most = max(map(len, columns))
        return cls(np.stack([np.pad(column, (0, most - len(column)), mode="edge") for column in columns], axis=1))

    @property
    def counts(self) -> np.ndarray:
        """Number of distinct values of each column."""
        return 1 + (np.diff(self.values, axis=0) > 0.0).sum(axis=0)


class MovableRule(Protocol):
    """What :func:`best_moves` asks of a rule."""

    def moved_surprise(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Total surprise of rows as they are and after each move, of shape (n, d, 1 + k)."""

    def move_bytes(self, values: int) -> float:
        """Scratch of :meth:`moved_surprise` for one row and so many values."""


def _spread_out(ordered: np.ndarray) -> np.ndarray:
    distinct = np.unique(ordered)
    if len(distinct) <= MOST_VALUES:
        return distinct
    return np.unique(ordered[np.linspace(0, len(ordered) - 1, MOST_VALUES).round().astype(int)])


def sums_of_others(terms: np.ndarray) -> np.ndarray:
    """Sums over the first axis without each of its terms.

    They are not found by subtraction: a wild cell would take all digits of what remains.
    """
    before, after = np.zeros_like(terms), np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=before[1:])
    np.cumsum(terms[:0:-1], axis=0, out=after[-2::-1])
    before += after
    return before


def distances_after(here: np.ndarray, there: np.ndarray, centers: np.ndarray) -> list[np.ndarray]:
    """City-block distances to centres of rows as they are, and after each move of one cell.

    Parameters
    ----------
    here : ndarray of shape (n, d)
        Rows.
    there : ndarray of shape (k, d)
        Values of each column.
    centers : ndarray of shape (m, d)
        Centres.

    Returns
    -------
    list of d ndarrays of shape (m, n, 1 + k)
        For each column; the row as it is goes through the same arithmetic, so that a move to where it is gains
        exactly nothing.
    """
    terms = np.abs(here.T[:, None, :] - centers.T[:, :, None])
    others = sums_of_others(terms)
    after = []
    for j, (own, rest) in enumerate(zip(terms, others, strict=True)):
        moved = np.empty((*own.shape, 1 + len(there)))
        moved[:, :, 0] = own
        moved[:, :, 1:] = np.abs(there[:, j] - centers[:, j, None])[:, None, :]
        moved += rest[:, :, None]
        after.append(moved)
    return after


def best_moves(
    rule: MovableRule, rows: np.ndarray, known: np.ndarray, moves: Moves, limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Find the best move of each cell.

    Parameters
    ----------
    rule : MovableRule
        Judges the rows.
    rows : ndarray of shape (n, d)
        Rows.
    known : ndarray of shape (n,), int
        Numbers of training rows, or NEW.
    moves : Moves
        Values to try, as the rule takes rows.
    limits : Limits
        Memory and threads.

    Returns
    -------
    rise : ndarray of shape (n, d)
        What the score gains, in nats; 0 where no move gains anything.
    place : ndarray of shape (n, d), int
        Which of the values is the best.
    """
    tried = np.arange(len(moves.values)) < moves.counts[:, None]

    def best(part: slice) -> tuple[np.ndarray, np.ndarray]:
        surprise = rule.moved_surprise(rows[part], known[part], moves.values)
        after = np.where(tried, surprise[:, :, 1:], np.inf)
        return np.maximum(surprise[:, :, 0] - after.min(axis=2), 0.0), after.argmin(axis=2)

    parts = blocks(len(rows), rule.move_bytes(len(moves.values)), limits, MOST_ROWS)
    found = map_threads(best, parts, limits.threads)
    return np.concatenate([rise for rise, _ in found]), np.concatenate([place for _, place in found])
