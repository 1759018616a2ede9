"""Series given other columns: counts are judged as rates per exposure, other columns by what a regression leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isopleth import ChangePointDetector, InputError
from isopleth.tasks.changes.given_columns import follows, left_of, split_given

pytestmark = pytest.mark.usefixtures("few_simulations")


def service(seed, length=240, doubled=None, holiday=slice(0, 0)):
    """Return hours of a service: requests with a day, and errors in proportion to them."""
    rng = np.random.default_rng(seed)
    hours = np.arange(length)
    load = 1.2 + np.sin(2.0 * np.pi * hours / 24.0)
    load[holiday] *= 0.5
    requests = rng.poisson(2000.0 * load * rng.gamma(200.0, 1.0 / 200.0, length))
    share = np.where(hours >= (length if doubled is None else doubled), 0.01, 0.005)
    errors = rng.poisson(requests * share * rng.gamma(100.0, 0.01, length))
    latency = 40.0 + 0.01 * requests + rng.normal(size=length)
    return pd.DataFrame({"requests": requests, "errors": errors, "latency": latency})


def test_a_count_is_judged_as_a_rate_so_that_a_day_off_is_no_change_and_a_doubled_rate_is_one():
    frame = service(0, doubled=150, holiday=slice(48, 72))
    result = (
        ChangePointDetector(period=None, random_state=0).fit(frame[["requests", "errors"]], given="requests").result_
    )
    assert result.kinds.tolist() == ["level"]
    assert abs(int(result.change_points[0]) - 150) <= 1
    (before,), (after,) = (result.table()[side] for side in ("before", "after"))
    assert (before, after) == (pytest.approx(0.005, rel=0.1), pytest.approx(0.01, rel=0.1))
    assert "Judged as rates: errors, per requests." in result.text()


def test_an_array_a_frame_and_names_of_given_columns_are_one():
    frame = service(1)
    rest, named = split_given(frame, ["requests"])
    assert list(rest.columns) == ["errors", "latency"]
    for given in (frame["requests"], frame[["requests"]], frame["requests"].to_numpy()):
        np.testing.assert_array_equal(split_given(rest, given)[1].values, named.values)
    assert split_given(rest, frame["requests"])[1].names == named.names == ("requests",)


def test_a_number_is_judged_by_what_given_columns_leave_of_it():
    frame = service(2, holiday=slice(48, 72))[["latency", "requests"]]
    frame.loc[175:, "latency"] += 2.0
    result = ChangePointDetector(period=None, random_state=0).fit(frame, given="requests").result_
    assert result.kinds.tolist() == ["level"]
    assert abs(int(result.change_points[0]) - 175) <= 2
    assert "Judged by residuals: latency, given requests: what follows from it is taken out." in result.text()


def test_rates_have_no_season_and_equal_scatter_and_are_gaps_without_an_exposure():
    frame = service(3)
    errors, requests = (frame[name].to_numpy(float) for name in ("errors", "requests"))
    requests[7] = 0.0
    left = left_of(errors, requests[:, None])
    assert left.kind == "rate"
    assert np.flatnonzero(np.isnan(left.sought)).tolist() == [7]
    busy = requests > np.median(requests)
    assert np.nanstd(left.sought[busy]) == pytest.approx(np.nanstd(left.sought[~busy]), rel=0.2)
    assert abs(np.nanmean(left.sought[busy]) - np.nanmean(left.sought[~busy])) < 0.25


def test_a_count_that_grows_faster_than_what_is_given_is_no_rate():
    rng = np.random.default_rng(4)
    load = np.exp(0.5 * rng.normal(size=600))
    count = rng.poisson(20.0 * load**2).astype(float)
    left = left_of(count, load[:, None])
    assert left.kind == "residual"
    assert abs(np.corrcoef(left.sought, np.log(load))[0, 1]) < 0.1


def test_several_given_columns_are_taken_in_any_order():
    rng = np.random.default_rng(5)
    given = np.exp(0.5 * rng.normal(size=(400, 2)))
    for column in (rng.poisson(30.0 * given[:, 0]).astype(float), given @ [1.0, 2.0] + rng.normal(size=400)):
        one, two = left_of(column, given), left_of(column, given[:, ::-1])
        np.testing.assert_allclose(one.sought, two.sought, atol=1e-6)


def test_a_count_that_follows_another_is_told_where_it_changes():
    frame = service(6, doubled=150)
    assert follows(frame["errors"].to_numpy(float), frame["requests"].to_numpy(float))
    rng = np.random.default_rng(6)
    assert not follows(rng.poisson(5.0, 240).astype(float), frame["requests"].to_numpy(float))
    result = ChangePointDetector(period=24, random_state=0).fit(frame[["requests", "errors"]]).result_
    assert "errors is a count that follows requests: given='requests' judges its rate." in result.text()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("request", "has no column 'request' .*perhaps 'requests'"),
        (["requests", "errors"], "no column besides"),
        (np.ones(3), "given has 3 rows"),
        (np.full(240, np.inf), "infinite"),
        (["a"] * 240, "no column 'a'"),
        (np.array(["a"] * 240), "no numbers"),
        (np.zeros(240), "missing or 0 at 240 steps"),
    ],
)
def test_what_cannot_be_given_is_refused(given, reason):
    with pytest.raises(InputError, match=reason):
        ChangePointDetector().fit(
            service(7)[["requests", "errors"]].drop(columns=[] if isinstance(given, (str, list)) else "requests"),
            given=given,
        )


def test_a_reference_has_no_given_columns():
    frame = service(8)
    with pytest.raises(InputError, match="reference cannot be used with given"):
        ChangePointDetector().fit(frame[["errors"]], given=frame["requests"], reference=frame[["errors"]][:100])
