"""``isopleth changes``: what it prints, the files it writes, and one line for all that is wrong."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from isopleth.cli.program import program

RNG = np.random.default_rng(0)
SERIES = np.column_stack([np.repeat([0.0, 4.0], [40, 30]) + RNG.normal(size=70), RNG.normal(size=70)])


def run(*arguments):
    return CliRunner().invoke(program, [str(argument) for argument in arguments], prog_name="isopleth")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    np.savetxt(path, SERIES, delimiter=",", header="flow,heat", comments="")
    return path


def test_the_change_is_shown_with_its_line_and_its_row_if_asked_for(file):
    result = run("changes", file, "--column", "flow")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "70 rows of flow: 1 change (false-alarm rate 0.05)"
    assert lines[2].split()[:2] == ["line", "score"]
    assert lines[3].split()[0] == "42"
    lines = run("changes", file, "--column", "flow", "--row-numbers").stdout.splitlines()
    assert lines[2].split()[:3] == ["line", "row", "score"]
    assert lines[3].split()[:2] == ["42", "41"]


def test_files_are_written(file, tmp_path):
    out, plot = tmp_path / "rows.csv", tmp_path / "changes.svg"
    result = run("changes", file, "--column", "flow", "--out", out, "--plot", plot)
    assert result.exit_code == 0, result.output
    with open(out, newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 70
    assert [int(row["line"]) for row in rows if row["change"]] == [42]
    assert float(rows[40]["score"]) > 0.1
    assert "flow" in plot.read_text(encoding="utf-8") or plot.stat().st_size > 5000


def test_several_columns_are_one_series_and_calm_is_said(file):
    assert "of flow, heat: 1 change" in run("changes", file).stdout
    assert run("changes", file, "--column", "heat").stdout == "70 rows of heat: no changes (false-alarm rate 0.05)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--column", "cold"], "cold"),
        (["--out", "rows.txt"], "none of .csv, .parquet"),
        (["--plot", "table.csv"], "none of .png"),
        (["--false-alarm-rate", "0"], "false-alarm-rate"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(file, arguments, message):
    result = run("changes", file, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_short_series_and_gaps_are_refused(tmp_path):
    short, gaps = tmp_path / "short.csv", tmp_path / "gaps.csv"
    short.write_text("a\n1\n2\n3\n")
    gaps.write_text("a\n" + "\n".join("1" if i != 7 else "nan" for i in range(30)) + "\n")
    for path, message in ((short, "3 rows"), (gaps, "NaN")):
        result = run("changes", path)
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
