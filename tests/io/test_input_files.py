"""Files are refused before any work on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from isopleth import InputError
from isopleth.io.input_files import check_source


def test_what_cannot_be_read_is_refused_and_standard_input_is_not(tmp_path):
    (tmp_path / "rows.csv").write_text("a\n1\n")
    assert check_source(tmp_path / "rows.csv") == tmp_path / "rows.csv"
    assert check_source("-") == Path("-")
    with pytest.raises(InputError, match="does not exist"):
        check_source("-", "model")
    for what in ("file", "files", "model"):
        with pytest.raises(InputError, match=r"none\.csv does not exist"):
            check_source(tmp_path / "none.csv", what)
        with pytest.raises(InputError, match="is a folder"):
            check_source(tmp_path, what)


def test_a_pattern_stands_for_many_files_only(tmp_path):
    pattern = tmp_path / "part*.csv"
    assert check_source(pattern, "files") == pattern
    with pytest.raises(InputError, match="name one file"):
        check_source(pattern)
