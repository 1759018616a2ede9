"""Every table enters once: commands open a file once, and use nothing of an estimator that is private."""

from __future__ import annotations

import ast
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import isopleth
from cli import shell
from isopleth import AnomalyDetector, read_table

CLI = Path(isopleth.__file__).parent / "cli"
_counters = []


def _audit(event, arguments):
    if event == "open" and _counters and isinstance(arguments[0], (str, bytes, os.PathLike)):
        _counters[-1][os.fsdecode(arguments[0])] += 1


@pytest.fixture(scope="module")
def _hooked():
    sys.addaudithook(_audit)  # it stays, and counts nothing without a counter
    yield
    _counters.clear()


@pytest.mark.usefixtures("_hooked")
@pytest.mark.parametrize(
    ("command", "files"),
    [
        (["anomalies", "a.csv"], ["a.csv"]),
        (["anomalies", "words.csv", "--out", "o.csv"], ["words.csv"]),
        (["anomalies", "a.csv", "--reference", "b.csv"], ["a.csv", "b.csv"]),
        (["changes", "a.csv"], ["a.csv"]),
        (["compare", "a.csv", "b.csv", "--resamples", "9"], ["a.csv", "b.csv"]),
        (["compare", "words.csv", "words2.csv", "--groups", "kind", "--resamples", "9"], ["words.csv", "words2.csv"]),
        (["prior", "words.csv", "a.csv", "--target", "kind"], ["words.csv", "a.csv"]),
        (["sample", "words.csv", "-n", "5", "--out", "o.csv"], ["words.csv"]),
    ],
)
def test_a_file_is_opened_once(tmp_path, monkeypatch, command, files):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, words in (("a", False), ("b", False), ("words", True), ("words2", True)):
        rows = rng.normal(size=(60, 2)).round(3)
        lines = [f"{a},{b},{'xy'[int(a > 0)]}" if words else f"{a},{b}" for a, b in rows.tolist()]
        Path(f"{name}.csv").write_text("\n".join(["a,b,kind" if words else "a,b", *lines]) + "\n")
    _counters.append(Counter())
    result = shell.run(*command)
    opened = _counters.pop()
    if "--groups" in command:  # two groups in all are refused, after the files have been read
        assert "groups" in result.stderr
    else:
        assert result.exit_code == 0, result.output
    assert {name: opened[name] for name in files} == dict.fromkeys(files, 1)


def test_commands_use_nothing_private_of_estimators():
    found, of_results = [], {"_columns", "_replace", "_exit"}  # the last two of named tuples and of os
    for path in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
            if (
                private
                and node.attr not in of_results
                and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
            ):
                found.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
    assert found == []


def test_a_table_that_was_read_is_explained_as_its_frame_is(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"]).assign(word=rng.choice(["x", "y"], 60))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    table = read_table(tmp_path / "rows.csv")
    found = [
        AnomalyDetector(random_state=0).fit(given).anomalies(given, explain=3)
        for given in (table, pd.read_csv(tmp_path / "rows.csv"))
    ]
    assert found[0].to_dict() == found[1].to_dict()


def test_periods_are_the_times_at_which_they_start():
    months = pd.Series(pd.period_range("2018-01", periods=60, freq="M"))
    frame = pd.DataFrame({"month": months, "value": np.random.default_rng(0).normal(size=60)})
    frame.loc[5, "month"] = pd.NaT
    starts = frame.assign(month=frame["month"].dt.to_timestamp())
    found, expected = (AnomalyDetector(random_state=0).fit(table) for table in (frame, starts))
    np.testing.assert_array_equal(found.score_samples(frame), expected.score_samples(starts))
    assert isinstance(frame["month"].dtype, pd.PeriodDtype)
