"""Partial files of results: what is kept, what is cut off, and what cannot be resumed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from isopleth import InputError
from isopleth.files import source
from isopleth.files.source import table_fingerprint
from isopleth.io.resume import Journal, refuse_begun

ABOUT = {"MODEL": "a", "FILE": "b"}


def append(journal: Journal, key: str, values: np.ndarray) -> None:
    journal.append(key, {"values": values})


def values_of(journal: Journal) -> dict[str, list[list[float]]]:
    return {key: journal.read(key)["values"].tolist() for key in journal.keys}


def test_a_record_whose_writing_was_killed_is_not_there_and_the_others_are(tmp_path):
    path = tmp_path / "r.partial"

    def killed():
        journal = Journal(path, ABOUT)
        for k in range(3):
            append(journal, str(k), np.full((k + 1, 2), float(k)))
        journal._database.execute("BEGIN")
        append(journal, "3", np.zeros((10_000, 2)))
        os.kill(os.getpid(), signal.SIGKILL)

    process = multiprocessing.get_context("fork").Process(target=killed)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with Journal(path, ABOUT) as journal:
        assert values_of(journal) == {str(k): [[float(k)] * 2] * (k + 1) for k in range(3)}
    assert path.read_bytes()[68:72] == b"isop"  # by which other programs know the databases of this one
    assert [child.name for child in tmp_path.iterdir()] == ["r.partial"]


def test_a_changed_byte_is_seen_and_nothing_of_it_is_used(tmp_path):
    path = tmp_path / "r.partial"
    with Journal(path, ABOUT) as journal:
        append(journal, "a", np.full((4, 1), 1.5))
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(1.5).tobytes() * 4)] ^= 1
    path.write_bytes(bytes(content))
    with Journal(path, ABOUT) as journal, pytest.raises(InputError, match="is damaged; delete it to start again"):
        journal.read("a")


@pytest.mark.parametrize(
    ("about", "named"),
    [({"MODEL": "a", "FILE": "c"}, "another FILE:"), ({"FILE": "c"}, "another FILE, MODEL:"), ({}, "FILE, MODEL:")],
)
def test_results_of_something_else_are_refused_and_left(tmp_path, about, named):
    path = tmp_path / "r.partial"
    with Journal(path, ABOUT) as journal:
        append(journal, "a", np.zeros((4, 1)))
    content = path.read_bytes()
    with pytest.raises(InputError, match=named):
        Journal(path, about)
    assert path.read_bytes() == content


def test_what_is_no_journal_is_refused_and_left(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        Journal(tmp_path / "folder", ABOUT)
    path = tmp_path / "r.partial"
    path.write_text("letters" * 300)
    with pytest.raises(InputError, match="no partial file of isopleth"):
        Journal(path, ABOUT)
    assert path.read_text() == "letters" * 300


def test_a_journal_without_rows_leaves_no_file(tmp_path):
    with Journal(tmp_path / "r.partial", ABOUT):
        pass
    assert not list(tmp_path.iterdir())


def test_two_runs_do_not_write_into_each_other(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "r.partial"
    with Journal(path, ABOUT) as journal:
        append(journal, "a", np.zeros((1, 1)))
        with pytest.raises(InputError, match="another run"):
            Journal(path, ABOUT)
        with pytest.raises(InputError, match="another run"):
            refuse_begun(path, resume=False)
    with pytest.raises(InputError, match="interrupted run has left"):
        refuse_begun(path, resume=False)


def test_if_no_space_is_left_rows_before_are_kept_and_what_was_not_begun_is_not_there(tmp_path, space_for):
    path = tmp_path / "r.partial"
    with space_for(30), pytest.raises(InputError, match="no space"):
        Journal(path, ABOUT)
    assert not list(tmp_path.iterdir())
    journal = Journal(path, ABOUT)
    append(journal, "b", np.ones((4, 1)))
    with space_for(path.stat().st_size):
        with pytest.raises(InputError, match="no space"):
            append(journal, "a", np.ones((4000, 1)))
        journal.close()
    with Journal(path, ABOUT) as journal:
        assert values_of(journal) == {"b": [[1.0]] * 4}


def test_any_arrays_come_back_as_they_were(tmp_path):
    arrays = {
        "number": np.asarray(3),
        "flag": np.asarray(True),
        "empty": np.empty((0, 3)),
        "strided": np.arange(12.0).reshape(3, 4)[:, ::2],
        "fortran": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        "big-endian": np.arange(3, dtype=">f4"),
    }
    with Journal(tmp_path / "r.partial", ABOUT) as journal:
        journal.append("all", arrays)
    with Journal(tmp_path / "r.partial", ABOUT) as journal:
        found = journal.read("all")
        assert journal.read("none") is None
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)


def test_a_later_record_of_a_key_counts_and_the_file_stays_small(tmp_path):
    path = tmp_path / "r.partial"
    with Journal(path, ABOUT) as journal:
        append(journal, "first", np.full((5000, 1), -1.0))
        for k in range(50):
            append(journal, "second", np.full((5000, 1), float(k)))
        assert journal.keys == ["first", "second"]
        assert values_of(journal)["second"] == [[49.0]] * 5000
    assert path.stat().st_size < 4 * 8 * 5000


def test_the_fingerprint_of_a_huge_table_reads_its_beginning_only(tmp_path):
    def table(size: int = 2**26, changed: int | None = None, time: int = 0) -> Path:
        path = tmp_path / "rows.csv"
        with open(path, "wb") as file:
            file.truncate(size)
            if changed is not None:
                file.seek(changed)
                file.write(b"2")
        os.utime(path, ns=(time, time))
        return path

    tracemalloc.start()
    known = table_fingerprint(table())
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert top < 2**22
    assert known == table_fingerprint(table())
    for change in ({"size": 2**26 + 1}, {"changed": 2**20 - 1}, {"time": 1}):
        assert table_fingerprint(table(**change)) != known


def test_the_fingerprint_of_standard_input_is_that_of_what_was_copied(tmp_path, monkeypatch):
    found = []
    for content in (b"1,2", b"2,2", b"2,23"):
        (tmp_path / "copy").write_bytes(content)
        with open(tmp_path / "copy", "rb") as file:
            monkeypatch.setattr(source, "_read", [source.Source(file, Path("standard input"), ".csv")])
            found += [table_fingerprint(Path("-")), table_fingerprint(Path("-"))]
    assert found[0] == found[1]
    assert len(set(found)) == 3
