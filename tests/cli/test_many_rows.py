"""``isopleth anomalies`` of large files and of many: what is read in parts answers as what is read at once."""

from __future__ import annotations

import os
import signal
from functools import partial

import numpy as np
import pandas as pd
import pytest

import forked
from cli import shell
from cli.shell import fine, refused
from cli.test_terminal import run_in_terminal
from isopleth.cli import many_rows

found = partial(shell.found, "anomalies")
N = 400


def table(n=N):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.exponential(size=n).round(2), "town": rng.choice(["x", "y", "z"], n)}
    )
    frame.loc[7, "b"] = np.nan
    frame.loc[n // 2, ["a", "b"]] = [9.0, 80.0]
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("many")
    frame = table()
    frame.to_parquet(path / "all.parquet")
    frame.to_csv(path / "all.csv", index=False)
    for k, rows in enumerate(np.array_split(np.arange(N), 3)):
        frame.iloc[rows].to_parquet(path / f"part{k}.parquet")
    return path


@pytest.fixture
def in_parts(monkeypatch):
    monkeypatch.setattr(many_rows, "_CELLS", 0)
    monkeypatch.setattr(many_rows, "_BYTES", 0)


@pytest.mark.parametrize("name", ["all.parquet", "all.csv"])
def test_a_file_that_is_read_in_parts_answers_as_one_that_is_read_at_once(name, folder, tmp_path, monkeypatch):
    at_once, out = found(folder / name, "--explain", "--out", tmp_path / "one.csv"), tmp_path / "two.csv"
    monkeypatch.setattr(many_rows, "_CELLS", 0)
    monkeypatch.setattr(many_rows, "_BYTES", 0)
    other = found(folder / name, "--explain", "--out", out)
    assert other["table"][0]["score"] == pytest.approx(at_once["table"][0]["score"], rel=1e-9)
    for key in ("rows", "flagged", "certain", "fdr", "columns"):
        assert other[key] == at_once[key]
    assert [row["explained_by"] for row in other["table"]] == [row["explained_by"] for row in at_once["table"]]
    one, two = pd.read_csv(tmp_path / "one.csv"), pd.read_csv(out)
    assert list(one.columns) == list(two.columns)
    np.testing.assert_allclose(two["score"], one["score"], rtol=1e-9)
    assert (two["explained_by"].fillna("") == one["explained_by"].fillna("")).all()


def test_a_pattern_stands_for_many_files(folder, tmp_path):
    one = found(folder / "all.parquet")
    many = found(folder / "part*.parquet", "--out", tmp_path / "out.parquet")
    assert many["flagged"] == one["flagged"]
    first = many["table"][0]
    assert (first["file"], first["row"]) == ("part1.parquet", N // 2 - 134 + 1)
    written = pd.read_parquet(tmp_path / "out.parquet")
    assert written["file"].tolist() == ["part0.parquet"] * 134 + ["part1.parquet"] * 133 + ["part2.parquet"] * 133
    assert written["score"].idxmin() == N // 2


def test_patterns_are_refused_in_a_sentence_where_one_file_is_needed(folder):
    assert "no file matches" in refused("anomalies", folder / "none*.parquet")
    assert "--plot takes one file" in refused("anomalies", folder / "part*.parquet", "--plot", folder / "p.png")


def test_a_model_judges_the_files_of_a_pattern_as_one_file(folder, tmp_path):
    shell.run("anomalies", folder / "all.parquet", "--save", model := tmp_path / "m.isopleth")
    one = found(folder / "all.parquet", "--model", model, "--out", tmp_path / "one.csv")
    many = found(folder / "part*.parquet", "--model", model, "--out", tmp_path / "many.csv")
    assert many["flagged"] == one["flagged"]
    assert (many["table"][0]["file"], many["table"][0]["row"]) == ("part1.parquet", N // 2 - 134 + 1)
    one, many = pd.read_csv(tmp_path / "one.csv"), pd.read_csv(tmp_path / "many.csv")
    np.testing.assert_array_equal(many["score"], one["score"])
    assert many["file"].nunique() == 3


def test_tables_of_one_name_are_told_apart_by_their_folders(folder, tmp_path):
    """Both were called part*.parquet, and all.csv."""
    (tmp_path / "later").mkdir()
    table().to_csv(tmp_path / "later" / "all.csv", index=False)
    table().to_parquet(tmp_path / "later" / "part0.parquet")
    for name in ("all.csv", "part*.parquet"):
        said = shell.run("compare", folder / name, tmp_path / "later" / name, "--resamples", 19).stdout
        assert f"{folder.name}/{name}, after is" in " ".join(said.split())
        assert f"later/{name}. spread" in " ".join(said.split())


@pytest.mark.parametrize(
    ("command", "more"),
    [("describe", []), ("expect", ["--given", "town=x"]), ("cells", ["--top", "3"])],
)
def test_files_of_a_pattern_are_one_table(command, more, folder):
    one, many = (shell.found(command, folder / name, *more) for name in ("all.parquet", "part*.parquet"))
    for found in (one, many):
        found.pop("summary")
        for row in found.get("table", []):
            if isinstance(row, dict):
                row.pop("row", None)
                row.pop("file", None)
    assert many == one


@pytest.mark.parametrize("command", ["describe", "anomalies"])
def test_columns_that_folders_say_by_their_names_are_said_not_to_be_read(command, folder, tmp_path):
    """Such a column was dropped in silence."""
    for k in range(3):
        (tmp_path / f"k={k}").mkdir()
        (tmp_path / f"k={k}" / "part.parquet").write_bytes((folder / f"part{k}.parquet").read_bytes())
    said = " ".join(shell.run(command, tmp_path / "k=*" / "*.parquet").stderr.split())
    assert said.count("the names of the folders say k, which is not read as a column") == 1
    assert "folders" not in shell.run(command, folder / "part*.parquet").stderr


def test_files_of_one_name_are_told_apart_by_their_folders(folder, tmp_path):
    for k in range(3):
        (tmp_path / f"k={k}").mkdir()
        (tmp_path / f"k={k}" / "part.parquet").write_bytes((folder / f"part{k}.parquet").read_bytes())
    for command in ("anomalies", "cells"):
        first = shell.found(command, tmp_path / "k=*" / "*.parquet", "--top", "400")["table"]
        assert {row["file"] for row in first} == {f"k={k}/part.parquet" for k in range(3)}


def test_filled_rows_of_many_files_are_one_file(folder, tmp_path):
    for name in ("all", "part*"):
        fine("fill", folder / f"{name}.parquet", "--out", tmp_path / f"{name.strip('*')}.csv")
    assert (tmp_path / "part.csv").read_text() == (tmp_path / "all.csv").read_text()


def test_samples_of_many_files_are_compared(folder, tmp_path):
    how = ["--resamples", "99", "--out", tmp_path / "out.csv"]
    assert 0.0 < shell.found("compare", folder / "part[01].parquet", folder / "part2.parquet", *how)["pvalue"] <= 1.0
    written = pd.read_csv(tmp_path / "out.csv")
    assert written["file"].map(os.path.basename).value_counts().to_dict() == {
        "part0.parquet": 134,
        "part1.parquet": 133,
        "part2.parquet": 133,
    }
    assert written["row"].tolist() == [*range(1, 135), *range(1, 134), *range(1, 134)]


def test_files_that_are_no_table_together_are_refused(folder, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    for name, text, said in (
        ("b", "x,z\n1,2\n", "b.csv lacks 'y' and also has 'z', unlike"),
        ("c", "x;y\n1,5;2,5\n2,5;1,5\n", "another decimal sign"),
        ("d", "1,2\n3,4\n", "no names of columns"),
    ):
        (tmp_path / f"{name}.csv").write_text(text)
        assert said in refused("describe", tmp_path / f"[a{name}].csv")
    (tmp_path / "e.csv").write_text("x,y\n1,2\n3,oops\n")
    assert "line 3 of e.csv" in refused("describe", tmp_path / "[ae].csv", "--numeric", "y", "--bad-cells", "refuse")
    for name, kind in (("f", float), ("g", str)):
        pd.DataFrame({"x": [1, 2]}).astype(kind).to_parquet(tmp_path / f"{name}.parquet")
    assert "columns of other types" in refused("describe", tmp_path / "[fg].parquet")
    assert "name one file" in refused("changes", folder / "part*.parquet")


def test_rows_in_parts_say_what_they_were_taken_as(folder, in_parts):
    said = fine("anomalies", folder / "all.parquet").stderr
    assert "400 rows: 2 numbers, 1 category" in said
    assert "read in parts" in said


def test_an_interrupt_leaves_no_file_and_says_a_sentence(folder, tmp_path, monkeypatch):
    def killed(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()

    monkeypatch.setattr("isopleth.cli.anomalies.explained", killed)
    ended = forked.run(["anomalies", str(folder / "part*.parquet"), "--explain", "--out", str(tmp_path / "o.csv")])
    assert ended.returncode == 130
    assert ended.stderr.splitlines()[-1].startswith("isopleth: interrupted")
    assert not list(tmp_path.iterdir())


def test_the_bar_has_the_stage_the_share_and_what_is_left(folder, monkeypatch):
    monkeypatch.setattr("isopleth.cli.program.seconds_left", lambda share, spent: 7.0)
    monkeypatch.setattr("isopleth.core.progress.PATIENCE", -1.0)
    monkeypatch.setattr("isopleth.core.progress.ON_TERMINAL", 0.0)
    code, received = run_in_terminal(["anomalies", str(folder / "part*.parquet"), "--explain"], 120, None)
    assert code == 0, received
    for stage in ("reading", "fitting", "scoring"):
        assert f"] {stage} 100%, 7 s left" in received
    assert "] explaining: laws of columns" in received
