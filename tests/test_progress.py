"""Progress bars: silent by default, lines in a log, one line on a terminal, and never the end of a computation."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from isopleth import KDE, SOSREP, KernelScore, Search
from isopleth.progress import Progress


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr("isopleth.progress.PATIENCE", 0.0)
    monkeypatch.setattr("isopleth.progress.IN_LOG", 0.0)
    monkeypatch.setattr("isopleth.progress.ON_TERMINAL", 0.0)


def run(verbose=True, total=4):
    with Progress("fits", total, verbose) as step:
        for _ in range(total):
            step()


def test_short_computations_are_silent(capsys):
    run()
    assert capsys.readouterr().err == ""


def test_a_log_gets_lines(at_once, capsys):
    run(verbose=False)
    assert capsys.readouterr().err == ""
    run()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("]")[1].split(",")[0].strip() for line in lines[:4]] == ["25%", "50%", "75%", "100%"]
    assert lines[0].startswith("fits [######------------------]")
    assert lines[4].startswith("fits: done in ")


def test_a_terminal_gets_one_line_that_disappears(at_once, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    run()
    text = sys.stderr.getvalue()
    assert "\n" not in text
    assert text.endswith("\r\x1b[K")


def test_a_closed_stream_does_not_end_the_computation(at_once, monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    run()


def test_an_error_leaves_no_message_of_success(at_once, capsys):
    def broken(step):
        step()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), Progress("fits", 2, True) as step:
        broken(step)
    assert "done" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (SOSREP(length_scale=Search(cv=0.3)), "search of a length scale"),
        (KDE(length_scale=Search(cv=0.3)), "search of a length scale"),
        (KDE(debias=True), "search of a length scale and base"),
        (KernelScore(), "search of a length scale and base"),
        (SOSREP(length_scale=Search(cv=0.3), n_jobs=3), "search of a length scale"),
    ],
)
def test_searches_report_when_asked(at_once, capsys, model, label):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    model.fit(rows)
    assert capsys.readouterr().err == ""
    model.set_params(verbose=True).fit(rows)
    assert label in capsys.readouterr().err
