"""``isopleth demo``: a first run without any file."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cli import shell
from isopleth.cli import demo as demo_command
from isopleth.datasets import load_breast

run = partial(shell.run, "demo")

pytest.importorskip("matplotlib")


def test_the_table_is_real_and_says_what_is_an_anomaly():
    breast = load_breast()
    assert breast.data.shape == (len(breast.labels), len(breast.feature_names)) == (367, 30)
    assert np.isfinite(breast.data).all()
    assert breast.labels.tolist() == [0] * 357 + [1] * 10
    assert "malignant" in breast.description


def test_prints_the_table_and_draws_the_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run()
    assert (result.exit_code, result.stderr) == (0, "")
    assert Path("isopleth-demo.png").read_bytes().startswith(b"\x89PNG")
    assert " of 367 rows are flagged" in result.stdout
    found, known, top = map(
        int, re.search(r"(\d+) of the (\d+) known anomalies are among the (\d+)", result.stdout).groups()
    )
    assert known == top == 10
    assert found >= 4  # by chance it would be 0 or 1
    assert "isopleth-demo.png" in result.stdout.splitlines()[-1]


def test_the_table_is_printed_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_command, "find_spec", lambda name: None)
    result = run()
    assert (result.exit_code, list(tmp_path.iterdir())) == (0, [])
    assert result.stdout.endswith("There is no picture: matplotlib is not installed.\n")


@pytest.mark.parametrize(("name", "words"), [("none/p.png", "does not exist"), ("p.gif", ".png, .svg, .pdf")])
def test_a_picture_that_cannot_be_written_is_refused(tmp_path, name, words):
    result = run("--plot", tmp_path / name)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
