"""NumPy files whose headers announce more data than they hold are refused before memory is allocated."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from isopleth.errors import InputError
from isopleth.io import read_table


def header(shape, descr="<f8") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


@pytest.mark.parametrize("key", ["X", "table"])
@pytest.mark.parametrize("shape", [(10**10, 3), (2**40,), (5, 2), (-1, -2)])
def test_more_than_there_is(tmp_path, key, shape):
    path = tmp_path / "table.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{key}.npy", header(shape) + bytes(64))
    with pytest.raises(InputError, match=f"array '{key}' is damaged"):
        read_table(path)


def test_a_size_that_no_packing_reaches(tmp_path):
    path = tmp_path / "table.npz"
    shape = (10**9, 2)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", header(shape) + bytes(64))
        archive.infolist()[0].file_size = len(header(shape)) + 16 * 10**9  # what its directory will say
    with pytest.raises(InputError, match="array 'X' is damaged"):
        read_table(path)


def test_members_that_are_no_arrays(tmp_path):
    path = tmp_path / "table.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X", b"words")
    with pytest.raises(InputError, match="no two-dimensional array"):
        read_table(path)
    buffer = io.BytesIO()
    np.save(buffer, np.ones((3, 2)))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("t.npy", buffer.getvalue())
    assert read_table(path).values.shape == (3, 2)
