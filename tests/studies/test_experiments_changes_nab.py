"""Changes of series of the Numenta Anomaly Benchmark: what lies inside windows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from experiments import changes_nab


def written(folder, name, values):
    times = pd.date_range("2014-04-01", periods=len(values), freq="5min")
    pd.DataFrame({"timestamp": times, "value": values}).to_csv(folder / f"{name}.csv.gz", index=False)
    return times


def test_a_step_inside_a_window_is_right_and_another_one_is_outside(tmp_path, capsys):
    folder = tmp_path / "cpd" / "nab"
    folder.mkdir(parents=True)
    values = np.random.default_rng(0).normal(size=400)
    values[100:] += 4.0
    values[250:] -= 8.0
    times = written(folder, "steps", values)
    doubled = pd.read_csv(folder / "steps.csv.gz")
    doubled.loc[[*doubled.index, 399]].to_csv(folder / "steps.csv.gz", index=False)  # the last time occurs twice
    windows = {"steps": [[str(times[95]), str(times[110])], [str(times[300]), str(times[320])]]}
    (folder / "windows.json").write_text(json.dumps(windows))
    changes_nab.main(["--data", str(tmp_path)])
    header, of_series, of_all = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header[3:] == ["told", "inside", "outside", "windows", "missed"]
    assert of_series[3:] == of_all[3:] == ["2", "1", "1", "2", "1"]


def test_an_incident_is_inside_if_any_of_its_steps_is(monkeypatch):
    times = pd.date_range("2014-04-01", periods=50, freq="5min")
    rows = pd.DataFrame({"timestamp": times, "value": np.zeros(50)})
    monkeypatch.setattr(changes_nab, "reported", lambda file: [{"line": 12, "until": 21}, {"line": 30, "until": None}])
    for step, inside in ((9, 0), (10, 1), (19, 1), (20, 0), (28, 1), (29, 0)):
        window = [[str(times[step]), str(times[step])]]
        assert changes_nab.counted(rows, window).inside == inside


def test_the_absent_rise_has_the_values_of_twelve_hours_before():
    steps = np.arange(14 * 288) % 288
    rises = np.where((steps >= 108) & (steps < 216), 80.0, 20.0)
    times = pd.date_range("2014-04-01", periods=len(rises), freq="5min")
    made = changes_nab.without_rise(pd.DataFrame({"timestamp": times, "value": rises}))["value"].to_numpy()
    day = np.asarray(times.strftime("%Y-%m-%d") == "2014-04-11")
    assert (made[day] == 20.0).all()
    assert np.array_equal(made[~day], rises[~day])
