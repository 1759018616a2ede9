"""Division of rows into folds for held-out scores."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.core.rows import RunningFolds, folds_of, held_out_parts


@pytest.mark.parametrize(("n", "cv"), [(2, 5), (7, 3), (100, 10)])
def test_folds_hold_every_row_out_once_and_are_even(n: int, cv: int) -> None:
    parts = held_out_parts(n, cv)
    assert len(parts) == min(n, cv)
    np.testing.assert_array_equal(np.sum(parts, axis=0), 1)
    sizes = [part.sum() for part in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("n", "share", "held_out"), [(100, 0.2, 20), (2, 0.01, 1), (2, 0.99, 1), (11, 0.5, 6)])
def test_one_hold_out_leaves_rows_on_both_sides(n: int, share: float, held_out: int) -> None:
    (part,) = held_out_parts(n, share)
    assert part.sum() == held_out


def test_folds_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    np.testing.assert_array_equal(folds_of(50, seed=0), folds_of(50, seed=0))
    assert (folds_of(50, seed=0) != folds_of(50, seed=1)).any()


def test_running_folds_are_even_at_any_time_and_follow_no_period() -> None:
    rows = np.arange(1000.0)[:, None]
    fold = RunningFolds(5, 3).deal(rows)
    for n in (1, 4, 5, 17, 999, 1000):
        counts = np.bincount(fold[:n], minlength=5)
        assert counts.max() - counts.min() <= 1
    of_every_fifth = np.bincount(fold[::5], minlength=5)
    assert of_every_fifth.min() > 20
    many = [int(RunningFolds(5, 3).deal(rows[i : i + 1])[0]) for i in range(200)]  # parts of one row each
    assert np.bincount(many, minlength=5).min() > 20


def test_running_folds_do_not_depend_on_batches() -> None:
    rows = np.random.default_rng(0).normal(size=(57, 2))
    for folds in (1, 3, 5, 9):
        whole = RunningFolds(folds, 1).deal(rows)
        running = RunningFolds(folds, 1)
        np.testing.assert_array_equal(np.concatenate([running.deal(part) for part in np.array_split(rows, 13)]), whole)
        assert running.deal(rows[:0]).size == 0
        assert running.seen == 57
    assert (RunningFolds(5, 2).deal(rows) != RunningFolds(5, 1).deal(rows)).any()


def test_running_folds_go_on_after_a_merge() -> None:
    rows = np.arange(9.0)[:, None]
    one = RunningFolds(5, 0)
    one.merge(RunningFolds(5, 0))
    one.deal(rows[:2])
    other = RunningFolds(5, 0)
    other.deal(rows[2:])
    assert one.merge(other).seen == 9
    assert len(np.unique(one.deal(np.arange(5.0)[:, None])[1:])) == 4  # of one run
