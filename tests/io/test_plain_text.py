"""The fast reader of text against the exact one: the same numbers and lines, or none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isopleth.errors import InputError
from isopleth.io import csv_file, open_rows, read_frame, read_table


def exact(monkeypatch):
    monkeypatch.setattr(csv_file, "scan", lambda *_: None)


def outcome(read, path):
    try:
        table = read(path)
    except InputError as error:
        return str(error)
    return table.names, table.named, table.lines.tolist(), table.values.tobytes()


CELLS = st.sampled_from(
    [
        "1",
        "-2.5e3",
        " 7",
        "8 ",
        "nan",
        "",
        "x",
        '"q"',
        '"3"',
        'a"b',
        '""',
        "True",
        "1_0",
        "é",
        "1e999",
        "+4",
        ".5",
        "5.",
    ]
    + ["9007199254740993", "0x1", "1,5", "1.234,5", '"1\n2"']
)
ENDS = st.sampled_from(["\n", "\r\n", "\n\n", "\r"])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=3), min_size=1, max_size=6),
    delimiter=st.sampled_from(",;\t|"),
    end=ENDS,
    header=st.booleans(),
)
@pytest.mark.filterwarnings("ignore::isopleth.errors.DataWarning")
def test_both_readers_agree(tmp_path, rows, delimiter, end, header):
    path = tmp_path / "t.csv"
    head = delimiter.join("abc"[: len(rows[0])]) + end if header else ""
    path.write_bytes((head + end.join(delimiter.join(row) for row in rows)).encode())
    with pytest.MonkeyPatch.context() as patch:
        fast = outcome(read_table, path), frame_outcome(path)
        exact(patch)
        assert (outcome(read_table, path), frame_outcome(path)) == fast


def frame_outcome(path):
    try:
        frame = read_frame(path, min_rows=1)
    except InputError as error:
        return str(error)
    # NaN is no equal of itself.
    return frame.lines.tolist(), str(frame.data.to_pydict()), frame.data.schema


def plain_table(path, rows=60_000):
    values = np.random.default_rng(0).normal(size=(rows, 3)) * 10.0 ** np.arange(-20, 40, 20)
    path.write_text("a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in values.tolist()) + "\n")
    return values


def test_numbers_are_the_same_to_the_last_bit(tmp_path, monkeypatch):
    values = plain_table(tmp_path / "t.csv")
    # Beyond 2**53 a number may be a rounded integer, which the exact reader looks at.
    values[:, 2] = np.arange(len(values)) / 7.0
    text = "a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in values.tolist()) + "\n"
    (tmp_path / "t.csv").write_text(text)
    monkeypatch.setattr(csv_file, "parse", None)  # the exact reader is not needed
    table = read_table(tmp_path / "t.csv", ["c", "a"])
    np.testing.assert_array_equal(table.values, values[:, [2, 0]])
    assert table.lines.tolist() == list(range(2, len(values) + 2))


def test_chunks_begin_at_any_row_of_a_file_of_several_pieces(tmp_path):
    values = plain_table(tmp_path / "t.csv")
    values[:, 2] = 1.5
    (tmp_path / "t.csv").write_text("a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in values.tolist()) + "\n")
    rows = open_rows(tmp_path / "t.csv")
    for start in (0, 1, 30_000, 59_998):
        chunks = list(rows.chunks(7_000, start))
        np.testing.assert_array_equal(np.concatenate([chunk.values for chunk in chunks]), values[start:])
        assert np.concatenate([chunk.lines for chunk in chunks]).tolist() == list(range(start + 2, len(values) + 2))


def test_a_word_far_down_is_named_with_its_line(tmp_path):
    plain_table(tmp_path / "t.csv")
    with open(tmp_path / "t.csv", "a") as file:
        file.write("1,oops,2\n")
    with pytest.raises(InputError, match=r"line 60002: 'oops' in the numeric column 'b'"):
        read_table(tmp_path / "t.csv")
