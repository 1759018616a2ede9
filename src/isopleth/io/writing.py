"""Writing tables of results."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np

from isopleth.errors import InputError, require
from isopleth.io.atomic import atomic_write, check_target

TABLE_SUFFIXES = (".csv", ".parquet")


def check_suffix(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> str:
    """Suffix of `path` in small letters, if it is one of `suffixes`.

    Raises
    ------
    InputError
        If it is not.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        raise InputError(
            f"{path}: the name ends in none of {', '.join(suffixes)}, which decides the format; choose one."
        )
    return suffix


def check_table_target(path: str | os.PathLike[str], suffixes: tuple[str, ...] = TABLE_SUFFIXES) -> None:
    """Find out before the work whether :func:`write_table` will be able to write `path`.

    Parameters
    ----------
    path : path-like
        The file.
    suffixes : tuple of str
        What its name may end in.

    Raises
    ------
    InputError, MissingExtraError
        As :func:`write_table`.
    """
    if check_suffix(path, suffixes) == ".parquet":
        require("pyarrow.parquet", "parquet", "Writing Parquet")
    check_target(path)


def write_table(path: str | os.PathLike[str], columns: Mapping[str, np.ndarray]) -> None:
    """Write named columns to a .csv or .parquet file, whole or not at all.

    Parameters
    ----------
    path : path-like
        The file; the suffix decides the format.
    columns : mapping of str to ndarray of shape (n,)
        Numbers; in text they are written so that reading gives the same ones.

    Raises
    ------
    InputError
        If the suffix is neither, or the file cannot be written.
    MissingExtraError
        If Parquet is asked for and pyarrow is not installed.
    """
    check_table_target(path)
    write_blocks(path, iter([columns]))


def write_blocks(path: str | os.PathLike[str], blocks: Iterator[Mapping[str, np.ndarray]]) -> None:
    """Write named columns of which some rows come at a time, whole or not at all.

    Parameters
    ----------
    path : path-like
        A .csv or .parquet file.
    blocks : iterator of mapping of str to ndarray
        The rows, at least one block of them; all blocks have the same columns.

    Raises
    ------
    InputError, MissingExtraError
        As :func:`write_table`.
    """
    write = _write_parquet if check_suffix(path, TABLE_SUFFIXES) == ".parquet" else _write_csv
    with atomic_write(path) as file:
        write(file, blocks)


def write_array(path: str | os.PathLike[str], shape: tuple[int, int], blocks: Iterator[np.ndarray]) -> None:
    """Write a float64 array of which some rows come at a time to an .npy file, whole or not at all.

    Parameters
    ----------
    path : path-like
        The file.
    shape : tuple of int
        Rows and columns.
    blocks : iterator of ndarray of shape (n, columns)
        The rows.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with atomic_write(path) as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype="<f8").tobytes())


def _write_csv(file: IO[bytes], blocks: Iterator[Mapping[str, np.ndarray]]) -> None:
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    for number, columns in enumerate(blocks):
        if not number:
            writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    text.detach()  # a wrapper that is collected would close the file under the one who opened it


def _write_parquet(file: IO[bytes], blocks: Iterator[Mapping[str, np.ndarray]]) -> None:
    arrow = require("pyarrow", "parquet", "Writing Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Writing Parquet")
    tables = (arrow.table(dict(columns)) for columns in blocks)
    first = next(tables)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)
