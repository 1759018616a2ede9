"""The classes of the rows of a table, and the table without them."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.errors import InputError
from isopleth.io import read_table
from isopleth.io.tables import read_labels

ROWS = "a,kind,b\n1, good,2\n3,none,4\n5,007,6\n"


def written(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_words_are_as_they_stand_there(tmp_path):
    path = written(tmp_path, ROWS)
    assert read_labels(path, "kind").tolist() == ["good", "none", "007"]
    table = read_table(path, but="kind")
    assert table.names == ["a", "b"]
    assert table.values.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_an_index_is_left_out_of_the_others(tmp_path):
    path = written(tmp_path, ",kind,b\n0,x,5\n1,y,6\n")
    with pytest.warns(UserWarning, match="the first column has no name and counts the rows; it is left out."):
        assert read_table(path, but="kind").names == ["b"]


def test_classes_in_a_nameless_first_column_are_no_index(tmp_path):
    path = written(tmp_path, ",a,b\n1,0,5\n0,1,6\n")
    assert read_table(path, but="x1").names == ["a", "b"]
    assert read_labels(path, "x1").tolist() == ["1", "0"]


@pytest.mark.parametrize(("cells", "line"), [('x\n""\ny', 3), ("1\nnan\n0", 3), ("true\nfalse\nNA", 4), ("?\n1\n2", 2)])
def test_missing_classes(tmp_path, cells, line):
    path = written(tmp_path, "kind\n" + cells + "\n")
    with pytest.raises(InputError, match=f"line {line}: no class in column 'kind'; fill the cell or drop the row."):
        read_labels(path, "kind")


def test_ragged_and_unknown(tmp_path):
    with pytest.raises(InputError, match="line 5: 2 cells where the first line has 3"):
        read_labels(written(tmp_path, ROWS + "1,2\n"), "kind")
    with pytest.raises(InputError, match="has no column 'sort'"):
        read_labels(written(tmp_path, ROWS), "sort")


def test_arrays(tmp_path):
    np.save(tmp_path / "table.npy", [[1.0, 2.0], [3.0, 4.0]])
    assert read_labels(tmp_path / "table.npy", "x2").tolist() == [2.0, 4.0]
    assert read_table(tmp_path / "table.npy", but="x2").values.tolist() == [[1.0], [3.0]]
    np.savez(tmp_path / "table.npz", X=np.eye(2))
    assert read_table(tmp_path / "table.npz", but="x1").names == ["x2"]


def test_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    columns = {"a": [1, 2], "kind": ["x", "y"], "part": [1.0, float("nan")], "lists": [[1], [2]]}
    parquet.write_table(arrow.table(columns), path)
    assert read_labels(path, "kind").tolist() == ["x", "y"]
    with pytest.raises(InputError, match="row 2: no class in column 'part'"):
        read_labels(path, "part")
    with pytest.raises(InputError, match="column 'lists' holds lists or records"):
        read_labels(path, "lists")
    parquet.write_table(arrow.table({"a": [1, 2], "kind": ["x", "y"]}), path)
    assert read_table(path, but="kind").names == ["a"]
