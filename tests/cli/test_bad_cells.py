"""Cells that are not of the kind of their column: every command names all of them at once, with ways out that can be pasted."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from cli.shell import fine, refused, run
from isopleth import read_table

N = 60


@pytest.fixture
def path(tmp_path):
    """Orders with one wrong cell in a column of dates, two in one of decimal commas and one in one of truth values."""
    rng = np.random.default_rng(0)
    days = [f"2021-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(N)]
    prices = [f"{value:.2f}".replace(".", ",") for value in rng.lognormal(3.0, 0.5, N)]
    paid = rng.choice(["true", "false"], N).tolist()
    days[19], prices[4], prices[7], paid[30] = "2021-02-30", "46,3O", "Hilliard's", "ture"
    kinds = rng.choice(["a", "b"], N)
    rows = zip(days, prices, paid, kinds, strict=True)
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["day;price;paid;kind", *map(";".join, rows), ""]))
    return file


def arguments(verb, path):
    out = path.parent / "out.csv"
    return {
        "compare": [path, path],
        "fill": [path, "--out", out],
        "fit": [path, "--out", path.parent / "m"],
        "sample": [path, "-n", 5, "--out", out],
        "expect": [path, "--given", "kind=a"],
        "monitor": ["--reference", path],
        "prior": [path, path, "--target", "kind"],
        "anomalies": [path, "--bad-cells", "refuse"],
        "describe": [path, "--bad-cells", "refuse"],
    }[verb]


VERBS = ["compare", "fill", "fit", "sample", "expect", "monitor", "prior", "anomalies", "describe"]


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_names_the_cells_of_all_columns_at_once(path, verb):
    said = refused(verb, *arguments(verb, path))
    for words in (
        "'2021-02-30' in line 21",
        "'46,3O' in line 6, \"Hilliard's\" in line 9",
        "'ture' in line 32",
        "--bad-cells missing",
        "--categorical day,price,paid",
    ):
        assert words in said, said


@pytest.mark.parametrize("verb", ["describe", "anomalies"])
def test_questions_about_wrong_cells_go_on_with_gaps(path, verb):
    result = fine(verb, path)
    said = " ".join((result.stdout + result.stderr).split())
    assert (
        "column 'price': 2 cells are no numbers and count as missing: '46,3O' in line 6, \"Hilliard's\" in line 9"
        in said
    )
    assert "column 'day': 1 cell is no time and counts as missing: '2021-02-30' in line 21" in said


def test_other_commands_go_on_if_it_is_said(path, tmp_path):
    result = fine("fill", path, "--bad-cells", "missing", "--out", tmp_path / "o.csv")
    assert "4 missing cells in 3 columns" in result.stderr
    assert "'46,3O'" in result.stderr


def test_the_advice_can_be_pasted_into_a_shell(path, tmp_path):
    said = refused("fill", path, "--exclude", "day,paid", "--out", tmp_path / "o.csv")
    words = shlex.split(said[said.index("--missing") :])
    result = fine("fill", path, "--exclude", "day,paid", "--out", tmp_path / "o.csv", "--missing", words[1].rstrip(","))
    assert "2 missing cells of price" in result.stderr


def test_a_word_with_a_comma_can_be_typed_as_it_stands(path, tmp_path):
    for typed in ("46,3O", '"46,3O"'):
        command = ["fill", path, "--columns", "price,kind", "--out", tmp_path / "o.csv", "--bad-cells", "missing"]
        said = fine(*command, "--missing", typed).stderr
        assert "2 missing cells of price" in said
        assert '1 cell is no number and counts as missing: "Hilliard\'s" in line 9' in said


def test_the_wrong_cell_of_a_column_that_is_said_to_hold_numbers_is_named(path):
    assert "'46,3O' in line 6" in refused("compare", path, path, "--numeric", "price", "--exclude", "day,paid")
    most = run("anomalies", path, "--numeric", "kind").stderr
    assert "column 'kind' holds" in most
    assert "expected a number" in most


def test_a_line_of_units_is_one_cause(tmp_path):
    path = tmp_path / "logger.csv"
    rows = [f"2022-03-01 00:{i:02d}:00,{5 + i % 7 / 3:.3f},{60 + i % 11 / 3:.1f}" for i in range(50)]
    path.write_text("\n".join(["when,T,RH", "TS,Deg C,%", ",Avg,Smp", *rows, ""]))
    said = refused("compare", path, path)
    assert said.endswith(
        "line 2 to line 3 hold units or a second header ('TS', 'Deg C', '%') and no row; delete what is no row.\n"
    )
    assert "hold units or a second header" in " ".join(fine("describe", path).stdout.split())


def test_words_that_repeat_are_not_wrong_cells(tmp_path):
    path = tmp_path / "t.csv"
    cells = ["empty" if i % 9 == 3 else "1O" if i == 7 else str(3 * i) for i in range(60)]
    path.write_text("a,b\n" + "".join(f"{cell},{i % 5}\n" for i, cell in enumerate(cells)))
    unread = read_table(path, warn=False).odd.unread["a"]
    assert (len(unread), unread.wrong.rows.tolist(), unread.wrong.texts) == (8, [7], ("1O",))
    assert "--missing empty,1O" in refused("compare", path, path)


def test_limits_stay_as_they_are_or_get_a_number_inside(tmp_path):
    path, out = tmp_path / "lead.csv", tmp_path / "o.csv"
    cells = [f"{0.52 + i % 37 / 7:.2f}" for i in range(N)]
    cells[16:30:3] = ["<0.5"] * 5
    cells[7] = ""
    path.write_text("site,lead\n" + "".join(f"p{i % 4},{cell}\n" for i, cell in enumerate(cells)))
    assert "5 cells say limits" in " ".join(fine("describe", path).stdout.split())
    said = fine("fill", path, "--out", out)
    assert "1 missing cell of lead" in said.stderr
    assert "5 cells of lead say a limit and stay as they are" in " ".join(said.stdout.split())
    found = [line.split(",")[1] for line in out.read_text().splitlines()[1:]]
    assert [new for new, old in zip(found, cells, strict=True) if old] == [cell for cell in cells if cell]
    fine("fill", path, "--limits", "fill", "--interval", "--out", out)
    rows = [line.split(",")[1:] for line in out.read_text().splitlines()[1:]]
    inside = [list(map(float, row)) for row, old in zip(rows, cells, strict=True) if old == "<0.5"]
    assert all(0.0 <= low <= value <= high <= 0.5 and value < 0.5 for value, low, high in inside)
    assert [row[0] for row, old in zip(rows, cells, strict=True) if old not in ("", "<0.5")] == [
        cell for cell in cells if cell not in ("", "<0.5")
    ]
    assert "lead = <0.5" in fine("expect", path, "--given", "lead=<0.5").stdout


def test_a_stream_is_written_as_its_reference(tmp_path):
    rng = np.random.default_rng(1)
    rows = rng.normal(5.0, 1.0, (300, 2)).round(3)
    text = ["flow;temp", *(f"{a};{b}".replace(".", ",") for a, b in rows.tolist()), ""]
    path = tmp_path / "ref.csv"
    path.write_text("\n".join(text))
    command = ["monitor", "--reference", path, "--run-length", 1000, "--window", 20]
    for options in ([], ["--decimal", ","]):
        for stream in (text, text[1:]):
            assert "300 rows" in fine(*command, *options, rows="\n".join(stream)).stdout
    wrong = "\n".join([*text[:40], "1,2;x", *text[40:]])
    assert "column 'temp' holds 'x' in line 41" in run(*command, rows=wrong).stderr
    result = fine(*command, "--bad-cells", "missing", rows=wrong)
    assert "301 rows" in result.stdout
    assert (
        "standard input: column 'temp': 1 cell is no number and counts as missing: 'x' in line 41; correct it"
        in result.stderr
    )


def test_a_model_answers_for_rows_with_gaps_in_the_place_of_wrong_cells(path, tmp_path):
    fine("fit", path, "--bad-cells", "missing", "--size", 20, "--out", tmp_path / "m")
    command = ["score", tmp_path / "m", path, "--out", tmp_path / "o.csv", "--chunk-rows", 25]
    assert "'46,3O' in line 6" in refused(*command)
    said = fine(*command, "--bad-cells", "missing").stderr
    assert (
        "column 'price': 2 cells are no numbers and count as missing: '46,3O' in line 6, \"Hilliard's\" in line 9"
        in said
    )
    assert "column 'paid': 1 cell is no truth value and counts as missing: 'ture' in line 32" in said
