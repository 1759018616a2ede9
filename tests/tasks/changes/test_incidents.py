"""An incident is told as one thing, with both ends and its height."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from isopleth import ChangePointDetector
from isopleth.tasks.changes.incidents import with_incidents


@pytest.mark.parametrize("height", [10.0, -10.0])
def test_a_short_level_that_comes_back_is_one_incident(height):
    times = pd.date_range("2024-03-04", periods=500, freq="5min")
    series = np.random.default_rng(0).normal(size=500)
    series[200:212] += height
    result = ChangePointDetector(random_state=0).fit(pd.Series(series, times)).result_
    assert result.kinds.tolist() == ["incident", "incident"]
    assert np.abs(result.incidents - [[200, 212]]).max() <= 1
    text = result.text()
    assert "changes once." in text
    direction = "higher" if height > 0.0 else "lower"
    assert re.search(
        rf"steps 200 to 211 \(incident, \d+(\.\d+)? {direction}, 2024-03-04 16:40.* to 2024-03-04 17:35", text
    )


def test_what_is_long_or_does_not_come_back_is_no_incident():
    kinds, columns = np.array(["level", "level"], dtype="<U9"), [(0,), (0,)]

    def named(levels, lengths):
        values = np.repeat(levels, lengths)[:, None].astype(float)
        return with_incidents(values, np.cumsum(lengths)[:-1], kinds, columns).tolist()

    assert named([0, 5, 0], [200, 20, 200]) == ["incident", "incident"]
    assert named([0, 5, 3], [200, 20, 200]) == ["level", "level"]
    assert named([0, 5, 0], [200, 60, 200]) == ["level", "level"]
    assert named([0, 5, 0], [200, 20, 30]) == ["level", "level"]
    values = np.repeat([0.0, 5.0, 0.0], [200, 20, 200])[:, None] * [1.0, 1.0]
    assert with_incidents(values, np.array([200, 220]), kinds, [(0,), (1,)]).tolist() == ["level", "level"]
