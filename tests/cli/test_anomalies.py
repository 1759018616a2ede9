"""``isopleth anomalies``: the table it prints, the files it writes, and one line for all that is wrong."""

from __future__ import annotations

import errno
import importlib
import os
import pickle
import shlex
import shutil
import signal
import subprocess
import sys
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import forked
from cli import shell
from cli.shell import refused, rows_of, run
from isopleth import SOSREP, AnomalyDetector
from isopleth.cli import anomalies as command
from isopleth.cli import program as messages
from isopleth.io import load, save
from isopleth.tasks import Anomalies

FULL = "isopleth: standard output cannot be written: No space left on device; send it elsewhere.\n"

found = partial(shell.found, "anomalies")

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(60, 3)), [[30.0, 0.0, -20.0]]])


def write_table(folder):
    path = folder / "table.csv"
    np.savetxt(path, X, delimiter=",", header="a,b,c", comments="")
    return path


@pytest.fixture
def file(tmp_path):
    """61 rows of which the last stands out, behind a header."""
    return write_table(tmp_path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model that the command has fitted and saved once for all tests."""
    folder = tmp_path_factory.mktemp("saved")
    assert run("anomalies", write_table(folder), "--save", folder / "model.isopleth").exit_code == 0
    return folder / "model.isopleth"


@pytest.fixture
def model(tmp_path, saved):
    return shutil.copy(saved, tmp_path / "model.isopleth")


SNAPSHOT = """\
4 of 61 rows are flagged: worth a look, as unlikely as the least likely thirtieth of ordinary rows; in a table without \
anomalies about 3 % of the rows are flagged, too.
A gap in the scores sets the least likely row apart from the others: its score is -576.1, those of all others at least -9.714.
1 row is an anomaly at a false discovery rate of 0.1, the share of ordinary rows expected among such rows, \
if scores of ordinary rows fall off beyond the others as they do among them.
The least likely one is line 62 (score -576.1, p <= 0.00164): a=30, c=-20, b=0.
In line 62 (a) a cell does not fit the others of its row; isopleth cells judges the cells of all rows.

rank  line   score    pvalue     flag  most extreme values
   1    62  -576.1  0.001639  certain  a=30  c=-20  b=0
   2    61  -9.714   0.02189  flagged  b=-1.93496  a=1.02885  c=-0.239937

score: higher is more normal.
pvalue: the share of ordinary rows that are at least as unlikely; small values are unusual. It is not smaller than 0.00164, \
which is what these rows can show.
flagged: worth a look, as unlikely as the least likely thirtieth of ordinary rows; in a table without anomalies \
about 3 % of the rows are flagged, too.
certain: selected so that about 0.1 of the selected rows are expected to be ordinary, if scores of \
ordinary rows fall off beyond the others as they do among them. \
Rows that are known to be ordinary, as a reference, replace this assumption.
"""


class TestReport:
    def test_what_is_printed(self, file):
        result = run("anomalies", file, "--top", 2)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout == SNAPSHOT

    def test_json_has_the_same_numbers(self, file):
        said = found(file)
        detector = AnomalyDetector(random_state=0).fit(X)
        flagged = detector.training_labels_ == -1
        assert (said["rows"], said["columns"], said["flagged"]) == (61, ["a", "b", "c"], flagged.sum())
        assert said["summary"] == SNAPSHOT.splitlines()[:5]
        assert said["pvalue_resolution"] == said["table"][0]["pvalue"] == 0.1 / 61
        assert [row["line"] for row in said["table"]] == (detector.training_scores_.argsort()[:10] + 2).tolist()

    def test_another_false_discovery_rate_changes_what_is_certain_only(self, file):
        once, again = (found(file, "--fdr", rate) for rate in (0.1, 0.9))
        certain = int(AnomalyDetector(random_state=0).fit(X).select(fdr=0.9).sum())
        assert (once["certain"], again["certain"], again["fdr"]) == (1, certain, 0.9)
        assert certain > 1
        assert [row["score"] for row in once["table"]] == [row["score"] for row in again["table"]]

    def test_contamination_flags_a_share_of_the_rows(self, file, tmp_path):
        said = found(file, "--contamination", "0.2", "--out", tmp_path / "out.csv")
        assert (said["flagged"], said["rule"]) == (12, "the least likely 0.2 of the fitted rows")
        labels = AnomalyDetector(contamination=0.2, random_state=0).fit(X).training_labels_
        assert [row["label"] for row in rows_of(tmp_path / "out.csv")] == [str(int(label < 0)) for label in labels]

    def test_no_row_need_be_flagged(self, tmp_path):
        np.save(tmp_path / "t.npy", np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (15, 1)))
        said = found(tmp_path / "t.npy")
        assert (said["flagged"], said["certain"]) == (0, 0)

    def test_row_numbers_stand_beside_the_lines_if_asked_for(self, file, tmp_path):
        out = tmp_path / "out.csv"
        first = found(file, "--row-numbers", "--out", out)["table"][0]
        assert (first["line"], first["row"]) == (62, 61)
        assert [(int(row["line"]), int(row["row"])) for row in rows_of(out)] == [(i + 1, i) for i in range(1, 62)]
        np.save(file.with_suffix(".npy"), X)
        first = found(file.with_suffix(".npy"))["table"][0]
        assert (first["row"], "line" in first) == (61, False)

    def test_a_table_of_equal_rows_is_not_called_x(self, tmp_path):
        (tmp_path / "t.csv").write_text("a,b\n" + "1,x\n" * 30)
        result = run("anomalies", tmp_path / "t.csv")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.splitlines()[-1].startswith(f"isopleth: {tmp_path / 't.csv'}: all rows of the table")

    def test_names_of_columns_cannot_break_the_table(self, tmp_path):
        (tmp_path / "t.csv").write_text('"a\nb","\x1b[31mred"\n' + "".join(f"{x},{y}\n" for x, y in X[:, :2].tolist()))
        result = run("anomalies", tmp_path / "t.csv")
        assert "a\\nb=30  \\x1b[31mred=0" in result.stdout
        assert "\x1b" not in result.stdout

    @pytest.mark.parametrize(("top", "shown"), [(0, 0), (3, 3), (1000, 61)])
    def test_top(self, file, top, shown):
        lines = run("anomalies", file, "--top", top).stdout.splitlines()
        assert sum(line.strip()[:1].isdigit() for line in lines[4:]) == shown

    def test_chosen_columns_stand_in_their_order(self, file):
        assert found(file, "--columns", "c, a")["columns"] == ["c", "a"]

    def test_the_list_of_commands_is_not_cut(self):
        assert "..." not in run("--help").stdout.partition("Commands:")[2]

    def test_version_and_help(self):
        assert run("--version").stdout.startswith("isopleth ")
        for arguments in ([], ["-h"], ["anomalies", "--help"]):
            result = run(*arguments)
            assert result.exit_code == 0
            assert "Usage: isopleth" in result.stdout


class TestFiles:
    def test_out_holds_every_row(self, file, tmp_path):
        assert run("anomalies", file, "--out", tmp_path / "out.csv").exit_code == 0
        rows = rows_of(tmp_path / "out.csv")
        assert list(rows[0]) == ["line", "score", "pvalue", "label", "certain"]
        detector = AnomalyDetector(random_state=0).fit(X)
        assert [int(row["line"]) for row in rows] == list(range(2, 63))
        np.testing.assert_array_equal([float(row["score"]) for row in rows], detector.training_scores_)
        shown = np.maximum(detector.p_values_, 0.1 / 61)
        np.testing.assert_array_equal([float(row["pvalue"]) for row in rows], shown)
        np.testing.assert_array_equal([int(row["label"]) for row in rows], detector.training_labels_ == -1)
        np.testing.assert_array_equal([int(row["certain"]) for row in rows], detector.select(fdr=0.1))

    def test_a_disk_that_fills_leaves_nothing(self, file, tmp_path, monkeypatch):
        def fail(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        assert "no space" in refused("anomalies", file, "--out", tmp_path / "out.csv")
        assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


class TestReference:
    @pytest.fixture
    def clean(self, tmp_path):
        path = tmp_path / "clean.csv"
        np.savetxt(path, X[:60, ::-1], delimiter=",", header="c,b,a", comments="")
        return path

    def test_rows_are_judged_by_the_reference_and_its_model_as_the_library_judges_them(self, file, clean, tmp_path):
        model, again = tmp_path / "model", tmp_path / "again.csv"
        result = run("anomalies", file, "--reference", clean, "--out", tmp_path / "out.csv", "--save", model)
        assert (result.exit_code, result.stderr) == (0, "")
        assert load(model).novelty
        assert run("anomalies", file, "--model", model, "--out", again).exit_code == 0
        assert again.read_text() == (tmp_path / "out.csv").read_text()
        detector = AnomalyDetector(novelty=True, random_state=0).fit(X[:60, ::-1])
        rows, judged = rows_of(tmp_path / "out.csv"), X[:, ::-1]
        np.testing.assert_array_equal([float(row["score"]) for row in rows], detector.score_samples(judged))
        np.testing.assert_array_equal([float(row["pvalue"]) for row in rows], detector.p_values(judged))
        np.testing.assert_array_equal([int(row["label"]) for row in rows], detector.predict(judged) == -1)
        np.testing.assert_array_equal([int(row["certain"]) for row in rows], detector.select(judged, fdr=0.1))
        assert rows[-1]["label"] == "1"

    def test_contamination_is_a_share_of_the_reference(self, file, clean, tmp_path):
        found(file, "--reference", clean, "--contamination", "0.3", "--out", tmp_path / "out.csv")
        detector = AnomalyDetector(contamination=0.3, novelty=True, random_state=0).fit(X[:60, ::-1])
        labels = [int(row["label"]) for row in rows_of(tmp_path / "out.csv")]
        np.testing.assert_array_equal(labels, detector.predict(X[:, ::-1]) == -1)

    def test_what_cannot_be_a_reference(self, file, clean, tmp_path):
        (tmp_path / "other.csv").write_text("a,b,z\n1,2,3\n4,5,7\n2,2,2\n")
        assert "lacks 'z'" in refused("anomalies", file, "--reference", tmp_path / "other.csv")
        assert "none.csv does not exist" in refused("anomalies", file, "--reference", tmp_path / "none.csv")
        assert "same file as --reference" in refused("anomalies", file, "--reference", clean, "--out", clean)


class TestModel:
    def test_new_rows_are_judged_as_the_library_judges_them(self, model, tmp_path):
        new = RNG.normal(size=(5, 3))
        np.savetxt(tmp_path / "new.csv", new, delimiter=",", header="a,b,c", comments="")
        result = run("anomalies", tmp_path / "new.csv", "--model", model, "--out", tmp_path / "out.csv")
        assert (result.exit_code, result.stderr) == (0, "")
        detector = AnomalyDetector(random_state=0).fit(X)
        rows = rows_of(tmp_path / "out.csv")
        np.testing.assert_array_equal([float(row["score"]) for row in rows], detector.score_samples(new))
        np.testing.assert_array_equal([float(row["pvalue"]) for row in rows], detector.p_values(new))
        np.testing.assert_array_equal([int(row["label"]) for row in rows], detector.predict(new) == -1)

    def test_columns_are_matched_by_name_whatever_their_order(self, model, tmp_path):
        (tmp_path / "straight.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
        (tmp_path / "turned.csv").write_text("c,name,a,b\n3,x,1,2\n6,y,4,5\n")
        tables = [run("anomalies", tmp_path / name, "--model", model) for name in ("straight.csv", "turned.csv")]
        assert tables[0].exit_code == 0
        assert tables[0].stdout == tables[1].stdout

    def test_a_single_row_is_enough(self, model, tmp_path):
        (tmp_path / "new.csv").write_text("a,b,c\n30,0,-20\n")
        said = found(tmp_path / "new.csv", "--model", model, "--plot", tmp_path / "picture.png")
        assert (said["rows"], said["flagged"]) == (1, 1)

    def test_a_picture_that_fails_leaves_no_files(self, model, tmp_path, monkeypatch):
        monkeypatch.setattr(Anomalies, "_charts", lambda _: [])
        np.savetxt(tmp_path / "new.csv", X[-1:], delimiter=",", header="a,b,c", comments="")
        out, picture = tmp_path / "out.csv", tmp_path / "picture.png"
        words = refused("anomalies", tmp_path / "new.csv", "--model", model, "--plot", picture, "--out", out)
        assert "there is nothing to draw" in words
        assert not out.exists()
        assert not picture.exists()

    def test_without_names_they_are_matched_by_position_and_it_is_said(self, model, tmp_path):
        np.save(tmp_path / "new.npy", X[:4])
        result = run("anomalies", tmp_path / "new.npy", "--model", model)
        assert result.exit_code == 0
        assert result.stderr.startswith("isopleth: warning: ")
        assert "'a', 'b', 'c'" in result.stderr
        assert result.stderr.count("\n") == 1

    @pytest.mark.parametrize(
        ("header", "arguments", "words"),
        [
            ("a,b,z", [], ["lacks 'c'", "has 'z'"]),
            ("a,b,c", ["--columns", "a,b"], ["--columns", "lacks 'c'"]),
            ("a,b,c,d", ["--columns", "a,b,c,d"], ["'d'", "was not fitted on"]),
        ],
    )
    def test_other_columns(self, model, tmp_path, header, arguments, words):
        (tmp_path / "new.csv").write_text(f"{header}\n" + "1,2,3,4\n"[: 2 * len(header.split(",")) - 1] + "\n")
        message = refused("anomalies", tmp_path / "new.csv", "--model", model, *arguments)
        assert all(word in message for word in words)

    @pytest.mark.parametrize("first", ["_", "n_features_in_"])
    def test_a_model_of_another_version(self, file, tmp_path, first):
        detector = AnomalyDetector(random_state=0).fit(X)
        for name in [name for name in vars(detector) if name.startswith(first)]:
            delattr(detector, name)
        save(detector, tmp_path / "older")
        message = refused("anomalies", file, "--model", tmp_path / "older")
        assert message.endswith("older does not fit this version of isopleth: fit and save it again.\n")

    @pytest.mark.parametrize("error", [AttributeError, KeyError, TypeError, IndexError])
    def test_a_defect_is_not_said_to_be_the_fault_of_the_model(self, file, model, monkeypatch, error):
        def fail(*_):
            raise error("x")

        monkeypatch.setattr("isopleth.cli.anomalies.judged", fail)
        with pytest.raises(error):
            run("anomalies", file, "--model", model)

    def test_other_models_are_refused(self, file, tmp_path):
        save(SOSREP(frame="scale").fit(X), tmp_path / "density")
        save(AnomalyDetector(), tmp_path / "unfitted")
        (tmp_path / "pickle").write_bytes(pickle.dumps(1))
        (tmp_path / "cut").write_bytes((tmp_path / "density").read_bytes()[:500])
        for name, words in [
            ("density", "holds a SOSREP"),
            ("unfitted", "not fitted"),
            ("pickle", "could run code"),
            ("cut", "damaged"),
            ("none", "does not exist"),
        ]:
            assert words in refused("anomalies", file, "--model", tmp_path / name)


class TestRefused:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("a,b\n1,2\n", ["only one row"]),
            ("a,b\n1,1\n1,1\n1,1\n", ["rows"]),
        ],
    )
    def test_tables(self, tmp_path, content, words):
        (tmp_path / "table.csv").write_text(content)
        message = refused("anomalies", tmp_path / "table.csv")
        assert all(word in message for word in words)

    def test_columns(self, file):
        assert "'z'" in refused("anomalies", file, "--columns", "a,z")
        assert "at least one" in refused("anomalies", file, "--columns", "")
        assert "more than once" in refused("anomalies", file, "--columns", "a,a")
        assert "quote a name that holds a line break" in refused("anomalies", file, "--columns", "a\nb")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["anomalies"], ["FILE", "--help"]),
            (["anomalies", "t.csv", "--top", "-1"], ["--top", "'-1' is not a whole number of at least 0"]),
            (["anomalies", "t.csv", "--top", "x"], ["--top", "'x' is not a whole number of at least 0"]),
            (["anomalies", "t.csv", "--fdr", "x"], ["--fdr", "'x' is not a number above 0 and below 1"]),
            (["anomalies", "t.csv", "--fdr", "1"], ["--fdr"]),
            (["anomalies", "t.csv", "--contamination", "0"], ["--contamination"]),
            (["anomalies", "t.csv", "--contamination", "0.6"], ["'0.6' is not a number above 0 and at most 0.5"]),
            (["cells", "t.csv", "--threshold", "-1"], ["'-1' is not a number of at least 0"]),
            (["anomalies", "t.csv", "--nonsense"], ["--nonsense"]),
            (["nonsense"], ["nonsense"]),
        ],
    )
    def test_usage(self, arguments, words):
        message = refused(*arguments)
        assert all(word in message for word in words)

    def test_a_model_for_later_rows_leaves_out_times_that_rise(self, tmp_path):
        table, new = tmp_path / "day.csv", tmp_path / "next.csv"
        when = pd.date_range("2025-01-01", periods=90, freq="h")
        rows = pd.DataFrame(np.random.default_rng(1).normal(size=(90, 2)), columns=["a", "b"]).assign(time=when)
        rows[:60].to_csv(table, index=False)
        rows[60:].to_csv(new, index=False)
        saved = run("anomalies", table, "--save", tmp_path / "m")
        assert "columns left out of the model: 'time' (its times rise from row to row" in saved.stderr
        found = run("anomalies", new, "--model", tmp_path / "m")
        assert "later than those of the fit" not in found.stderr
        assert "table differs from the reference as a whole" not in found.stdout
        kept = run("anomalies", table, "--save", tmp_path / "m", "--time-columns", "time")
        assert "left out" not in kept.stderr

    @pytest.mark.parametrize("option", ["--out", "--save", "--plot"])
    def test_targets_are_looked_at_before_the_fit(self, file, tmp_path, monkeypatch, option):
        suffix = {"--out": ".csv", "--save": "", "--plot": ".png"}[option]
        monkeypatch.setattr(command, "fit", lambda *_, **__: pytest.fail("fitted first"))
        assert "does not exist" in refused("anomalies", file, option, tmp_path / "none" / f"x{suffix}")
        (tmp_path / f"folder{suffix}").mkdir()
        assert "is a folder" in refused("anomalies", file, option, tmp_path / f"folder{suffix}")
        monkeypatch.setattr(os, "access", lambda _, mode: mode == os.R_OK)
        assert "read-only" in refused("anomalies", file, option, tmp_path / f"x{suffix}")

    def test_suffixes_of_targets(self, file, tmp_path):
        assert ".csv, .parquet" in refused("anomalies", file, "--out", tmp_path / "out.txt")
        assert ".png, .svg, .pdf" in refused("anomalies", file, "--plot", tmp_path / "p.jpg")

    def test_no_file_is_written_over_another_of_the_run(self, file, tmp_path):
        link = tmp_path / "link.csv"
        link.symlink_to(file)
        for target in (file, link, tmp_path / "." / "table.csv"):
            assert "same file as FILE" in refused("anomalies", file, "--out", target)
        assert "same file as --out" in refused(
            "anomalies", file, "--out", tmp_path / "o.csv", "--save", tmp_path / "o.csv"
        )

    @pytest.mark.parametrize("option", ["--save", "--contamination", "--reference"])
    def test_options_that_exclude_a_model(self, file, model, tmp_path, option):
        value = {"--save": tmp_path / "a", "--contamination": 0.1, "--reference": file}[option]
        assert f"{option} and --model exclude each other" in refused("anomalies", file, option, value, "--model", model)

    @pytest.mark.parametrize(
        ("option", "value"), [("--contamination", "0.6"), ("--contamination", "0"), ("--fdr", "1")]
    )
    def test_shares_out_of_range(self, file, option, value):
        assert option in refused("anomalies", file, option, value)

    def test_missing_packages(self, file, tmp_path, monkeypatch):
        real = importlib.import_module

        def missing(module, *rest):
            if module.startswith("matplotlib"):
                raise ImportError(module)
            return real(module, *rest)

        monkeypatch.setattr(importlib, "import_module", missing)
        assert "pip install matplotlib (extra 'plot')" in refused("anomalies", file, "--plot", tmp_path / "p.png")


class TestFailures:
    @pytest.mark.parametrize(
        ("error", "code", "words"),
        [
            (MemoryError(), 2, "out of memory"),
            (PermissionError(errno.EACCES, "Permission denied", "t.csv"), 2, "t.csv: Permission denied"),
            (ValueError("two\nlines"), 2, "two lines"),
            (KeyboardInterrupt(), 130, "interrupted"),
        ],
    )
    def test_one_line(self, file, monkeypatch, error, code, words):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr(command, "fit", fail)
        result = run("anomalies", file)
        assert result.exit_code == code
        assert words in result.stderr
        assert result.stderr.count("\n") == 1

    def test_warnings_are_single_lines(self, file, monkeypatch):
        def warn(table, *_, **__):
            warnings.warn("first\n  second", UserWarning, stacklevel=1)
            return AnomalyDetector(random_state=0).fit(table.frame)

        monkeypatch.setattr(command, "fit", warn)
        assert run("anomalies", file).stderr == "isopleth: warning: first second\n"

    def test_columns_that_are_left_out_are_named(self, tmp_path):
        (tmp_path / "t.csv").write_text("a,empty,b\n" + "".join(f"{x},,{y}\n" for x, y in X[:, :2].tolist()))
        result = run("anomalies", tmp_path / "t.csv")
        assert result.exit_code == 0
        assert result.stderr.endswith("61 rows: 2 numbers; left out: empty (no value)\n")

    @pytest.mark.parametrize(("usual", "other"), [("7", "8"), ("calm", "rough"), ("2024-01-01", "2024-01-02")])
    @pytest.mark.parametrize("gap", [False, True])
    def test_a_cell_where_the_reference_has_one_value_only_is_the_reason(self, tmp_path, usual, other, gap):
        lines = [f"{x},{usual},{y}\n" for x, y in X[:, :2].tolist()]
        (tmp_path / "usual.csv").write_text("a,still,b\n" + "".join(lines))
        (tmp_path / "new.csv").write_text("a,still,b\n" + "".join(lines[:3]) + f"0,{'' if gap else other},0\n")
        given = ["--reference", tmp_path / "usual.csv", "--explain", "--top", "1"]
        result = run("anomalies", tmp_path / "new.csv", *given)
        assert result.exit_code == 0
        shown = "missing" if gap else "a new word" if other == "rough" else other
        assert f"still {shown} ({usual} is usual" in result.stdout

    def test_a_terminal_gets_a_bar_that_goes_away(self, file, monkeypatch, capfd):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        stage = messages.Stages(["reading", "fitting"])
        stage("reading")
        stage("fitting")
        stage.end()
        shown = capfd.readouterr().err
        assert "[--] reading" in shown
        assert "[#-] fitting" in shown
        assert shown.endswith("\r\x1b[K")

    def test_a_log_gets_a_line_now_and_then(self, monkeypatch, capfd):
        clock = iter([0.0, 1.0, 12.0, 13.0, 23.0, 40.0])  # made, a stage, a computation four times
        monkeypatch.setattr(messages, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        stage = messages.Stages(["reading", "fitting"])
        stage("fitting")
        for share in (0.2, 0.3, 0.4, 0.5):
            stage.heard("pass over the rows", share, 10.0)
        stage.end()
        assert capfd.readouterr().err.splitlines() == [
            "[#-] fitting: pass over the rows 20%, 40 s left",
            "[#-] fitting: pass over the rows 40%, 15 s left",
            "[#-] fitting: pass over the rows 50%, 10 s left",
        ]


def in_shell(arguments):
    """Run the command line with streams that a shell has closed or led elsewhere, buffered as for most people."""
    return subprocess.run(
        f"{shlex.quote(sys.executable)} -m isopleth_command {arguments}",
        shell=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        capture_output=True,
        text=True,
        timeout=60,
    )


class TestProcess:
    """Tests that need a real process."""

    def start(self, *arguments, code="from isopleth.cli import main; main()"):
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_a_table_to_standard_output_and_nothing_else(self, file):
        process = self.start("anomalies", file)
        out, err = process.communicate(timeout=60)
        # On a busy machine the run takes long enough to show its progress, in lines that begin with a bar.
        assert (process.returncode, [line for line in err.splitlines() if not line.startswith("[")]) == (0, [])
        assert out == run("anomalies", file).stdout

    def test_a_reader_that_leaves_early_is_no_failure_to_speak_of(self, file, tmp_path):
        reader, writer = os.pipe()
        os.close(reader)
        with open(tmp_path / "err", "w") as err, open(os.devnull) as empty:
            assert forked.Forked(["anomalies", file, "--top", "61"], empty, writer, err).wait() == 1
        os.close(writer)
        assert (tmp_path / "err").read_text() == ""

    @pytest.mark.parametrize(
        ("number", "code", "message"),
        [
            (signal.SIGINT, 130, "isopleth: interrupted; nothing is left half written.\n"),
            (signal.SIGTERM, 143, "isopleth: terminated; nothing is left half written.\n"),
        ],
    )
    @pytest.mark.parametrize("existing", [True, False])
    def test_a_signal_while_writing_leaves_the_old_file_or_none(self, file, tmp_path, number, code, message, existing):
        out = tmp_path / "out.csv"
        if existing:
            out.write_text("before")

        def signalling():
            os.fsync = lambda file: signal.raise_signal(number)

        process = forked.run(["anomalies", file, "--out", out], signalling)
        assert (process.returncode, process.stdout, process.stderr) == (code, "", message)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv"] * existing + ["table.csv"]
        assert not existing or out.read_text() == "before"

    def test_an_interrupt_while_importing(self):
        interrupting = """
import signal, sys
from isopleth.cli import main
class Interrupt:
    def find_spec(self, name, *_):
        if name == "isopleth.cli.commands":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
main()
"""
        process = self.start(code=interrupting)
        assert process.communicate(timeout=60) == ("", "isopleth: interrupted; nothing is left half written.\n")
        assert process.returncode == 130

    @pytest.mark.parametrize("arguments", ["--help", pytest.param("--version", marks=pytest.mark.slow)])
    def test_output_that_cannot_be_written(self, arguments):
        process = in_shell(f"{arguments} >/dev/full")
        assert process.returncode == 2
        assert process.stderr == FULL

    def test_results_that_cannot_be_written(self, file, tmp_path):
        with open("/dev/full", "w") as full, open(tmp_path / "err", "w") as err, open(os.devnull) as empty:
            assert forked.Forked(["anomalies", file], empty, full, err).wait() == 2
        assert (tmp_path / "err").read_text() == FULL

    @pytest.mark.parametrize("place", ["&-", "/dev/full"])
    def test_messages_that_cannot_be_written(self, place):
        assert in_shell(f"anomalies none.csv 2>{place}").returncode == 2

    def test_the_module_runs_too(self):
        process = subprocess.run(
            [sys.executable, "-m", "isopleth", "--version"], capture_output=True, text=True, timeout=60
        )
        assert process.stdout.startswith("isopleth ")


def test_a_column_of_one_word_is_no_extreme_value(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,w\n" + "".join(f"{i % 13}.5,same\n" for i in range(60)) + "90,same\n")
    assert ": x=90.\n" in run("anomalies", path).stdout
