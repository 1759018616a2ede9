"""Columns of a file that the commands use, and their messages about them."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from click.testing import CliRunner

from isopleth.cli.program import program
from isopleth.io import load, source

X = np.random.default_rng(0).normal(size=(60, 2))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{1000 + 7 * i},{a!r},{b!r},{'xyz'[i % 3]}\n" for i, (a, b) in enumerate(X.tolist()))
    path.write_text("order_no,a,b,word\n" + rows)
    return path


def run(*arguments):
    return CliRunner().invoke(program, [str(argument) for argument in arguments], catch_exceptions=False)


def fine(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def test_identifiers_are_left_out_and_it_is_said(file, tmp_path):
    result = fine("anomalies", file, "--exclude", "word", "--save", tmp_path / "m.model")
    assert result.stderr == "isopleth: 60 rows: 2 numbers; left out: order_no (identifier)\n"
    assert load(tmp_path / "m.model").feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("overruled", [["--keep-id"], ["--numeric", "order_no"], ["--columns", "order_no,a,b"]])
def test_identifiers_are_kept_if_asked_for(file, tmp_path, overruled):
    fine("anomalies", file, "--exclude", "word", *overruled, "--save", tmp_path / "m.model")
    assert load(tmp_path / "m.model").feature_names_in_.tolist() == ["order_no", "a", "b"]


def test_columns_said_to_identify_rows_are_left_out(file, tmp_path):
    result = fine("anomalies", file, "--exclude", "word", "--id", "a", "--save", tmp_path / "m.model")
    assert "left out: order_no (identifier), a (identifier)" in result.stderr
    assert load(tmp_path / "m.model").feature_names_in_.tolist() == ["b"]


def test_words_are_refused_with_the_way_out(file):
    result = run("changes", file)
    assert result.exit_code == 2
    assert result.stderr.endswith("no numbers in column 'word'; leave it out with --exclude word.\n")


def test_numbers_said_to_be_categories_are_refused_too(file):
    result = run("changes", file, "--exclude", "word", "--categorical", "a")
    assert result.stderr.endswith("no numbers in column 'a'; leave it out with --exclude a.\n")


@pytest.mark.parametrize("option", ["--id", "--categorical", "--numeric", "--exclude"])
def test_unknown_columns(file, option):
    result = run("anomalies", file, option, "zzz")
    assert result.exit_code == 2
    assert "has no column 'zzz'" in result.stderr


@pytest.mark.parametrize("verb", ["changes", "fit", "compare", "monitor", "prior"])
def test_every_command_leaves_identifiers_out(file, tmp_path, verb):
    arguments = {
        "changes": [file],
        "fit": [file, "--out", tmp_path / "m.model", "--size", 10],
        "compare": [file, file],
        "monitor": ["--reference", file, "--run-length", 100],
        "prior": [file, tmp_path / "other.csv", "--target", "word"],
    }[verb]
    (tmp_path / "other.csv").write_text(file.read_text())
    leave = [] if verb == "prior" else ["--exclude", "word"]
    assert "left out: order_no (identifier)" in fine(verb, *arguments, *leave).stderr


def test_words_said_to_be_numbers_are_named_with_their_line(file):
    result = run("anomalies", file, "--numeric", "word")
    assert "t.csv: column 'word' holds 'x' at line 2; expected a number" in result.stderr


def test_an_identifier_alone_is_refused(file):
    result = run("anomalies", file, "--exclude", "a,b,word")
    assert result.exit_code == 2
    assert "no column is left to use: order_no (identifier)" in result.stderr


def test_missing_words_and_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n" + "".join(f"{a};{b}\n" for a, b in X.tolist()).replace(".", ","))
    result = fine("anomalies", path, "--out", tmp_path / "o.csv")
    assert "the comma is taken as the decimal sign" in result.stderr
    path.write_text(path.read_text() + "-99;1,5\n")
    result = run("changes", path, "--missing", "-99,NA")
    assert result.exit_code == 2
    assert "empty, NaN or infinite cells in 'a' (line 62)" in result.stderr
    assert "61 rows: 2 numbers; 1 missing cell of a" in fine("anomalies", path, "--missing", "-99,NA").stderr


def test_a_word_among_numbers_is_named_with_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in X.tolist()) + "1,oops\n")
    refused = run("anomalies", path).stderr
    assert "column 'b' holds 'oops' at line 62, and nearly all other cells are numbers" in refused
    assert "--missing oops" in refused


def test_compressed_files_and_standard_input_give_the_same(file, tmp_path, monkeypatch):
    expected = fine("anomalies", file, "--exclude", "word").stdout
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert fine("anomalies", tmp_path / "t.csv.gz", "--exclude", "word").stdout == expected
    monkeypatch.setattr(source, "_read", [])
    result = CliRunner().invoke(program, ["anomalies", "-", "--exclude", "word"], input=file.read_bytes())
    assert result.stdout == expected
    monkeypatch.setattr(source, "_read", [])
    fit = ["fit", "-", "--exclude", "word", "--size", "10", "--out"]
    result = CliRunner().invoke(program, [*fit, str(tmp_path / "one")], input=file.read_bytes(), catch_exceptions=False)
    assert result.exit_code == 0
    fine("fit", file, *fit[2:], tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_booleans_are_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b > 0}\n" for a, b in X.tolist()))
    assert fine("fit", path, "--out", tmp_path / "m.model").stderr == ""
