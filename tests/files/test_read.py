"""Text that is read: what its cells become, and which numbers are words, gaps or labels of rows."""

from __future__ import annotations

import gc
import gzip
import json
import warnings
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow.feather import write_feather
from pyarrow.parquet import write_table as write_parquet

from files.table_files import CELLS, TEXT, cells, written
from isopleth import KDE, ConditionalDensity, DataWarning, InputError, read_table
from isopleth.files import delimited

pytestmark = pytest.mark.filterwarnings("ignore::isopleth.DataWarning")

# What text becomes: bytes, columns, lines of the rows.
READ = {
    "kinds": (TEXT, CELLS, [2, 3, 4]),
    "semicolons": (TEXT.replace(",", ";"), CELLS, None),
    "bars": (TEXT.replace(",", "|"), CELLS, None),
    "tabs": (TEXT.replace(",", "\t"), CELLS, None),
    "all quoted": ('"' + TEXT.replace(",", '","').replace("\n", '"\n"')[:-1], CELLS, [2, 3, 4]),
    "blanks": (" a   b \n 1  2.5 \n-3   4\n", {"a": [1, -3], "b": [2.5, 4]}, [2, 3]),
    "no header": ("1,2\n3,4\n", {"x1": [1, 3], "x2": [2, 4]}, [1, 2]),
    "mark, quotes, blank lines, carriage returns": (
        b'\xef\xbb\xbf"a, the first",b\r\n\r\n"1", 2\r\n3,"4"\r\n\r\n',
        {"a, the first": [1, 3], "b": [2, 4]},
        [3, 4],
    ),
    "old line ends": ("a,b\r1,2\r3,4\r", {"a": [1, 3], "b": [2, 4]}, [2, 3]),
    "lines inside quotes": (
        'a,note\n1,"two\nlines"\n2,x\n3,y\n',
        {"a": [1, 2, 3], "note": ["two\nlines", "x", "y"]},
        [2, 4, 5],
    ),
    "quotes in quotes": ('a,w\n1,"x, ""y"""\n2,z\n', {"a": [1, 2], "w": ['x, "y"', "z"]}, [2, 3]),
    "quotes inside of words": ('a,w\n1,5" pipe\n2,z\n', {"a": [1, 2], "w": ['5" pipe', "z"]}, [2, 3]),
    "quotes behind the first letter": ('w,a\n5"x",1\n6,2\n', {"w": ['5"x"', "6"], "a": [1, 2]}, [2, 3]),
    "blanks before quotes": ('a, w\n1, "x, y"\n2, z\n', {"a": [1, 2], "w": ["x, y", "z"]}, [2, 3]),
    "comments": ("# made on Monday\n# by us\na,b\n1,2\n# half way\n3,4\n", {"a": [1, 3], "b": [2, 4]}, [4, 6]),
    "a name among the cells of a column": ("w,b\nw,1\nx,2\n", {"w": ["w", "x"], "b": [1, 2]}, [2, 3]),
    "colours are no comments": ("c,a\n#ff0000,1\n#00ff00,2\n", {"c": ["#ff0000", "#00ff00"], "a": [1, 2]}, [2, 3]),
    "a header that counts columns": ("0,1\n5,6\n8,9\n", {"0": [5, 8], "1": [6, 9]}, [2, 3]),
    "truth": ("a\nTrue\nfalse\nNA\n", {"a": [True, False, None]}, None),
    "decimal commas": ("a;b\n1,5;2\n-3,25;4\n", {"a": [1.5, -3.25], "b": [2, 4]}, None),
    "groups and commas": ("a;b\n1.234,5;1.000\n-2,25;2.000\n", {"a": [1234.5, -2.25], "b": [1000, 2000]}, None),
    "groups and points": ('a,b\n"1,234.50",2\n"1,000",4\n', {"a": [1234.5, 1000], "b": [2, 4]}, None),
    "one column says what another means": (
        "a;b\n1,234;2.50\n2,000;0.75\n",
        {"a": [1234, 2000], "b": [2.5, 0.75]},
        None,
    ),
    "groups by blanks": ("a;b\n1 234,5;2\n2 000;3\n", {"a": [1234.5, 2000], "b": [2, 3]}, None),
    "groups by apostrophes": ("a;b\n1'234.5;2\n2'000;3\n", {"a": [1234.5, 2000], "b": [2, 3]}, None),
    "zero comma": ("a;b\n0,125;2\n0,250;3\n", {"a": [0.125, 0.25], "b": [2, 3]}, None),
    "days first": ("d\n13/01/2024\n01/02/2024\n", {"d": [datetime(2024, 1, 13), datetime(2024, 2, 1)]}, None),
    "months first": ("d\n01/13/2024\n02/01/2024\n", {"d": [datetime(2024, 1, 13), datetime(2024, 2, 1)]}, None),
    "days with points": ("d\n31.01.2024\n01.02.2024\n", {"d": [datetime(2024, 1, 31), datetime(2024, 2, 1)]}, None),
    "single digits": ("d\n2024/1/31\n2024/2/1\n", {"d": [datetime(2024, 1, 31), datetime(2024, 2, 1)]}, None),
    "the year 1": (
        "d,a\n0001-01-01,1\n2024-02-01,2\n",
        {"d": [datetime(1, 1, 1), datetime(2024, 2, 1)], "a": [1, 2]},
        None,
    ),
    "no such day": ("d\n2024-02-30\n2024-02-01\n", {"d": ["2024-02-30", "2024-02-01"]}, None),
    "clocks": (
        "when\n2024-01-31 12:00\n2024-02-01 12:30\n",
        {"when": [datetime(2024, 1, 31, 12), datetime(2024, 2, 1, 12, 30)]},
        None,
    ),
    "instants": (
        "t\n2024-01-31T12:00Z\n2024-01-31T22:00+09:00\n",
        {"t": [datetime(2024, 1, 31, 12, tzinfo=UTC), datetime(2024, 1, 31, 13, tzinfo=UTC)]},
        None,
    ),
    "a zone behind days with points": (
        "t\n31.01.2024 10:00+01:00\n01.02.2024 11:30+01:00\n",
        {"t": [datetime(2024, 1, 31, 9, tzinfo=UTC), datetime(2024, 2, 1, 10, 30, tzinfo=UTC)]},
        None,
    ),
    "numbers beyond 2**53": (
        f"a,b\n{2**53 + 1},{2**64 + 1}\n1,2\n",
        {"a": [str(2**53 + 1), "1"], "b": [str(2**64 + 1), "2"]},
        None,
    ),
    "decimals that are rounded": (
        "a,b\n12345678901234567890.5,1e300\n2,3\n",
        {"a": [12345678901234567890.5, 2], "b": [1e300, 3]},
        None,
    ),
    "digits with underscores": ("a,b\n1_0,1\n2_0,2\n", {"a": ["1_0", "2_0"], "b": [1, 2]}, None),
    "a line that names the delimiter": ("sep=;\na;b\n1,5;2\n3,25;4\n", {"a": [1.5, 3.25], "b": [2, 4]}, [3, 4]),
    "utf-16": ("a,w\n1,é\n2,b\n".encode("utf-16"), {"a": [1, 2], "w": ["é", "b"]}, None),
}


@pytest.mark.parametrize("name", READ)
def test_text(tmp_path, name, monkeypatch):
    content, columns, lines = READ[name]
    for piece in (2**22, 7):  # a record may end in any piece
        monkeypatch.setattr(delimited, "_PIECE", piece)
        table = read_table(written(tmp_path, content), keep_identifiers=True, missing=None, **_all(columns))
        assert cells(table) == columns
        assert lines is None or table.lines.tolist() == lines


def test_numbers_up_to_twelve_do_not_say_which_is_the_day(tmp_path):
    words = ["12/02/2024", "03/12/2024"]
    assert read_table(written(tmp_path, "d\n" + "\n".join(words))).frame["d"].to_pylist() == words


def _all(columns):
    """Use all columns, whatever they hold."""
    return {"categorical": [n for n, c in columns.items() if {type(x) for x in c} == {str}]}


@pytest.mark.parametrize("code", ["-999", "-999.0", "-9.99e2"])
def test_numbers_that_mean_a_missing_cell_are_recognised_by_value(tmp_path, code):
    path = written(tmp_path, f"a,b\n1,x\n{code},y\n2,x\n")
    pd.read_csv(path).to_parquet(tmp_path / "t.parquet")
    for file in (path, tmp_path / "t.parquet"):
        assert cells(read_table(file, missing=["-999"]))["a"] == [1, None, 2]


@pytest.mark.parametrize("code", ["02116", "-007", "01.11", "000415"])
def test_a_number_that_begins_with_0_makes_its_column_words_unless_it_is_said_to_hold_numbers(tmp_path, code):
    path = written(tmp_path, "a,b\n" + f"7,x\n{code},y\n8.5,x\n" * 4)
    table = read_table(path)
    assert set(cells(table)["a"]) == {"7", code, "8.5"}
    assert [column.kind for column in table.schema.columns] == ["categorical", "categorical"]
    assert f"column 'a' holds {code!r}, which begins with 0, so it is taken as words" in str(table.notes[0])
    assert cells(read_table(path, numeric=["a"]))["a"][:3] == [7, float(code), 8.5]
    model = read_table(path, numeric=["a"]).schema
    assert read_table(path, schema=model).values[1, 0] == float(code)


@pytest.mark.parametrize("number", ["0", "0.5", "-0.5", "0e0", "10"])
def test_other_numbers_are_numbers(tmp_path, number):
    assert cells(read_table(written(tmp_path, f"a,b\n7,x\n{number},y\n")))["a"] == [7, float(number)]


def test_text_in_files_of_typed_cells_is_words_and_their_gaps_are_their_own(tmp_path):
    pd.DataFrame({"a": ["1", "2.5", "NA"] * 4, "b": range(12)}).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert cells(table)["a"][:3] == ["1", "2.5", "NA"]
    said = [str(note).partition(": ")[2] for note in table.notes]
    assert said[0].startswith("column 'a' holds 'NA', which is a word there; name missing cells in `missing=['NA']`")
    assert said[1].startswith("column 'a' holds text that looks like numbers, such as '1', so it is taken as words")
    assert cells(read_table(tmp_path / "t.parquet", numeric=["a"], missing=["NA"]))["a"][:3] == [1, 2.5, None]


@pytest.mark.parametrize("header", ["", "id of nothing"])
def test_a_first_column_of_rising_numbers_without_a_name_has_the_labels_of_the_rows(tmp_path, header):
    labels = np.cumsum(1 + np.arange(40) % 3)
    path = written(tmp_path, f"{header},v\n" + "".join(f"{i},{i % 7}.5\n" for i in labels))
    schema = read_table(path).schema
    assert schema.left_out == ({} if header else {"x1": "identifier"})
    assert read_table(path, columns=["v", header or "x1"]).names == ["v", header or "x1"]
    second = written(tmp_path, "v,\n" + "".join(f"{i % 7}.5,{i}\n" for i in labels), "second.csv")
    assert not read_table(second).schema.left_out


def test_words_for_nothing_detected_keep_the_limit_of_the_schema(tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("lead,zinc\n" + "".join(f"{'ND' if i < 5 else i / 7},{i}\n" for i in range(40)))
    second.write_text("lead,zinc\n" + "".join(f"{'n.d.' if i < 3 else i / 7},{i}\n" for i in range(20)))
    table = read_table(first, detection_limits={"lead": 0.7}, warn=False)
    assert table.schema.columns[0].limits == (("below", 0.7),)
    later = read_table(second, schema=table.schema, warn=False)
    assert later.odd.censored["lead"].upper.tolist() == [0.7] * 3
    with pytest.raises(InputError, match="detection_limits has 'low' for column 'lead'; expected a number"):
        read_table(first, detection_limits={"lead": "low"})


def test_text_with_limits_is_numbers_in_every_format(tmp_path):
    cells = ["<0.5" if i < 5 else f"{i / 7:.2f}" for i in range(40)]
    data = pa.table({"lead": cells, "zinc": list(range(40))})
    write_parquet(data, tmp_path / "t.parquet")
    write_feather(data, tmp_path / "t.feather")
    lines = (json.dumps({"lead": cell, "zinc": i}) for i, cell in enumerate(cells))
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    for path in tmp_path.iterdir():
        table = read_table(path, warn=False)
        assert table.schema.columns[0].limits == (("below", 0.5),), path
        assert table.data.column("lead").to_pylist()[5:] == [float(cell) for cell in cells[5:]]


def test_columns_taken_from_a_table_keep_what_is_known_of_them(tmp_path):
    rows = "".join(f"{i % 7},{i * 0.5},{'<23' if i % 9 == 0 else 20 + i % 5}\n" for i in range(60))
    (tmp_path / "a.csv").write_text("a,b,lead\n" + rows)
    frame = (table := read_table(tmp_path / "a.csv", warn=False)).frame
    ConditionalDensity(n_estimators=2, n_jobs=1).fit(frame.select(["lead", "a"]), frame.column("b"))
    few = KDE().fit(frame.select(["lead"])).score(frame.select(["lead"]))
    assert few == KDE().fit(read_table(tmp_path / "a.csv", columns=["lead"], warn=False)).score(frame.select(["lead"]))
    KDE().fit(frame.append_column("more", frame.column("b")).select(["b", "more"]))
    with pytest.warns(
        DataWarning, match="'lead' that say a limit, such as <23, count as missing in rows that were taken"
    ):
        KDE().fit(frame.slice(0, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KDE().fit(table.take(range(30)).frame)


def test_a_name_that_looks_like_a_column_is_offered():
    frame = pd.DataFrame({"speed": np.arange(9.0) ** 2, "mass": np.arange(9.0)[::-1] ** 3})
    for model in (KDE(bounds={"sped": (0.0, None)}), KDE(frame="whitn")):
        with pytest.raises(InputError, match=r"perhaps '(speed|whiten)' is meant"):
            model.fit(frame)


@pytest.mark.parametrize(
    "cells",
    [
        ["7.7", "5.841", "656"],  # as programs write decimals
        ["7.700", "5.841", "656.000"],
        ["7.741", "5.841", "656"],
        ["7.700", "5.841", "6566"],
        ["0.700", "5.841", "656"],
    ],
)
def test_points_that_separate_no_thousands_are_decimal(tmp_path, cells):
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells)))
    assert read_table(tmp_path / "t.csv").numbers()[:, 0].tolist() == [float(cell) for cell in cells]


def test_errors_of_spreadsheets_are_missing_cells(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n#N/A,red\n" + "1.5,#REF!\n2.5,blue\n" * 4 + "#DIV/0!,red\n")
    table = read_table(tmp_path / "t.csv")
    assert np.isnan(table.numbers()).sum() == 2
    assert table.schema.columns[1].levels == ("blue", "red")


def test_files_are_closed_once_they_are_read(tmp_path):
    text = "a,b\n" + "1.5,x\n2.5,y\n" * 6
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "16.csv").write_bytes(text.encode("utf-16"))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for name in ("t.csv", "t.csv.gz", "16.csv"):
            read_table(tmp_path / name)
        gc.collect()
    assert not [each for each in heard if each.category is ResourceWarning and str(tmp_path) in str(each.message)]
