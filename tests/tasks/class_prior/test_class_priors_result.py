"""Shares of classes in words, tables and pictures: of shares made by hand, so that no estimator is fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isopleth.tasks.class_prior.result import ClassPriors


def priors(shares, half=0.05, **about):
    shares = np.asarray(shares, dtype=float)
    classes = np.array([f"c{k}" for k in range(len(shares))])
    lower, upper = np.maximum(shares - half, 0.0), np.minimum(shares + half, 1.0)
    return ClassPriors(classes, shares, lower, upper, np.zeros((len(shares),) * 2), 0.95, 200, **about)


def summary(found):
    return found.to_dict()["summary"]


def test_the_most_frequent_class_is_told_with_its_interval():
    found = priors([0.2, 0.5, 0.3])
    first, about = summary(found)
    assert first == "Of 200 rows without labels, about 50.0% (45.0% to 55.0%) belong to the most frequent class, c1."
    assert about.startswith("Intervals of the shares among these rows hold with 95 % confidence")
    assert "in the population of these rows" in summary(replace(found, population=True))[1]
    assert repr(found) == (
        "ClassPriors(c0: 0.200 [0.150, 0.250], c1: 0.500 [0.450, 0.550], c2: 0.300 [0.250, 0.350]; 95% intervals)"
    )
    assert str(found).splitlines()[1] == "c1: 0.500 [0.450 0.550]"
    assert "99.5% intervals" in repr(replace(found, confidence_level=0.995))


@pytest.mark.parametrize(
    ("lower", "upper", "vague"),
    [
        ([0.0, 0.0], [0.9, 0.5], " of c0"),  # of width 0.9, next to nothing
        ([0.05, 0.0], [0.94, 0.5], None),
        ([0.0, 0.0], [1.0, 1.0], ""),
    ],
)
def test_intervals_that_say_next_to_nothing_are_told(lower, upper, vague):
    found = replace(priors([0.6, 0.4]), lower=np.array(lower), upper=np.array(upper))
    first = summary(found)[0]
    said = first.startswith("These rows say next to nothing about the shares")
    assert said == (vague is not None)
    if said:
        assert first.startswith(f"These rows say next to nothing about the shares{vague}: label more rows")
        assert str(found).splitlines()[-1] == first


def test_groups_are_told_from_the_largest_share_to_the_smallest():
    groups = {"a": priors([0.3, 0.7]), "b": priors([0.1, 0.9]), "d": priors([0.45, 0.55])}
    found = priors([0.3, 0.7], by="site", groups=groups)
    said = summary(found)[1]
    assert said == (
        "Of the 3 groups of site, b has the largest share of c1, 90.0% (85.0% to 95.0%), "
        "and d the smallest, 55.0% (50.0% to 60.0%)."
    )
    near = replace(found, groups={"a": priors([0.3, 0.7]), "b": priors([0.21, 0.79])})
    assert summary(near)[1].endswith("and a the smallest, 70.0% (65.0% to 75.0%); their intervals overlap.")
    assert len(summary(replace(found, groups={"a": groups["a"]}))) == 2
    table = found.to_dict()["table"]
    assert [(row["group"], row["class"], row["prior"]) for row in table[:3]] == [
        ("a", "c0", 0.3),
        ("a", "c1", 0.7),
        ("b", "c0", 0.1),
    ]
    assert str(found).splitlines()[2:] == [f"{name}: {', '.join(each._lines(' '))}" for name, each in groups.items()]
    charts = found._charts()
    assert [chart.title for chart in charts] == [
        "c1 is the most frequent class: 70.0%",
        "b has the largest share of c1: 90.0%",
    ]
    assert list(charts[1].names) == ["b", "a", "d"]


def test_a_picture_has_the_shares_and_their_intervals_the_largest_first():
    found = priors([0.2, 0.5, 0.3])
    (chart,) = found._charts()
    ranges, dots = chart.series
    assert list(chart.names) == ["c1", "c2", "c0"]
    np.testing.assert_allclose(dots.y, [0.5, 0.3, 0.2])
    np.testing.assert_allclose(ranges.low, [0.45, 0.25, 0.15])
    np.testing.assert_allclose(ranges.y, [0.55, 0.35, 0.25])
    assert dots.notes[0] == "c1: 50.00% (45.00% to 55.00%)"
    many = priors(np.full(50, 0.02))
    assert len(many._charts()[0].names) == 40
