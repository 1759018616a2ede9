"""Anomalies in words, tables and pictures: of scores made by hand, so that no detector is fitted."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time

import numpy as np
import pytest
from scipy.special import ndtri

from isopleth.tasks.anomaly.result import (
    Anomalies,
    _deviations,
    certificate_chart,
    rows_chart,
    scores_chart,
    values_text,
    with_fields,
)

N = 60


def anomalies(scores, flagged=(), certain=(), **about):
    """Rows of two columns in lines from 2 on: the first column falls with the score, the second is noise."""
    scores = np.asarray(scores, dtype=float)
    n = len(scores)
    labels, sure = np.ones(n, dtype=int), np.zeros(n, dtype=bool)
    labels[list(flagged)], sure[list(certain)] = -1, True
    values = np.column_stack([-scores, np.random.default_rng(0).normal(size=n)])
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    about = {"p_values": (ranks + 1.0) / n, "where": {"line": np.arange(n) + 2}, "values": values} | about
    p_values, values = about.pop("p_values"), about.pop("values")
    return Anomalies(["x", "y"], values, scores, p_values, labels, sure, 0.05, "the rule", **about)


@pytest.fixture
def scores():
    """Scores of which rows 7 and 3 are far below the others."""
    found = np.random.default_rng(1).normal(size=N)
    found[[7, 3]] = -15.0, -12.0
    return found


def summary(found):
    return found.to_dict()["summary"]


def test_rows_are_in_the_order_of_their_scores_and_ties_in_that_of_the_table():
    found = anomalies([2.0, -1.0, 2.0, -1.0, 0.0], flagged=[1], certain=[3])
    assert found.order.tolist() == [1, 3, 4, 0, 2]
    table = found.to_dict()["table"]
    assert [row["line"] for row in table] == [3, 5, 6, 2, 4]
    assert [(row["flagged"], row["certain"]) for row in table[:3]] == [(True, False), (False, True), (False, False)]
    assert [found.to_dict()[name] for name in ("rows", "flagged", "certain")] == [5, 1, 1]
    assert repr(found) == "Anomalies(1 of 5 rows flagged)"


def test_no_p_value_is_below_what_the_rows_can_show(scores):
    found = anomalies(scores, resolution=0.1)
    assert found.p_values.min() == 0.1
    assert found.pvalue_text(7) == "<= 0.1"
    assert found.pvalue_text(int(found.order[-1])) == "= 1"


def test_sentences_count_flagged_and_certain_rows(scores):
    none = summary(anomalies(scores))
    assert none[0] == "0 of 60 rows are flagged: the rule."
    assert "None of them is certain at a false discovery rate of 0.05" in " ".join(none)
    one = " ".join(summary(anomalies(scores, flagged=[7], certain=[7])))
    assert one.startswith("1 of 60 rows is flagged: the rule.")
    assert "1 row is an anomaly at a false discovery rate of 0.05" in one
    assert "not flagged" not in one
    more = " ".join(summary(anomalies(scores, flagged=[7], certain=[7, 3, 5])))
    assert "3 rows are anomalies at" in more
    assert "2 of them are not flagged: among so many" in more
    assert summary(anomalies(scores))[-1].startswith("The least likely one is line 9 (score -15, p = 0.0167): x=15, y=")


def test_a_gap_sets_the_least_likely_rows_apart(scores):
    two = " ".join(summary(anomalies(scores, flagged=[7, 3])))
    least = np.sort(scores)[2]
    assert (
        "A gap in the scores sets the 2 least likely rows apart from the others: their scores are at most -12," in two
    )
    assert f" those of all others at least {least:.4g}." in two
    scores[3] = 0.0
    one = " ".join(summary(anomalies(scores, flagged=[7])))
    least = np.sort(scores)[1]
    assert (
        f"the least likely row apart from the others: its score is -15, those of all others at least {least:.4g}."
        in one
    )
    flat = np.linspace(0.0, 1.0, N)
    assert "No gap in the scores sets these rows apart from the others." in summary(anomalies(flat, flagged=[0]))
    assert "gap" not in " ".join(summary(anomalies(flat)))


@pytest.mark.parametrize(
    ("limits", "certified", "said"),
    [
        ([0, 1, 2, 3, 3, 3], (4, 3), "At least 3 of the first 4 rows are anomalies, with 95% confidence"),
        ([0, 0, 0, 0, 1, 1], (5, 1), "At least 1 of the first 5 rows is an anomaly, with 95%"),
        ([1, 1, 1, 1, 1, 1], (1, 1), "At least 1 of the first 1 row is an anomaly, with 95%"),
        (
            [0, 0, 0, 0, 0, 0],
            (0, 0),
            "holds for all lists at once with 95% confidence is a stricter promise, and is 0 here",
        ),
    ],
)
def test_the_list_that_is_certified_has_the_most_anomalies_for_its_length(limits, certified, said):
    found = anomalies(np.arange(6.0), at_least=np.array(limits), new=True)
    assert found.certified == certified
    assert [found.to_dict()[name] for name in ("certified_rows", "certified_anomalies")] == list(certified)
    assert said in " ".join(summary(found))
    assert [row["at_least"] for row in found.to_dict()["table"]] == limits
    without = anomalies(np.arange(6.0))
    assert (without.certified, without.to_dict()["confidence"]) == ((None, None), None)


def test_the_error_of_flags_is_that_of_a_share_of_the_sample(scores):
    found = anomalies(scores, flagged=[7, 3], sampled=400)
    p = 2.0 / N
    assert found.flag_error == pytest.approx(np.sqrt(p * (1.0 - p) / 400))
    assert f"differ by {found.flag_error:.2g} (one standard error)" in " ".join(summary(found))
    p = 1.0 / N  # without a flag the least one
    assert replace(found, labels=np.ones(N)).flag_error == pytest.approx(np.sqrt(p * (1.0 - p) / 400))
    assert anomalies(scores).flag_error is None


def test_how_extreme_a_cell_is():
    rng = np.random.default_rng(2)
    others = rng.normal(3.0, 2.0, size=(4001, 1))
    found = _deviations(np.array([[3.0], [7.0], [-1.0], [np.nan]]), others)[:, 0]
    np.testing.assert_allclose(found, [0.0, 2.0, 2.0, 0.0], atol=0.15)
    words = np.array(["a"] * 90 + ["b"] * 10, dtype=object)[:, None]
    asked = np.array([["a"], ["b"], ["new"]], dtype=object)
    found = _deviations(asked, words)[:, 0]
    np.testing.assert_allclose(found, ndtri(1.0 - 0.5 * np.array([0.9, 0.1, 0.005])))
    assert (_deviations(asked, words[:90]) == -1.0).all()
    hours = np.array([time(k % 24, k % 60, k % 50) for k in range(240)], dtype=object)[:, None]
    seconds = np.array([3600.0 * k.hour + 60.0 * k.minute + k.second for k in hours[:, 0]])[:, None]
    np.testing.assert_allclose(_deviations(hours[:9], hours), _deviations(seconds[:9], seconds))
    days = np.array([datetime(2024, 1, 1 + k % 28) for k in range(280)], dtype=object)[:, None]
    numbers = np.array([float(day.day) for day in days[:, 0]])[:, None]
    np.testing.assert_allclose(_deviations(days[:9], days), _deviations(numbers[:9], numbers))


def test_values_are_told_the_most_extreme_first(scores):
    found = anomalies(scores)
    assert values_text(found, np.array([7]))[0].split("  ")[0] == "x=15"
    assert [text.count("=") for text in values_text(found, np.array([7, 3]), 1)] == [1, 1]
    extreme = replace(
        found, values=np.column_stack([found.values[:, 0], np.where(np.arange(N) == 7, 1e6, found.values[:, 1])])
    )
    assert values_text(extreme, np.array([7]))[0] == "y=1000000  x=15"


def test_the_picture_of_scores_has_each_row_at_its_rank_and_wild_ones_on_the_edge(scores):
    found = anomalies(scores, flagged=[7, 3])
    chart = scores_chart(found)
    plain, flagged = chart.series
    assert plain.name == "not flagged (58)"
    assert flagged.name == "flagged (2)"
    assert flagged.x.tolist() == [1, 2]
    assert flagged.y.tolist() == [-15.0, -12.0]
    np.testing.assert_array_equal(plain.y, np.sort(scores)[plain.x - 1])
    assert chart.title == f"Rows are flagged up to p = {2.0 / N:.3g}"
    scores[7] = -1e6
    low, high = np.percentile(scores, [25, 75])
    wild = scores_chart(anomalies(scores, flagged=[7]))
    assert wild.series[1].y[0] == pytest.approx(low - 20.0 * (high - low))
    assert wild.series[1].beyond.tolist() == [180]
    assert (wild.series[0].beyond == -1).all()
    known = np.zeros(N, dtype=bool)
    known[[7, 3, 5]] = True
    told = scores_chart(anomalies(scores, flagged=[7], known=known))
    assert told.title == "1 of 3 known anomalies are flagged"
    assert sorted(told.series[-1].x)[:2] == [1, 2]
    assert scores_chart(anomalies(scores)).title == "No row is flagged"


def test_the_picture_of_limits_goes_on_behind_the_last_that_rises():
    limits = np.minimum(np.arange(N) // 2, 11)
    found = anomalies(np.arange(float(N)), at_least=limits)
    chart = certificate_chart(found, limits)
    steps, whole = chart.series
    assert steps.x.tolist() == list(range(1, 47))  # twice as far as the last rise, in row 23
    np.testing.assert_array_equal(steps.y, limits[:46])
    np.testing.assert_array_equal(whole.y, whole.x)
    assert chart.title == "At least 11 of 60 rows are anomalies"
    assert certificate_chart(found, np.minimum(limits, 1)).title == "At least 1 of 60 rows is an anomaly"


def test_the_picture_of_rows_has_the_flagged_ones_and_the_others(scores):
    found = anomalies(scores, flagged=[7, 3])
    chart = rows_chart(found)
    grey, red = (series for series in chart.series if series.colour in ("grey", "vermillion"))
    assert (grey.name, red.name) == ("not flagged (58 of 58 shown)", "flagged (2)")
    assert list(red.labels) == ["1", "2"]
    assert chart.title == "2 flagged rows in x and y"
    assert chart.x_label == "x"
    least = np.delete(found.values, [7, 3], axis=0)
    room = 2.0 * np.ptp(least[:, 0])
    assert max(red.x) <= least[:, 0].max() + room + 1e-9
    assert "Triangles: 1 row beyond the frame." in chart.about or "Triangles: 2 rows beyond the frame." in chart.about
    quiet = rows_chart(anomalies(scores))
    assert quiet.title == "No row is flagged in x and y"
    assert [series.name for series in quiet.series][-1] == "the 10 least likely, not flagged"


def test_of_many_columns_those_are_shown_in_which_flagged_rows_deviate():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(N, 40))
    values[7, [5, 31]] = 90.0
    names = [f"c{j}" for j in range(40)]
    few = replace(anomalies(rng.normal(size=N), flagged=[7]), names=names, values=values)
    shown = few._telling_columns()
    assert shown == sorted(shown)
    assert {5, 31} <= set(shown)
    assert len(shown) < 40
    assert f"{len(shown)} of 40 columns are shown." in few._tables()[0].about


def test_other_fields_leave_the_order_of_the_rows_as_it_is():
    found = anomalies(np.random.default_rng(0).normal(size=60).round(1), [3])
    changed = with_fields(found, names=["a", "b"], of_cells=["A sentence."])
    assert changed.order is found.order
    assert (changed.names, changed.of_cells) == (["a", "b"], ["A sentence."])
    np.testing.assert_array_equal(changed.scores, found.scores)
