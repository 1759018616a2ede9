"""Alarms in words, tables and pictures: of alarms made by hand, so that no monitor is fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isopleth.tasks.drift.alarms import DriftAlarms, in_order_of_rows, joined

STATISTIC = np.array([np.nan, 0.1, 0.3, 0.4, np.nan, 0.2, 0.5])


def alarms(**about):
    return DriftAlarms(100, STATISTIC, threshold=0.3, window=20, **about)


def columns(by=(0.0, 0.0), moved=(False, False)):
    return {"column": ["a", "b"], "moved": np.array(moved), "shift_given_others": np.array(by)}


def test_a_statistic_above_the_threshold_is_an_alarm_and_one_equal_to_it_is_none():
    found = alarms()
    assert (list(found), len(found), bool(found)) == ([103, 106], 2, True)
    assert repr(found) == "DriftAlarms(2 alarms in rows 100 to 106: 103, 106)"
    assert repr(replace(found, threshold=0.45)) == "DriftAlarms(1 alarm in rows 100 to 106: 106)"
    assert repr(replace(found, threshold=1.0)) == "DriftAlarms(0 alarms in rows 100 to 106)"
    assert repr(replace(found, statistic=np.empty(0))) == "DriftAlarms(0 alarms in no rows)"
    many = replace(found, statistic=np.ones(6))
    assert repr(many).endswith("6 alarms in rows 100 to 105: 100, 101, 102, 103, 104, ...)")
    assert repr(replace(found, statistic=np.ones(5))).endswith("rows 100 to 104: 100, 101, 102, 103, 104)")


@pytest.mark.parametrize("counted_from", [0, 1])
def test_numbers_of_rows_are_those_counted_from_where_they_are_told(counted_from):
    found = alarms(counted_from=counted_from)
    said = found.to_dict()
    assert said["first_row"] == 100 + counted_from
    assert [row["row"] for row in said["table"]] == [103 + counted_from, 106 + counted_from]
    assert [row["first_row"] for row in said["table"]] == [84 + counted_from, 87 + counted_from]  # the first of 20
    assert [row["statistic"] for row in said["table"]] == [0.4, 0.5]
    where = f"{103 + counted_from} and {106 + counted_from} (counted from {counted_from})"
    assert said["summary"] == [f"2 alarms in 7 rows of the stream, at rows {where}."]


def test_a_picture_has_the_threshold_over_all_drawn_rows_and_the_alarms():
    (chart,) = alarms(counted_from=1)._charts()
    statistic, threshold, raised = chart.series
    drawn = np.asarray(statistic.x)
    assert list(threshold.x) == [drawn[0], drawn[-1]]
    assert list(threshold.y) == [0.3, 0.3]
    assert list(raised.x) == [104, 107]
    assert list(raised.y) == [0.4, 0.5]
    assert list(raised.notes) == ["alarm at row 104: 0.4, above 0.3", "alarm at row 107: 0.5, above 0.3"]
    assert dict(zip(drawn.tolist(), np.asarray(statistic.y).tolist(), strict=True))[107] == 0.5
    (quiet,) = replace(alarms(), threshold=1.0)._charts()
    assert (len(quiet.series), quiet.title) == (2, "No alarm")


def test_columns_of_the_first_alarm_are_told():
    def said(*found, **about):
        return alarms(columns=found, **about).to_dict()["summary"]

    assert said(columns(moved=(True, False)))[1] == "At the first alarm these columns had moved: a."
    assert said(columns())[1:] == ["No single column is shown to have moved at the first alarm."]
    given = "These had moved from what the others of their rows let expect, in deviations: "
    assert said(columns((0.0, -1.234)))[1:] == [f"{given}b (lower by 1.2)."]
    both = said(columns((2.0, 0.0), (True, True)), columns())
    assert both[1:] == ["At the first alarm these columns had moved: a and b.", f"{given}a (higher by 2)."]
    assert said(columns(), dependence=1.0)[0].startswith("2 alarms")
    assert "about 2.5 of them say as much as one independent row" in said(columns(), dependence=2.5)[0]
    assert len(alarms(columns=(columns((0.0, 1.0)),))._notes()) == 2
    assert len(alarms(columns=(columns(),))._notes()) == 1


@pytest.mark.parametrize("most", [1, 2, 3, 5, 7, 100])
def test_the_last_rows_of_parts_joined_are_those_of_the_whole(most):
    found = tuple({"column": [str(k)]} for k in range(2))
    parts = [
        DriftAlarms(first, STATISTIC[first - 100 : last - 100], 0.3, 20, found[k : k + own])
        for first, last, k, own in ((100, 102, 0, 0), (102, 104, 0, 1), (104, 107, 1, 1))
    ]
    last = joined(parts, most)
    n = next((count for count in (3, 5, 7) if count >= most), 7)
    np.testing.assert_array_equal(last.statistic, STATISTIC[-n:])
    assert last.first_row == 107 - n
    assert [each["column"][0] for each in last.columns] == ["0", "1"][-len(last) :]
    assert list(last) == [row for row in alarms() if row >= 107 - n]


def test_columns_that_rise_or_fall_with_the_rows_are_known():
    rising = np.arange(10.0)
    assert in_order_of_rows(rising)
    assert in_order_of_rows(-rising)
    assert in_order_of_rows(np.r_[rising, rising[-1], np.nan])
    for other in (rising[:9], np.ones(10), np.r_[rising, 8.5], np.r_[-rising, -8.5]):
        assert not in_order_of_rows(other)
