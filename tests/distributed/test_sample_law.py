"""Samples by what rows hold: as many copies are drawn as of independent rows, from few that are looked at."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import InputError, distributed
from isopleth.distributed import row_sample

COPIES = [1] * 800 + [3] * 100 + [50] * 10 + [400]
N, MOST = sum(COPIES), 200


@pytest.fixture(scope="module")
def rows():
    """2,000 rows, some of which are copies; the second column says how many copies there are."""
    rng = np.random.default_rng(0)
    distinct = np.column_stack([rng.normal(size=len(COPIES)), COPIES])
    return rng.permutation(np.repeat(distinct, COPIES, axis=0))


def test_copies_are_drawn_at_the_rate_of_independent_rows(rows):
    drawn = [distributed.sample(rows, MOST, seed=seed)[:, 1] for seed in range(60)]
    for copies in (1, 3, 50, 400):
        counts = np.array([np.sum(each == copies) for each in drawn])
        mean = MOST / N * np.sum(rows[:, 1] == copies)
        assert abs(counts.mean() - mean) < 4.0 * np.sqrt(mean / 60)
        assert counts.std() < 2.0 * np.sqrt(mean)


def test_the_order_of_rows_decides_nothing_but_the_order_of_the_sample(rows):
    order = np.random.default_rng(1).permutation(N)
    first, second = (distributed.sample(each, MOST, seed=3) for each in (rows, rows[order]))
    np.testing.assert_array_equal(np.sort(first[:, 0]), np.sort(second[:, 0]))
    singles = first[first[:, 1] == 1.0, 0]
    at = [int(np.flatnonzero(rows[:, 0] == value)[0]) for value in singles]
    assert at == sorted(at)
    assert not np.array_equal(np.sort(first[:, 0]), np.sort(distributed.sample(rows, MOST, seed=4)[:, 0]))


def test_no_more_rows_than_needed_are_looked_at(monkeypatch):
    """Four times as many as are drawn: what is kept in memory, or sent between machines, does not grow with the table."""
    looked, keyed = [], row_sample._keyed
    monkeypatch.setattr(row_sample, "_keyed", lambda *asked: looked.append(keyed(*asked)) or looked[-1])
    found = distributed.sample(np.random.default_rng(2).normal(size=(20_000, 2)), 500)
    (keys,) = looked
    assert abs(len(keys.hashes) - 2000) < 5.0 * np.sqrt(2000 * 0.9)
    assert abs(len(found) - 500) < 5.0 * np.sqrt(500)


def test_few_rows_are_taken_as_they_are(rows):
    np.testing.assert_array_equal(distributed.sample(rows, N), rows)
    with pytest.raises(InputError, match="max_rows"):
        distributed.sample(rows, 0)
