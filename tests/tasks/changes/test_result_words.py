"""What a search for changes answers in words and numbers: one count, levels without the seasons, drifts, zones."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from isopleth import ChangePointDetector, InputError, load, save

HOURS = pd.date_range("2024-03-04", periods=14 * 24, freq="h")
DAY = 5.0 * np.sin(2.0 * np.pi * HOURS.hour / 24.0).to_numpy()


@pytest.fixture(scope="module")
def busy():
    """Two weeks of hours with a day, a step of 4 at six in the evening and an incident of five hours."""
    series = 20.0 + DAY + 0.5 * np.random.default_rng(0).normal(size=len(HOURS))
    series[162:] += 4.0
    series[100:105] += 8.0
    return ChangePointDetector(random_state=0).fit(pd.Series(series, HOURS, name="load")).result_


def test_levels_before_and_after_are_without_the_seasons(busy):
    rows = busy.table()
    assert rows["kind"].tolist() == ["incident", "level"]
    assert rows["before"].tolist() == pytest.approx([20.0, 20.0], abs=0.2)
    assert rows["after"].tolist() == pytest.approx([20.0, 24.0], abs=0.2)
    # Means of a few hours without a season would be far off.
    assert rows["height"].tolist()[0] == pytest.approx(8.0, abs=0.7)
    assert rows["until"].tolist()[0] == 104


def test_text_json_and_page_have_one_count(busy, tmp_path):
    found = busy.to_dict()
    assert (found["changes"], len(found["table"])) == (2, 2)
    assert "changes 2 times." in busy.text()
    busy.report(tmp_path / "page.html")
    assert "load: 2 changes" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(busy.incidents) == 1


def test_seasons_of_the_calendar_have_their_names(busy):
    assert "Taken out: days (period=None leaves them in)." in busy.text()
    found = ChangePointDetector(period=12, random_state=0).fit(DAY + np.random.default_rng(1).normal(size=len(DAY)))
    assert "Taken out: a season of 12 steps (period=None leaves them in)." in found.result_.text()


def test_levels_of_a_series_that_grows_with_its_season_are_those_of_the_average_season():
    rng = np.random.default_rng(3)
    rate = np.exp(0.8 * np.sin(2.0 * np.pi * np.arange(480) / 24.0) + 0.05 * rng.normal(size=480))
    rate *= np.where(np.arange(480) >= 300, 3.0, 1.0)
    (row,) = ChangePointDetector(random_state=0).fit(rate).result_.to_dict()["table"]
    usual = rate[:288].mean()
    assert (row["before"], row["after"]) == (pytest.approx(usual, rel=0.05), pytest.approx(3.0 * usual, rel=0.05))


@pytest.mark.parametrize(("slope", "step"), [(2.0, -300.0), (2.0, 50.0), (0.0, 50.0)])
def test_a_step_between_lines_has_the_values_beside_it(slope, step):
    steps = np.arange(400.0)
    series = 100.0 + slope * steps + 5.0 * np.random.default_rng(0).normal(size=400) + step * (steps >= 200)
    found = ChangePointDetector(random_state=0).fit(series).result_
    row = found.table().iloc[0]
    assert (row["change"], row["kind"]) == (200, "level")
    before = 100.0 + 200.0 * slope
    assert (row["before"], row["after"]) == (pytest.approx(before, abs=4.0), pytest.approx(before + step, abs=4.0))
    drawn = next(one for one in found.content().charts[0].series if "segment" in one.name)
    assert list(drawn.y[:2]) == [pytest.approx(100.0, abs=4.0), pytest.approx(before, abs=4.0)]


def test_before_and_after_of_scatter_and_slope_are_what_changed():
    rng = np.random.default_rng(4)
    series = np.concatenate([rng.normal(size=200), 4.0 * rng.normal(size=200)])
    (row,) = ChangePointDetector(random_state=0).fit(series).result_.to_dict()["table"]
    assert row["kind"] == "scatter"
    assert (row["before"], row["after"]) == (pytest.approx(1.0, rel=0.2), pytest.approx(4.0, rel=0.2))
    bent = 0.2 * np.maximum(np.arange(400) - 200.0, 0.0) + rng.normal(size=400)
    (row,) = ChangePointDetector(random_state=0).fit(bent).result_.to_dict()["table"]
    assert row["kind"] == "slope"
    assert (row["before"], row["after"]) == (pytest.approx(0.0, abs=0.02), pytest.approx(0.2, abs=0.02))


def test_a_drift_is_said_and_rules_no_change_out():
    rng = np.random.default_rng(5)
    line = 0.02 * np.arange(400) + rng.normal(size=400)
    text = ChangePointDetector(random_state=0).fit(line).result_.text()
    assert text.startswith("The series of 400 steps shows no change.\nIt drifts from about ")
    assert "along a line: changes describe this no better, but are not ruled out." in text
    curve = 6.0 * (1.0 - np.exp(-np.arange(300) / 60.0)) + rng.normal(size=300)
    assert (
        "along a smooth curve: changes describe this no better, but are not ruled out."
        in ChangePointDetector(random_state=0).fit(curve).result_.text()
    )
    assert "drifts" not in ChangePointDetector(random_state=0).fit(rng.normal(size=300)).result_.text()


def test_a_stretch_without_values_beside_a_change_makes_no_warning():
    series = np.repeat([0.0, 6.0], 100) + np.random.default_rng(6).normal(size=200)
    series[:40] = np.nan
    series[100:125] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ChangePointDetector(random_state=0).fit(series).result_
        assert len(result.to_dict()["table"]) == result.count
        result.text()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "+02:00"])
def test_a_detector_with_times_of_a_zone_is_saved_and_shows_them(tmp_path, zone):
    times = pd.date_range("2024-03-30", periods=60, freq="h", tz=zone)
    frame = pd.DataFrame({"when": times, "x": np.repeat([0.0, 8.0], 30) + np.random.default_rng(7).normal(size=60)})
    detector = ChangePointDetector(random_state=0).fit(frame)
    save(detector, tmp_path / "model.isopleth")
    again = load(tmp_path / "model.isopleth").result_
    place = int(detector.change_points_[0])
    assert again.words_of_time(place) == detector.result_.words_of_time(place) == str(times[place])
    assert pd.Timestamp(again.table()["time"][0]) == times[place]


def test_a_period_with_a_typing_error_is_refused_with_what_is_meant():
    with pytest.raises(InputError, match="period = 'dya': did you mean 'day'"):
        ChangePointDetector(period="dya").fit(np.arange(20.0))


@pytest.mark.parametrize("timed", [True, False])
def test_a_changed_season_says_which_part(timed):
    rng = np.random.default_rng(8)
    hours = np.arange(60 * 24)
    series = 4.0 * np.sin(2.0 * np.pi * hours / 24.0) + 0.5 * rng.normal(size=len(hours))
    series += 3.0 * ((hours >= 720) & (hours % 24 >= 9) & (hours % 24 <= 12))
    series -= 3.0 * ((hours >= 720) & (hours % 24 >= 19) & (hours % 24 <= 22))
    times = pd.date_range("2024-03-04", periods=len(hours), freq="h") if timed else None
    result = ChangePointDetector(random_state=0).fit(series, times=times).result_
    assert len(result) == 1
    part = r"from (09:00 to 12:00|19:00 to 22:00) of each day" if timed else r"at steps (9 to 12|19 to 22) of each 24"
    assert re.search(rf"From step 7\d\d on, the series is (3|2\.\d+|3\.\d+) (higher|lower) {part}", result.text())


def test_the_steps_at_the_end_in_which_changes_are_not_sought_are_said(tmp_path):
    series = np.random.default_rng(0).normal(size=(2, 500))
    single, pair = (ChangePointDetector(random_state=0).fit(some).result_ for some in (series[0], series.T))
    said = "Changes that too few steps follow are not sought: level in the last 4 steps; slope in the last 5 steps; scatter in"
    assert len(single) == 0
    assert said in single.text()
    assert "relation" not in single.text()
    assert "level and relation in the last 4 steps" in pair.text()
    assert single.to_dict()["followed_by"]["level"] == 5
    single.report(tmp_path / "page.html")
    assert said in (tmp_path / "page.html").read_text(encoding="utf-8")
    short = ChangePointDetector(random_state=0).fit(series[0, :100]).result_.text()
    assert "The series is too short for changes of shape and frequency." in short
    assert "too few" not in ChangePointDetector().fit(np.ones(100)).result_.text()


@pytest.mark.parametrize("days", [0.0, 3.0])
def test_a_level_is_told_from_the_step_on_that_the_result_says_or_if_it_is_sharp(days):
    series = days * np.sin(2.0 * np.pi * np.arange(504) / 24.0) + np.random.default_rng(2).normal(size=504)
    for height, follow, told in ((6.0, 5, [499]), (10.0, 4, [500]), (10.0, 2, [502])):
        found = ChangePointDetector(random_state=0).fit(series + height * (np.arange(504) >= 504 - follow))
        assert found.result_.followed_by["level"] == 5
        assert found.change_points_.tolist() == told, (height, follow)
