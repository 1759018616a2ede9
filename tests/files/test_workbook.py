"""Workbooks: which sheet is read, titles, formulas without values, and cells as they stand."""

from __future__ import annotations

import warnings
from datetime import datetime

import pytest

from cli.shell import fine, refused
from isopleth import DataWarning, InputError, read_table

openpyxl = pytest.importorskip("openpyxl")
ROWS = [["day", "n", "word"], *([datetime(2024, 1, i + 1), i % 5 + 0.5 * (i % 2), "xy"[i % 2]] for i in range(20))]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def workbook(path, **sheets):
    """Write sheets by name; a name that begins with _ is hidden."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name.strip("_"))
        sheet.sheet_state = "hidden" if name.startswith("_") else "visible"
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_the_first_visible_sheet_is_read_and_others_by_name_or_number(tmp_path):
    other = [["a", "b"], *([i, -i] for i in range(12))]
    path = workbook(tmp_path / "t.xlsx", _old=[["z"], [1], [2]], Data=ROWS, Notes=other)
    first = read_table(path)
    assert first.names == ["day", "n", "word"]
    assert "the sheet 'Data' is read, and not 'Notes'; another is read with `sheet='Notes'`" in str(first.notes[0])
    for sheet in ("Notes", "2", 2):
        table = read_table(path, sheet=sheet, keep_identifiers=True)
        assert (table.names, len(table)) == (["a", "b"], 12)
    assert read_table(path, sheet="old", keep_identifiers=True).names == ["z"]
    with pytest.raises(InputError, match=r"has no sheet 'Data 2' \(sheet\); it has 'Data', 'Notes'"):
        read_table(path, sheet="Data 2")
    assert "another is read with --sheet Notes" in fine("describe", path).stdout
    assert "a  " in fine("describe", path, "--sheet", 2, "--keep-id").stdout
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    assert "is no workbook and has no sheets; leave --sheet out." in refused(
        "describe", tmp_path / "t.csv", "--sheet", 1
    )


@pytest.mark.parametrize("title", [[["Sales 2024"]], [["Sales 2024"], ["in EUR"]], [[None, "Sales 2024"]]])
def test_a_title_above_the_header_is_said_with_its_line(tmp_path, title):
    path = workbook(tmp_path / "t.xlsx", Data=[*title, *ROWS])
    said = refused("describe", path)
    assert (
        f"line 1: a title, 'Sales 2024', stands above the header in line {len(title) + 1}; delete the lines above"
        in said
    )
    single = workbook(tmp_path / "u.xlsx", Data=[["v"], *([i * 0.5] for i in range(12))])
    assert read_table(single).names == ["v"]


def test_formulas_whose_values_were_not_saved_are_counted(tmp_path):
    rows = [[*row, "double" if not i else f"=2*B{i + 1}"] for i, row in enumerate(ROWS)]
    path = workbook(tmp_path / "t.xlsx", Data=rows)
    table = read_table(path)
    said = (
        "column 'double': 20 formulas without a saved value, the first in line 2, count as missing; open the workbook"
    )
    assert said in str(table.notes[0])
    assert not read_table(path, exclude=["double"]).notes


def test_cells_of_a_workbook_are_written_as_it_shows_them(tmp_path):
    rows = [["day", "n", "flag", "code"]]
    rows += [[datetime(2024, 1, i + 1), [1, 2.5, None][i % 3], i % 2 == 0, f"{i % 4:03d}"] for i in range(24)]
    path = workbook(tmp_path / "t.xlsx", Data=rows)
    fine("fill", path, "--out", tmp_path / "o.csv")
    found = [line.split(",") for line in (tmp_path / "o.csv").read_text().splitlines()]
    assert found[0] == ["day", "n", "flag", "code"]
    assert [found[1], found[2]] == [["2024-01-01", "1", "TRUE", "000"], ["2024-01-02", "2.5", "FALSE", "001"]]
    assert all(row[1] for row in found)
