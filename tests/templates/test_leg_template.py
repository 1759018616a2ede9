"""The template of a leg runs in the search as it is, and the docstring of the detector lists the legs that run."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from tests.templates.leg import LEG

from isopleth import ChangePointDetector
from isopleth.tasks.changes.legs import LEGS
from isopleth.tasks.changes.search import changes_of
from isopleth.tasks.changes.series import ObservedSeries


def found(values, legs, rate=0.05):
    series = ObservedSeries(values, values, np.zeros(values.shape, dtype=bool), rate=rate)
    return changes_of(series, np.random.default_rng(0), legs)


@pytest.mark.usefixtures("few_simulations")
def test_the_template_finds_a_change_of_the_median_and_none_without_one():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 2))
    steps = noise + 2.0 * (np.arange(200) >= 120)[:, None] * [0.0, 1.0]
    both = found(steps, [LEG])
    assert abs(both.steps[0] - 120) <= 3
    assert both.kinds.tolist() == ["level"]
    assert both.columns == [(1,)]
    assert not len(found(noise, [LEG]).steps)
    # A second leg that finds the same change tells it once.
    assert len(found(steps, [*LEGS, LEG]).steps) == 1


def test_a_leg_gets_its_share_of_the_rate_and_its_p_values_are_those_of_the_detector():
    values = np.random.default_rng(1).normal(size=(60, 1)) + (np.arange(60) >= 30)[:, None] * 1.2
    series = ObservedSeries(values, values, np.zeros(values.shape, dtype=bool), rate=0.05)
    of_leg = [one for group in LEG.run(series, None, None) for one in group.changes]
    of_detector = [one for group in LEG.candidates(series, None, None) for one in group.changes]
    assert of_leg[0].pvalue == pytest.approx(LEG.share * of_detector[0].pvalue)
    weaker = ObservedSeries(values, values, series.missing, rate=1.01 * of_leg[0].pvalue)
    assert list(LEG.run(weaker, None, None))
    assert not list(LEG.candidates(weaker, None, None))


def test_the_docstring_lists_the_legs_with_their_shares():
    listed = re.findall(r"^ *- \*\*(.+?)\*\* \((\d+)/(\d+)\)", ChangePointDetector.__doc__, re.MULTILINE)
    assert [name for name, *_ in listed] == [leg.name for leg in LEGS]
    for (_, above, below), leg in zip(listed, LEGS, strict=True):
        assert float(Fraction(int(above), int(below))) == pytest.approx(leg.share)
