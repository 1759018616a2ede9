"""The experiment on files, and that memory does not grow with the rows."""

from __future__ import annotations

import sys

import pytest
from experiments.files import HEADS, study

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a process")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_memory_does_not_grow_with_the_rows(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    few, many = (study(tmp_path, suffix, rows, 10, 20) for rows in (200_000, 2_000_000))
    for small, large in zip(few, many, strict=True):
        grown = float(large[HEADS.index("peak MiB")]) - float(small[HEADS.index("peak MiB")])
        assert grown < 50.0, (suffix, small, large)  # the table has 160 MB
