"""Partial files of results: what is kept, what is cut off, and what is not gone on with."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.errors import InputError
from isopleth.io.journal import Journal
from isopleth.io.partial import refuse_begun

ABOUT = {"MODEL": "a", "FILE": "b"}


def rows_of(journal: Journal) -> list[list[float]]:
    return [row for block in journal.blocks() for row in block.tolist()]


def test_wherever_a_file_is_torn_whole_records_are_kept_and_gone_on_with(tmp_path):
    path, torn = tmp_path / "r.partial", tmp_path / "torn.partial"
    with Journal(path, ABOUT, 2) as journal:
        sizes = []
        for k in range(3):
            journal.append(np.full((k + 1, 2), float(k)))
            sizes.append(path.stat().st_size)
    content = path.read_bytes()
    for length in range(len(content) + 1):
        torn.write_bytes(content[:length])
        whole = sum(size <= length for size in sizes)
        with Journal(torn, ABOUT, 2) as journal:
            assert journal.n_rows == [0, 1, 3, 6][whole]
            for k in range(whole, 3):
                journal.append(np.full((k + 1, 2), float(k)))
        assert torn.read_bytes() == content


def test_a_changed_byte_ends_what_is_kept(tmp_path):
    path = tmp_path / "r.partial"
    with Journal(path, ABOUT, 1) as journal:
        journal.append(np.zeros((4, 1)))
        before = path.stat().st_size
        journal.append(np.ones((4, 1)))
    content = bytearray(path.read_bytes())
    content[before + 20] ^= 1
    path.write_bytes(bytes(content))
    with Journal(path, ABOUT, 1) as journal:
        assert rows_of(journal) == [[0.0]] * 4


@pytest.mark.parametrize(
    ("about", "width", "named"), [({"MODEL": "a", "FILE": "c"}, 1, "another FILE:"), (ABOUT, 2, "number of columns")]
)
def test_results_of_something_else_are_refused_and_left(tmp_path, about, width, named):
    path = tmp_path / "r.partial"
    with Journal(path, ABOUT, 1) as journal:
        journal.append(np.zeros((4, 1)))
    content = path.read_bytes()
    with pytest.raises(InputError, match=named):
        Journal(path, about, width)
    assert path.read_bytes() == content


def test_a_file_that_is_no_journal_is_refused_and_left(tmp_path):
    path = tmp_path / "r.partial"
    path.write_text("letters")
    with pytest.raises(InputError, match="no partial file of isopleth"):
        Journal(path, ABOUT, 1)
    assert path.read_text() == "letters"


def test_a_journal_without_rows_leaves_no_file(tmp_path):
    with Journal(tmp_path / "r.partial", ABOUT, 1):
        pass
    assert not list(tmp_path.iterdir())


def test_two_runs_do_not_write_into_each_other(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "r.partial"
    with Journal(path, ABOUT, 1) as journal:
        journal.append(np.zeros((1, 1)))
        with pytest.raises(InputError, match="another run"):
            Journal(path, ABOUT, 1)
        with pytest.raises(InputError, match="another run"):
            refuse_begun(path, resume=False)
    with pytest.raises(InputError, match="interrupted run has left"):
        refuse_begun(path, resume=False)


def test_where_no_room_is_left_rows_before_are_kept_and_what_was_not_begun_is_not_there(tmp_path, room_for):
    path = tmp_path / "r.partial"
    with room_for(30), pytest.raises(InputError, match="no room"):
        Journal(path, ABOUT, 1)
    assert not list(tmp_path.iterdir())
    journal = Journal(path, ABOUT, 1)
    journal.append(np.ones((4, 1)))
    with room_for(path.stat().st_size + 20):
        with pytest.raises(InputError, match="no room"):
            journal.append(np.zeros((4, 1)))
        journal.close()
    with Journal(path, ABOUT, 1) as journal:
        assert rows_of(journal) == [[1.0]] * 4
