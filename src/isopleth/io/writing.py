"""Writing tables of results."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from io import TextIOWrapper
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


def check_table_target(path: str | os.PathLike[str]) -> None:
    """Find out before the work whether :func:`write_table` will be able to write `path`.

    Raises
    ------
    InputError, MissingExtraError
        As :func:`write_table`.
    """
    if check_suffix(path, TABLE_SUFFIXES) == ".parquet":
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
    with atomic_write(path) as file:
        if check_suffix(path, TABLE_SUFFIXES) == ".parquet":
            _write_parquet(file, columns)
        else:
            _write_csv(file, columns)


def _write_csv(file: IO[bytes], columns: Mapping[str, np.ndarray]) -> None:
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    text.detach()  # a wrapper that is collected would close the file under the one who opened it


def _write_parquet(file: IO[bytes], columns: Mapping[str, np.ndarray]) -> None:
    arrow = require("pyarrow", "parquet", "Writing Parquet")
    require("pyarrow.parquet", "parquet", "Writing Parquet").write_table(arrow.table(dict(columns)), file)
