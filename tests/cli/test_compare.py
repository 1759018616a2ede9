"""``isopleth compare``: what it prints and writes, and one line for all that is wrong."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from isopleth import two_sample_test
from isopleth.cli.program import program

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(60, 3)), RNG.normal(size=(40, 3)) + [0.0, 2.0, 0.0]


def run(*arguments):
    return CliRunner().invoke(program, ["compare", *(str(a) for a in arguments)], prog_name="isopleth")


def refused(*arguments) -> str:
    """The one line that a wrong input gives."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr


def write(path, values, header):
    np.savetxt(path, values, delimiter=",", header=header, comments="")
    return path


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "a.csv", A, "age,income,height"), write(tmp_path / "b.csv", B, "age,income,height")


def test_the_verdict_and_the_columns(files):
    result = run(*files, "--permutations", 99)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "60 and 40 rows, 3 columns (age, income, height)"
    assert lines[1] == "p-value 0.01 (99 permutations): the samples differ"
    assert lines[2].startswith("squared L2 distance of the densities: ")
    assert lines[5].endswith("income *")
    assert "*" not in lines[6]
    assert f"{np.median(B[:, 1]):.4g}" in lines[5].split()


def test_columns_are_matched_by_name(files, tmp_path):
    other = write(tmp_path / "c.csv", B[:, [2, 0, 1]], "height,age,income")
    assert run(files[0], other).stdout == run(*files).stdout


def test_no_difference(files, tmp_path):
    other = write(tmp_path / "c.csv", np.random.default_rng(1).normal(size=(50, 3)), "age,income,height")
    assert "no difference is shown" in run(files[0], other, "--permutations", 99).stdout


def test_a_difference_that_no_column_shows(tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 1))
    files = write(tmp_path / "a.csv", np.c_[x, x], "p,q"), write(tmp_path / "b.csv", np.c_[x, -x], "p,q")
    assert "No column differs by itself" in run(*files, "--permutations", 99).stdout


def test_rows_are_written_with_their_differences(files, tmp_path):
    out = tmp_path / "rows.csv"
    assert run(*files, "--out", out).exit_code == 0
    with open(out, newline="") as lines:
        rows = list(csv.DictReader(lines))
    witness = two_sample_test(A, B, random_state=0).witness
    assert [row["line"] for row in rows] == [*map(str, range(2, 62)), *map(str, range(2, 42))]
    assert {row["file"] for row in rows[:60]} == {str(files[0])}
    found = [float(row["difference"]) for row in rows]
    np.testing.assert_allclose(found, np.concatenate([witness.x, witness.y]), rtol=1e-6, atol=1e-9)


def test_rows_are_numbered_where_one_file_has_no_lines(files, tmp_path):
    np.save(tmp_path / "b.npy", B)
    out = tmp_path / "rows.csv"
    for other, options, header in (
        (tmp_path / "b.npy", [], "file,row,difference"),
        (files[1], ["--row-numbers"], "file,line,row,difference"),
    ):
        assert run(files[0], other, "--out", out, "--permutations", 9, *options).exit_code == 0
        with open(out, newline="") as lines:
            rows = list(csv.DictReader(lines))
        assert ",".join(rows[0]) == header
        assert [row["row"] for row in rows] == [*map(str, range(1, 61)), *map(str, range(1, 41))]


def test_a_picture(files, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.svg"
    assert run(*files, "--plot", path).exit_code == 0
    assert "<svg" in path.read_text()[:2000]


def test_chosen_columns_and_arrays(files, tmp_path):
    np.save(tmp_path / "a.npy", A[:, :2])
    np.save(tmp_path / "b.npy", B[:, :2])
    assert "2 columns (x1, x2)" in run(tmp_path / "a.npy", tmp_path / "b.npy", "--permutations", 9).stdout
    assert "1 column (height)" in run(*files, "--columns", "height", "--permutations", 9).stdout


def test_single_rows_have_no_interval(tmp_path):
    files = write(tmp_path / "a.csv", A[:1], "p,q,r"), write(tmp_path / "b.csv", B, "p,q,r")
    result = run(*files, "--permutations", 9)
    assert result.exit_code == 0, result.output
    assert "squared L2" not in result.stdout


def test_a_table_does_not_differ_from_itself(files):
    assert "p-value 1 (9 permutations): no difference is shown" in run(files[0], files[0], "--permutations", 9).stdout


def test_columns_of_a_size_that_cannot_be_used_are_named(files, tmp_path):
    huge = [
        write(tmp_path / f"{name}.csv", rows * [1.0, 1e160, 1.0], "age,income,height")
        for name, rows in zip("pq", (A, B), strict=True)
    ]
    assert "'income' is of a size" in refused(*huge)


def test_wrong_input_is_one_line(files, tmp_path):
    other = write(tmp_path / "c.csv", B[:, :2], "age,weight")
    line = refused(files[0], other)
    assert "c.csv lacks 'income', 'height' and " in line
    assert "a.csv lacks 'weight'; choose columns that both have with --columns" in line
    assert "c.csv lacks 'income', 'height'; choose" in refused(files[0], write(other, B[:, :1], "age"))
    np.save(tmp_path / "d.npy", B[:, :2])
    assert "has 3 columns" in refused(files[0], tmp_path / "d.npy")
    assert "does not exist" in refused(files[0], tmp_path / "none.csv")
    assert "same file" in refused(*files, "--out", files[0])
    broken = write(tmp_path / "e.csv", np.where(B > 3, np.nan, B), "age,income,height")
    assert "NaN" in refused(files[0], broken)
