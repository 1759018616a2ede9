"""How rows are parted for held-out scores."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.folds import folds_of, held_out_parts


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
