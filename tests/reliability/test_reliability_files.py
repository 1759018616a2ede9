"""Files that hold no data and altered model files give a result or one sentence, never a traceback."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from experiments.reliability import malformed, tampered
from experiments.reliability.__main__ import COUNTS
from experiments.reliability.outcomes import Tally, is_sentence, tried, wrong_end
from hypothesis import given
from hypothesis import strategies as st

import isopleth
from isopleth import InputError, MissingExtraError, read_table
from isopleth.files.file_table import FileTable
from isopleth.files.stream import RowStream

SUFFIXES = (".csv", ".tsv", ".npy", ".npz", ".parquet")
BEGINNINGS = (b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"PAR1", b"a,b\n1,2\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("malformed")


def ended(work):
    """Return the result of `work`, or the sentence of its error."""
    try:
        return work()
    except InputError as error:
        sentence = str(error)
    assert is_sentence(sentence)
    return sentence


@given(st.sampled_from(SUFFIXES), st.sampled_from(BEGINNINGS), st.binary(max_size=200))
def test_any_bytes_as_a_table(folder, suffix, beginning, content):
    path = folder / f"any{suffix}"
    path.write_bytes(beginning + content)
    assert isinstance(ended(lambda: read_table(path)), (str, FileTable))


@given(st.lists(st.lists(st.text(max_size=8), min_size=1, max_size=4), min_size=1, max_size=6), st.sampled_from(",;\t"))
def test_any_cells_as_a_table(folder, cells, delimiter):
    path = folder / "cells.csv"
    path.write_text("\n".join(delimiter.join(row) for row in cells), encoding="utf-8")
    assert isinstance(ended(lambda: read_table(path)), (str, FileTable))


@given(st.binary(max_size=200))
def test_any_bytes_as_a_model(folder, content):
    path = folder / "any.isopleth"
    path.write_bytes(b"PK\x03\x04" + content)
    assert isinstance(ended(lambda: isopleth.load(path)), str)


@given(st.binary(max_size=200))
def test_any_bytes_on_standard_input(content):
    like = FileTable.of_array(np.zeros((2, 2)), ["a", "b"], Path("reference"))
    batches = ended(lambda: list(RowStream(like).batches(io.BytesIO(b"a,b\n1,2\n" + content))))
    assert isinstance(batches, str) or batches[0][0].shape[1] == 2


def test_some_malformed_cases():
    tally = malformed.campaign(40, seed=11)
    assert tally.defects == []
    assert sum(tally.counts.values()) == 40
    assert any("result" in name for name in tally.counts)
    assert any("one sentence" in name for name in tally.counts)


def test_some_tampered_models():
    tally = tampered.campaign(60, seed=11)
    assert tally.defects == []
    assert any("refused" in name for name in tally.counts)
    assert any("loaded" in name for name in tally.counts)


@pytest.mark.slow
def test_all_malformed_cases():
    assert malformed.campaign(COUNTS["malformed"], seed=1).defects == []


@pytest.mark.slow
def test_all_tampered_models():
    assert tampered.campaign(COUNTS["tampered"], seed=1).defects == []


class TestTally:
    """The judge himself: what must not be does count as a defect."""

    @pytest.mark.parametrize(
        "error", [TypeError("x"), MissingExtraError("two\nlines."), InputError("no end"), MemoryError()]
    )
    def test_defects(self, error):
        tally = Tally()

        def fail():
            raise error

        assert tried(tally, "kind", "case", fail) is None
        assert len(tally.defects) == 1
        assert tally.counts == {"kind: DEFECT": 1}
        assert tally.lines()[-1] == tally.defects[0]

    def test_ends_that_are_right(self):
        tally = Tally()

        def refuse():
            raise InputError("one sentence.")

        tried(tally, "kind", "case", refuse)
        assert tried(tally, "kind", "case", lambda: 3) == 3
        assert tally.defects == []
        assert tally.counts == {"kind: one sentence": 1, "kind: result": 1}

    @pytest.mark.parametrize(
        ("code", "said", "right"),
        [
            (0, [], True),
            (3, ["isopleth: 24 rows"], True),
            (2, ["isopleth: 24 rows", "isopleth: one sentence."], True),
            (2, ["isopleth: no end"], False),
            (2, [], False),
            (0, ["Traceback"], False),
            (1, ["isopleth: one sentence."], False),
        ],
    )
    def test_ends_of_processes(self, code, said, right):
        assert (wrong_end(code, said) == "") == right

    def test_code_of_a_file_that_runs_is_noticed(self, tmp_path, monkeypatch):
        path = tmp_path / "model"
        path.write_bytes(b"")
        monkeypatch.setattr(isopleth, "load", lambda _: (tmp_path / "made").mkdir())
        monkeypatch.setattr(tampered, "changed", lambda *_: b"")
        assert "CodeRanError" in tampered.campaign(1).defects[0]
