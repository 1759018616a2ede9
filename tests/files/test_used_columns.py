"""Which columns are used and as what: names, schemas, labels, missing words, and a second table that is read as the first."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from cli import shell
from files.table_files import cells, refused, written
from isopleth import DataWarning, DensityImputer, InputError, read_table
from isopleth.files.file_table import numbers_with_gaps
from isopleth.files.read import Reader, Reading
from isopleth.files.stream import RowStream

pytestmark = pytest.mark.filterwarnings("ignore::isopleth.DataWarning")


def test_codes_of_one_of_two_tables_are_words_in_both(tmp_path):
    rows = ["02116,1.5", "10001,2.5", "90210,3.5"]
    one = written(tmp_path, "zip,v\n" + "".join(f"{row}\n" for row in rows * 9))
    two = written(tmp_path, "zip,v\n" + "".join(f"{row}\n" for row in rows[1:] * 9), "two.csv")
    said = shell.fine("compare", one, two).stdout
    assert "share of '02116': 33.3 % -> 0 %" in said.replace("0.0 %", "0 %")
    assert "numbers" not in said.partition("pvalue")[0]


def test_words_that_mean_a_missing_cell_replace_the_usual_ones_from_the_file_to_the_model(tmp_path):
    path = written(tmp_path, "k,x\n" + "NA,1\nUS,2\n-,3\nNA,5\n" * 3)
    table = read_table(path, missing=["-"])
    assert cells(table)["k"][:4] == ["NA", "US", None, "NA"]
    assert read_table(path, schema=table.schema).values[:4, 0].tolist() == ["NA", "US", None, "NA"]
    fitted = DensityImputer().fit(table)
    for rows in (table, pd.DataFrame({"k": ["NA", "-"], "x": [1, 2]})):
        gaps = np.isnan(fitted.schema_.encode(rows, typed=rows is table).rows[:, 1])
        assert gaps.tolist() == ([False, False, True, False] * 3 if rows is table else [False, True])


def test_repeated_names_can_be_changed_from_the_shell_and_in_python(tmp_path):
    path = written(tmp_path, "a,b,a\n" + "".join(f"{i % 3},{i % 5},{i % 7}\n" for i in range(20)))
    said = "the column name 'a' occurs more than once; give columns names of their own, as with"
    assert f"{said} `rename={{3: 'a_2'}}`" in str(refused(path))
    assert f"{said} --rename 3=a_2" in shell.refused("describe", path)
    assert read_table(path, rename={3: "a_2", "b": "c"}).names == ["a", "c", "a_2"]
    assert "has 2 columns 'a' (rename): say which by its number, 1, 3." in str(refused(path, rename={"a": "c"}))
    assert "has no column 'z' (rename)" in str(refused(path, rename={"z": "c"}))
    shell.fine("fill", path, "--rename", "3=a_2", "--out", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text().startswith("a,b,a_2\n")
    other = written(tmp_path, "a,b,c\n" + "".join(f"{i % 3},{i % 5},{i % 7}\n" for i in range(20)), "other.csv")
    assert "'c'" in shell.fine("compare", path, other, "--rename", "3=a_2").stdout
    assert "--rename has 'a'; write a column and its new name" in shell.refused("describe", path, "--rename", "a")


class TestSchema:
    def test_columns_are_used_as_they_are_and_as_is_said(self, tmp_path):
        path = written(tmp_path, "id,a,w,c\n" + "".join(f"{7 * i % 31},{i / 7},w{i % 3},{i % 2}\n" for i in range(31)))
        table = read_table(path)
        assert (table.names, table.schema.left_out) == (["a", "w", "c"], {"id": "identifier"})
        assert read_table(path, keep_identifiers=True).names == read_table(path, columns=["id", "a", "w", "c"]).names
        assert read_table(path, categorical=["c"]).schema.levels == [("w0", "w1", "w2"), ("0", "1")]
        assert read_table(path, identifiers=["a"]).schema.left_out["a"] == "identifier"
        with pytest.warns(DataWarning, match="left out: 'id'"):
            read_table(path)

    def test_a_table_is_read_as_another_one(self, tmp_path):
        first = read_table(written(tmp_path, "a,w\n1.5,01\n2,x\n3,y\n"))
        second = read_table(written(tmp_path, "more,w,a\n0,01,5\n0,02,6\n", "u.csv"), schema=first.schema)
        assert (second.schema, cells(second)) == (first.schema, {"a": [5, 6], "w": ["01", "02"]})
        error = refused(written(tmp_path, "w,a\nx,much\n", "u.csv"), schema=first.schema)
        assert "u.csv: column 'a' holds 'much' in line 2" in str(error)
        assert (error.column, error.row, error.value) == ("a", 0, "much")

    @pytest.mark.parametrize(("header", "words"), [("b,w", "lacks 'a'"), ("u,v", "has none of the columns")])
    def test_columns_that_are_not_there(self, tmp_path, header, words):
        first = read_table(written(tmp_path, "a,w\n1.5,x\n2,x\n3,y\n"))
        assert words in str(refused(written(tmp_path, f"{header}\n1,2\n", "u.csv"), schema=first.schema))

    def test_labels_are_kept_as_they_are_written(self, tmp_path):
        path = written(tmp_path, "a,kind,b\n1, good,2\n3,none,4\n5,007,6\n")
        table = read_table(path, labels=["kind"])
        assert table.labels["kind"].tolist() == ["good", "none", "007"]
        assert (table.names, table.values.tolist()) == (["a", "b"], [[1, 2], [3, 4], [5, 6]])
        assert table.take([2]).labels["kind"].tolist() == ["007"]
        parquet.write_table(pa.table({"a": [1, 2], "kind": [3, None]}), tmp_path / "t.parquet")
        for file, line in (
            (written(tmp_path, "kind,a\n1,1\nnan,2\n", "u.csv"), "line 3"),
            (tmp_path / "t.parquet", "row 2"),
        ):
            error = refused(file, labels=["kind"])
            assert (error.column, error.row, line in str(error)) == ("kind", 1, True)

    def test_numbers_with_gaps(self, tmp_path):
        table = numbers_with_gaps(read_table(written(tmp_path, "a,b\n1,true\n,false\n")))
        np.testing.assert_array_equal(table.values, [[1, 1], [np.nan, 0]])
        with pytest.raises(InputError, match="no numbers in column 'w'") as caught:
            numbers_with_gaps(read_table(written(tmp_path, "a,w\n1,x\n2,y\n")))
        assert caught.value.column == "w"


def test_a_second_table_of_dates_is_read_in_the_order_of_the_first(tmp_path):
    def write_text(name, cells):
        (tmp_path / name).write_text("d,a\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))

    write_text("first.csv", ["31/01/2024", "01/02/2024"])
    write_text("clear.csv", ["03/04/2024", "05/04/2024"])
    write_text("other.csv", ["03/04/2024", "04/25/2024"])
    first = read_table(tmp_path / "first.csv")
    schema = first.schema.from_dict(json.loads(json.dumps(first.schema.to_dict())))
    april = [datetime(2024, 4, 3), datetime(2024, 4, 5)]
    assert read_table(tmp_path / "clear.csv", schema=schema).data["d"].to_pylist() == april
    (chunk,) = Reader(tmp_path / "clear.csv", Reading(schema=schema)).chunks(5, first)
    assert chunk.data["d"].to_pylist() == april
    seconds = (
        schema.encode(pd.DataFrame({"d": ["03/04/2024", "05/04/2024"], "a": [0, 1]})).numeric[:, 0]
        + schema.columns[0].origin
    )
    assert seconds.tolist() == [moment.replace(tzinfo=UTC).timestamp() for moment in april]
    ((rows, error),) = RowStream(first).batches(io.BytesIO(b"d,a\n03/04/2024,1\n"))
    assert (error, rows.data["d"].to_pylist()) == (None, april[:1])
    with pytest.raises(
        InputError, match="'04/25/2024' in line 3, and dates with days before months were expected"
    ) as caught:
        read_table(tmp_path / "other.csv", schema=schema)
    assert (caught.value.column, caught.value.row) == ("d", 1)
    assert read_table(tmp_path / "clear.csv").data["d"].to_pylist() == [
        "03/04/2024",
        "05/04/2024",
    ]  # which day is not said
