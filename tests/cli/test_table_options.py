"""Columns of a file that the commands use, and their messages about them."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from cli.shell import fine, refused, run
from isopleth.files import source
from isopleth.io import load

X = np.random.default_rng(0).normal(size=(60, 2))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{1000 + 7 * i},{a!r},{b!r},{'xyz'[i % 3]}\n" for i, (a, b) in enumerate(X.tolist()))
    path.write_text("order_no,a,b,word\n" + rows)
    return path


def test_identifiers_are_left_out_and_it_is_said(file, tmp_path):
    result = fine("anomalies", file, "--exclude", "word", "--save", tmp_path / "m.model")
    assert result.stderr == f"isopleth: {file}: 60 rows: 2 numbers; left out: order_no (identifier)\n"
    assert load(tmp_path / "m.model").feature_names_in_.tolist() == ["a", "b"]


def test_columns_said_to_identify_rows_are_left_out(file, tmp_path):
    result = fine("anomalies", file, "--exclude", "word", "--id", "a", "--save", tmp_path / "m.model")
    assert "left out: order_no (identifier), a (identifier)" in result.stderr
    assert load(tmp_path / "m.model").feature_names_in_.tolist() == ["b"]


def test_words_are_refused_with_the_way_out(file):
    result = run("changes", file)
    assert result.exit_code == 2
    assert result.stderr.endswith("no numbers in column 'word'; leave it out with --exclude word.\n")


@pytest.mark.parametrize("option", ["--id", "--categorical", "--numeric", "--exclude"])
def test_unknown_columns(file, option):
    result = run("anomalies", file, option, "zzz")
    assert result.exit_code == 2
    assert "no column 'zzz'" in result.stderr


@pytest.mark.parametrize("verb", ["changes", "fit", "compare", "monitor", "prior"])
def test_every_command_leaves_identifiers_out(file, tmp_path, verb):
    arguments = {
        "changes": [file],
        "fit": [file, "--out", tmp_path / "m.model", "--size", 10],
        "compare": [file, file],
        "monitor": ["--reference", file, "--run-length", 100, "--state", tmp_path / "state"],
        "prior": [file, tmp_path / "other.csv", "--target", "word"],
    }[verb]
    (tmp_path / "other.csv").write_text(file.read_text())
    leave = [] if verb == "prior" else ["--exclude", "word"]
    assert "left out: order_no (identifier)" in fine(verb, *arguments, *leave).stderr


def test_words_said_to_be_numbers_are_named_with_their_line(file):
    result = run("anomalies", file, "--numeric", "word")
    assert (
        "t.csv: column 'word' holds 'x' in line 2, 'y' in line 3, 'z' in line 4 and 57 more such cells" in result.stderr
    )
    assert "; expected a number or an empty cell" in result.stderr


def test_missing_words_and_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n" + "".join(f"{a};{b}\n" for a, b in X.tolist()).replace(".", ","))
    result = fine("anomalies", path, "--out", tmp_path / "o.csv")
    assert "the comma is taken as the decimal sign" in result.stderr
    path.write_text(path.read_text() + "-99;1,5\n")
    assert "61 rows: 2 numbers; 1 missing cell of a" in fine("changes", path, "--missing", "-99,NA").stderr
    assert "61 rows: 2 numbers; 1 missing cell of a" in fine("anomalies", path, "--missing", "-99,NA").stderr


def test_compressed_files_and_standard_input_give_the_same(file, tmp_path, monkeypatch):
    expected = fine("anomalies", file, "--exclude", "word").stdout
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert fine("anomalies", tmp_path / "t.csv.gz", "--exclude", "word").stdout == expected
    monkeypatch.setattr(source, "_read", [])
    result = run("anomalies", "-", "--exclude", "word", rows=file.read_bytes())
    assert result.stdout == expected
    monkeypatch.setattr(source, "_read", [])
    fit = ["fit", "-", "--exclude", "word", "--size", "10", "--out"]
    result = run(*fit, tmp_path / "one", rows=file.read_bytes())
    assert result.exit_code == 0
    fine("fit", file, *fit[2:], tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_booleans_are_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b > 0}\n" for a, b in X.tolist()))
    assert fine("fit", path, "--out", tmp_path / "m.model").stderr == ""


def table_of(tmp_path, words, numbers):
    rng = np.random.default_rng(0)
    columns = {f"w{j}": rng.choice(["red", "blue"], 40) for j in range(words)}
    columns |= {f"x{j}": rng.normal(size=40) for j in range(numbers)}
    path = tmp_path / "t.csv"
    path.write_text(
        "\n".join([",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))])
    )
    return path


@pytest.mark.parametrize(
    ("words", "numbers", "said"),
    [
        (13, 0, "all 13 columns hold words or times; a table of numbers is needed."),
        (1, 0, "the only column, 'w0', holds words or times; a table of numbers is needed."),
        (13, 2, "no numbers in columns 'w0', 'w1', 'w2', 'w3' and 9 more; choose the numbers with --column x0,x1."),
        (2, 9, "no numbers in columns 'w0', 'w1'; leave them out with --exclude w0,w1."),
        (
            9,
            9,
            "no numbers in columns 'w0', 'w1', 'w2', 'w3' and 5 more; choose columns of numbers, such as --column x0,x1.",
        ),
    ],
)
def test_the_shorter_way_to_numbers_is_said(words, numbers, said, tmp_path):
    path = table_of(tmp_path, words, numbers)
    assert run("changes", path).stderr == f"isopleth: {path}: {said}\n"


def test_columns_that_a_model_lacks_are_said_with_what_to_do(tmp_path):
    path, model = table_of(tmp_path, 0, 3), tmp_path / "m.model"
    fine("fit", path, "--out", model)
    np.save(tmp_path / "two.npy", np.zeros((5, 2)))
    for lines, said in (
        (
            "a,b\n1,2\n",
            "has none of the columns that the model was fitted on, 'x0', 'x1', 'x2'; give a table with these columns.",
        ),
        (
            "x0,x1,x4\n1,2,3\n",
            "lacks 'x2' of the columns that the model was fitted on, and has 'x4', which the model does not know; "
            "add or rename columns.",
        ),
    ):
        other = tmp_path / "other.csv"
        other.write_text(lines)
        assert run("score", model, other, "--out", tmp_path / "o.csv").stderr == f"isopleth: {other} {said}\n"
    refused = run("score", model, tmp_path / "two.npy", "--out", tmp_path / "o.csv").stderr
    assert refused.endswith("2 columns where the model was fitted on 3; give a table with the 3 columns.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["describe", "--exclude", "order_no,a,b,word"], "no column of {file} is left to use; keep at least one"),
        (["describe", "--categorical", "a", "--numeric", "a"], "'a' is named as more than one of categories, numbers"),
        (["describe", "--numeric", "word"], "and 57 more such cells; expected a number or an empty cell;"),
        (["changes", "--column", "a,b", "--exclude", "b"], "--column and --exclude both name 'b'."),
    ],
)
def test_choices_that_contradict_each_other_or_the_file(file, arguments, said):
    command, *options = arguments
    assert said.format(file=file) in refused(command, file, *options)


def test_sizes_below_a_mebibyte_are_said_in_bytes(tmp_path):
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(b"a\n" + b"1.5\n" * 600))
    said = refused("describe", packed, "--max-unpacked", 100)
    assert "would take 2,402 bytes, more than the limit of 100 bytes; raise --max-unpacked" in said


def test_words_for_nothing_detected_have_the_limit_that_is_said(tmp_path):
    rng = np.random.default_rng(1)
    lead = np.exp(rng.normal(size=80))
    path, out = tmp_path / "wells.csv", tmp_path / "filled.csv"
    cells = ["ND" if value < 0.6 else f"{value:.2f}" for value in lead]
    path.write_text(
        "lead,zinc\n" + "".join(f"{cell},{2 * value:.2f}\n" for cell, value in zip(cells, lead, strict=True))
    )
    fine("fill", path, "--detection-limits", "lead=0.6", "--limits", "fill", "--out", out)
    filled = np.genfromtxt(out, delimiter=",", names=True)["lead"]
    assert (filled[lead < 0.6] < 0.6).all()
    assert "no column 'leed' (--detection-limits)" in run("describe", path, "--detection-limits", "leed=1").stderr
    assert (
        "--detection-limits has 'lead=x'; write a column"
        in run("describe", path, "--detection-limits", "lead=x").stderr
    )


def test_an_advice_names_the_option_for_words_of_no_detection(tmp_path):
    path = tmp_path / "wells.csv"
    path.write_text("lead,zinc\n" + "".join(f"{'ND' if i in (3, 9) else i / 7:.3},{i}\n" for i in range(40)))
    assert "say the limit of the column with --detection-limits" in refused("compare", path, path)
