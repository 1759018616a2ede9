"""Rows in parts: sums are taken in order, and bad parts are refused."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import InputError
from isopleth.core.parts import ArrayParts, ColumnMoments


class Order:
    """Sums that remember how they came to be."""

    def __init__(self):
        self.seen = []

    def add(self, rows, weights):
        self.seen.append((rows.ravel().tolist(), weights))
        return self

    def merge(self, other):
        self.seen += other.seen
        return self


def test_parts_are_added_to_fresh_sums_and_merged_in_their_order():
    found = ArrayParts(np.arange(5.0)[:, None], part_rows=2).sums(Order, Order.add)
    assert found.seen == [([0.0, 1.0], None), ([2.0, 3.0], None), ([4.0], None)]
    weighted = ArrayParts(np.arange(3)[:, None], [1, 2, 0], part_rows=3).sums(Order, Order.add)
    assert weighted.seen[0][1].tolist() == [1.0, 2.0, 0.0]
    assert ArrayParts(np.empty((0, 1))).sums(Order, Order.add).seen == []


@pytest.mark.parametrize(
    ("X", "weights", "said"),
    [
        (np.array([[1.0, np.nan], [0.0, 1.0]]), None, r"X contains NaN in 'b' \(1 row in rows from 0 on\)"),
        (np.array([[1.0, 0.0], [np.inf, 1.0]]), None, "inf in 'a'"),
        (np.array([["x", 0.0]], dtype=object), None, "other than numbers"),
        (np.ones((2, 2)), np.array([1.0, -1.0]), "negative"),
        (np.ones((2, 2)), np.array([1.0, np.nan]), "not finite"),
        (np.ones((2, 2)), np.ones((2, 1)), "expected one weight a row"),
        (np.ones((2, 2)), np.full(2, 1e291), "above 1e[+]290"),
        (np.ones((2, 2)), np.ones(2) * 1j, "other than real numbers"),
        (np.ones((2, 2)), np.ma.array([1.0, 2.0], mask=[0, 1]), "sample_weight has 1 masked cells"),
        (np.ones((2, 2)) * 1j, None, "other than numbers"),
        (np.ones((2, 2)).astype("M8[s]"), None, "other than numbers"),
        (np.ma.array(np.ones((2, 2)), mask=[[0, 1], [0, 1]]), None, "X has 2 masked cells in rows from 0 on"),
        (np.ones((2, 2)), np.array(["a", "b"]), "other than real numbers"),
    ],
)
def test_what_a_part_may_not_hold(X, weights, said):
    with pytest.raises(InputError, match=said):
        ArrayParts(X, weights, names=["a", "b"]).sample(3)


@pytest.mark.parametrize(
    ("X", "weights", "said"),
    [
        (np.ones(3), None, "expected an array of two dimensions"),
        ([[1.0]], None, "expected an array of two dimensions"),
        (np.ones((3, 0)), None, "at least one column"),
        (np.ones((4, 2)), np.ones(5), "5 values for 4 rows"),
    ],
)
def test_what_no_parts_are_made_of(X, weights, said):
    with pytest.raises(InputError, match=said):
        ArrayParts(X, weights, part_rows=2)


def test_a_sample_of_no_rows_has_their_columns():
    assert ArrayParts(np.empty((0, 3))).sample(5)[0].shape == (0, 3)


def test_a_refusal_of_the_sums_says_where():
    def refuse(sums, rows, weights):
        if rows[0, 0] == 2.0:
            raise InputError("no twos.")
        return sums.add(rows, weights)

    parts = ArrayParts(np.arange(4.0)[:, None], part_rows=1)
    with pytest.raises(InputError, match="rows from 2 on: no twos"):
        parts.sums(lambda: ColumnMoments(1), refuse)
