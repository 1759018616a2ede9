"""Common columns of two tables, and the change of their schema."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from isopleth import InputError, two_sample_test
from isopleth.tables.schema import Schema
from isopleth.tables.schema_changes import ColumnChange, compare_schemas

RNG = np.random.default_rng(0)
DAYS = pd.date_range("2024-01-01", periods=30)
BEFORE = pd.DataFrame({"x": RNG.normal(size=30), "size": RNG.normal(size=30), "old": RNG.normal(size=30), "when": DAYS})
AFTER = pd.DataFrame({"when": DAYS.tz_localize("UTC"), "size": ["small", "large"] * 15, "x": RNG.normal(size=30) + 3.0})


def test_frames_are_compared_in_their_common_columns():
    found = compare_schemas(Schema.of(BEFORE), Schema.of(AFTER))
    assert found.common == ["x"]
    assert found.changes == (
        ColumnChange("size", "numbers", "words"),
        ColumnChange("old", "numbers", None),
        ColumnChange("when", "times", "times with a zone"),
    )
    result = two_sample_test(BEFORE[found.common], AFTER[found.common], n_resamples=99, random_state=0)
    assert result.to_dict()["schema_changes"] == []
    first, *others = replace(result, schema=found).to_dict()["summary"]
    assert first == found.sentence
    assert others == result.to_dict()["summary"]


def test_columns_with_names_alike_and_of_one_kind_are_suggested_as_renamed():
    before = pd.DataFrame({"x": RNG.normal(size=30), "price": RNG.normal(size=30), "size": 1.5, "q1": 2.5, "city": 3.5})
    after = pd.DataFrame({"x": before["x"], "Price": before["price"], "sizes": ["S", "L"] * 15, "q2": 2.5, "area": 3.5})
    found = compare_schemas(Schema.of(before), Schema.of(after))
    assert found.renamed == (("price", "Price"),)  # "sizes" holds words; q1 and q2 differ in their number
    assert "; perhaps 'price' was renamed to 'Price'; the common column is compared." in found.sentence
    with pytest.raises(InputError, match=r"no common column is left .*; perhaps 'price' was renamed to 'Price'; give"):
        compare_schemas(Schema.of(before[["price"]]), Schema.of(after[["Price"]]))


def test_the_order_of_columns_is_no_change():
    schema = Schema.of(BEFORE)
    turned = compare_schemas(schema, Schema.of(BEFORE[BEFORE.columns[::-1]]))
    assert (turned.common, turned.changes, turned.sentence) == (list(BEFORE), (), "")


def test_the_test_refuses_times_with_and_without_a_zone_by_name():
    with pytest.raises(InputError, match="'when'") as caught:
        two_sample_test(BEFORE[["x", "when"]], AFTER[["x", "when"]])
    assert caught.value.column == "when"
