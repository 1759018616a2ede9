"""Encodings of texts, packed files and standard input."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pyarrow as pa
import pytest

from files.table_files import CELLS, TEXT, cells, refused, written
from isopleth import read_table
from isopleth.files import source
from isopleth.files.stream import FileRows

pytestmark = pytest.mark.filterwarnings("ignore::isopleth.DataWarning")


class TestEncodings:
    CONTENT = "stadt,n\n" + "".join(
        f"{name},{i}\n" for i, name in enumerate(["Köln", "Düsseldorf", "Größenwahn", "Äpfel"] * 5)
    )

    @pytest.mark.parametrize("name", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
    def test_they_are_named_or_guessed(self, tmp_path, name):
        path = written(tmp_path, self.CONTENT.encode(name))
        for encoding in (name, "auto"):
            assert cells(read_table(path, encoding=encoding))["stadt"][:3] == ["Köln", "Düsseldorf", "Größenwahn"]

    def test_the_message_names_one_that_fits(self, tmp_path):
        path = written(tmp_path, self.CONTENT.encode("cp1252"))
        error = refused(path)
        assert error.message.hint.settings["encoding"] == "cp1252"  # cp1250 fits as well, and is less usual


class TestPacked:
    @pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zst"])
    def test_it_is_unpacked_up_to_a_limit(self, tmp_path, packing):
        packs = {
            "gz": gzip.compress,
            "bz2": bz2.compress,
            "xz": lzma.compress,
            "zst": lambda b: pa.compress(b, "zstd", asbytes=True),
        }
        path = written(tmp_path, packs[packing](TEXT.encode()), f"t.csv.{packing}")
        assert cells(read_table(path)) == CELLS
        rows = FileRows(written(tmp_path, packs[packing](b"a,b\n1,2\n3,4\n5,6\n"), f"n.csv.{packing}"))
        assert [table.numbers().tolist() for table in rows.tables(2, 1)] == [[[3, 4], [5, 6]]]
        error = refused(path, max_unpacked=50)
        assert error.parameter == "max_unpacked"
        assert "t.csv" in str(error)

    def test_messages_name_the_packed_file(self, tmp_path):
        path = written(tmp_path, gzip.compress(b"a,b\n1,2\n3\n"), "t.csv.gz")
        assert str(refused(path)).startswith(f"{path}, line 3: 1 cell")
        assert "damaged or cut short" in str(refused(written(tmp_path, gzip.compress(TEXT.encode())[:-9], "t.csv.gz")))
        assert "its content is not" in str(refused(written(tmp_path, TEXT, "t.csv.gz")))

    def test_standard_input(self, monkeypatch):
        buffer = io.BytesIO()
        np.save(buffer, np.eye(3))
        contents = [TEXT.encode(), gzip.compress(TEXT.encode()), buffer.getvalue(), b'{"a": 1}\n{"a": 2}\n{"a": 4}\n']
        for content in contents:
            monkeypatch.setattr(source, "_read", [])
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
            assert len(read_table("-")) == len(read_table("-")) == 3  # a second time, from what is kept
        monkeypatch.setattr(source, "_read", [])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n3\n")))
        assert str(refused("-")).startswith("standard input, line 3")
