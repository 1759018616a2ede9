"""``isopleth fit``: models of tables that are read in chunks, and fits that are interrupted."""

from __future__ import annotations

import os
import re
import signal
from functools import partial

import numpy as np
import pytest

import forked
from cli import shell
from isopleth import SOSREP, NystromKEF, Search
from isopleth.io import checkpoint as checkpoints
from isopleth.io import load
from isopleth.io import resume as journals

run = partial(shell.run, "fit")
refused = partial(shell.refused, "fit")

X = np.random.default_rng(0).normal(size=(600, 3))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    np.savetxt(path, X, delimiter=",", header="a,b,c", comments="")
    return path


def test_a_density_is_that_of_a_fit_in_memory(tmp_path, file):
    result = run(file, "--out", tmp_path / "m", "--size", 30, "--columns", "c,a", "--chunk-rows", 100)
    first, which = result.output.split("\n", 1)
    assert first == f"SOSREP of 600 rows of 2 columns in {tmp_path / 'm'}"
    assert "isopleth sample --save keeps the one that rows are drawn from" in which.replace("\n", " ")
    model = load(tmp_path / "m")
    assert model.feature_names_in_.tolist() == ["c", "a"]
    model.__dict__.pop("feature_names_in_")
    rows = np.loadtxt(file, delimiter=",", skiprows=1)[:, [2, 0]]
    there = SOSREP(landmarks=30, length_scale=Search("likelihood"), frame="scale").fit(rows).score_samples(rows)
    np.testing.assert_allclose(model.score_samples(rows), there, rtol=1e-9)
    assert model.centers_.shape == (30, 2)
    assert not (tmp_path / "m.partial").exists()


def test_an_outlier_is_the_least_likely_row_and_far_rows_are_ordered(tmp_path):
    rows = np.random.default_rng(1).normal(size=(20_000, 4))
    rows[1234] = [30.0, -20.0, 15.0, 40.0]
    np.save(tmp_path / "x.npy", rows)
    assert run(tmp_path / "x.npy", "--out", tmp_path / "m", "--size", 100).exit_code == 0
    model = load(tmp_path / "m")
    found = model.score_samples(rows)
    assert np.isfinite(found).all()
    assert found.argmin() == 1234
    far = model.score_samples(np.array([5.0, 10.0, 20.0, 50.0])[:, None] * np.eye(4)[0])
    assert np.isfinite(far).all()
    assert (np.diff(far) < 0.0).all()


def test_a_score_has_the_landmarks_and_the_scale_that_were_asked_for(tmp_path, file):
    assert run(file, "--out", tmp_path / "m", "--kind", "score", "--size", 20, "--length-scale", 2).exit_code == 0
    model = load(tmp_path / "m")
    assert isinstance(model, NystromKEF)
    assert model.centers_.shape == (20, 3)
    assert np.all(model.length_scale_ == 2.0)


def test_what_is_wrong_is_one_line_and_leaves_nothing(tmp_path, file):
    out = tmp_path / "m"
    assert "no column 'd'" in refused(file, "--out", out, "--columns", "d")
    assert "does not exist" in refused(tmp_path / "none.csv", "--out", out)
    assert "same file" in refused(file, "--out", file)
    sentence = refused(file, "--out", out, "--size", 10**8)
    assert re.search(r"use --size \d+ or less, or fewer --columns\.", sentence)
    file.write_text("a,b\n" + "1,2\n1,3\n" * 50)
    assert "'a'" in refused(file, "--out", out, "--kind", "score")  # constant
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_score_has_the_landmarks_that_suit_its_columns(tmp_path):
    file, out = tmp_path / "table.npy", tmp_path / "m"
    np.save(file, np.random.default_rng(0).normal(size=(120, 80)))
    assert run(file, "--out", out, "--kind", "score").output == f"NystromKEF of 120 rows of 80 columns in {out}\n"
    assert load(out).centers_.shape == (18, 80)


def test_a_refusal_of_a_size_names_what_the_command_has(tmp_path):
    file, out = tmp_path / "table.npy", tmp_path / "m"
    np.save(file, np.random.default_rng(0).normal(size=(400, 20)) * ([1.0] * 19 + [100.0]))
    message = refused(file, "--out", out, "--kind", "score", "--size", 300)
    assert "use --size 218 or less, or fewer --columns." in message
    result = run(file, "--out", out, "--kind", "score", "--size", 10)
    assert result.exit_code == 0
    assert result.stderr == ""  # columns of unlike spread are put on one scale
    assert not any(word in message for word in ("memory_limit", "regularizer", "length_scale", "landmarks"))


def test_what_an_interrupted_run_has_left_is_not_written_over(tmp_path, file, monkeypatch):
    keep, calls = checkpoints.KeptPass.keep, []

    def stopped_later(*what, **more):
        keep(*what, **more)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    out = tmp_path / "m"
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints.KeptPass, "keep", stopped_later)
        result = run(file, "--out", out, "--size", 20)
    assert result.exit_code == 130
    assert result.stderr == f"isopleth: interrupted; what was done is in {out}.partial: continue with --resume.\n"
    assert "continue it with --resume" in refused(file, "--out", out, "--size", 20)
    assert "begun with another --size:" in refused(file, "--out", out, "--size", 30, "--resume")
    file.write_text(file.read_text() + "1,2,3\n")
    assert "begun with another FILE:" in refused(file, "--out", out, "--size", 20, "--resume")
    assert (tmp_path / "m.partial").is_file()


def test_what_is_done_stays_where_the_table_is_out_of_reach_for_a_while(tmp_path, file, monkeypatch):
    out, away, keep = tmp_path / "m", tmp_path / "away", checkpoints.KeptPass.keep
    sizes = []

    def gone(*what, **more):
        keep(*what, **more)
        sizes.append((tmp_path / "m.partial").stat().st_size)
        file.rename(away)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints.KeptPass, "keep", gone)
        assert "has gone while it was read" in refused(file, "--out", out, "--size", 20)
    away.rename(file)
    assert [(tmp_path / "m.partial").stat().st_size] == sizes
    assert run(file, "--out", out, "--size", 20, "--resume").exit_code == 0


def test_a_default_that_is_given_explicitly_continues_the_same_run(tmp_path, file, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("isopleth.cli.fit.save", stopped)
        result = run(file, "--out", tmp_path / "m", "--kind", "score", "--columns", "a")
    assert "continue with --resume" in result.stderr  # with the writing
    result = run(file, "--out", tmp_path / "m", "--kind", "score", "--columns", "a", "--size", 300, "--resume")
    assert result.output == f"NystromKEF of 600 rows of 1 column in {tmp_path / 'm'}\n"


def test_resume_without_anything_to_go_on_with_begins(tmp_path, file):
    assert run(file, "--out", tmp_path / "m", "--size", 20).exit_code == 0
    assert run(file, "--out", tmp_path / "n", "--size", 20, "--resume").exit_code == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()


def test_a_fit_that_is_killed_goes_on_and_gives_the_same_bytes(tmp_path, file):
    """The signal cannot be caught."""
    assert run(file, "--out", tmp_path / "whole", "--size", 20, "--chunk-rows", 100).exit_code == 0
    out, kept = tmp_path / "m", tmp_path / "m.partial"
    append, calls = journals.Journal.append, []

    def torn(self, key, arrays):
        append(self, key, arrays)
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    def before():
        journals.Journal.append = torn

    command = ["fit", str(file), "--size", "20", "--chunk-rows", "100", "--out", str(out)]
    assert forked.run(command, before).returncode == -signal.SIGKILL
    assert kept.is_file()
    assert not out.exists()
    assert run(*command[1:], "--resume").exit_code == 0
    assert out.read_bytes() == (tmp_path / "whole").read_bytes()
    assert not kept.exists()
