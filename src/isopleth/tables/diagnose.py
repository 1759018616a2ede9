"""Text that Arrow cannot read: Python's csv names the line that is wrong, or rewrites what is unusual but right."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO, TextIOWrapper
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.errors import Hint, InputError
from isopleth.tables.source import Source, likely_encoding

if TYPE_CHECKING:
    from isopleth.tables.text import Dialect, Piece, Place

_ROWS = 8192  # rows that are rewritten at a time


def refuse_encoding(source: Source, line: int) -> InputError:
    """Return the refusal of text that is not UTF-8; it names the encoding that the text has most likely."""
    likely = likely_encoding(source)
    hint = Hint(
        "read it with {encoding}, which fits, or save it as UTF-8" if likely else "name its encoding with {encoding}",
        encoding=likely or ...,
    )
    return InputError(f"{source}, line {line}: not UTF-8 text", parameter="encoding", hint=hint)


def refuse_ragged(source: Source, piece: Piece, width: int) -> None:
    """Refuse the first record that has more or fewer cells than the first line."""
    lines = (
        piece.text.decode().splitlines(keepends=True) if piece.text.isascii() else [*StringIO(piece.text.decode(), "")]
    )
    reader = csv.reader(lines, delimiter=piece.delimiter)
    for line, record in zip(piece.lines.tolist(), filter(None, reader), strict=False):
        _check_width(source, line, record, width)


def _check_width(source: Source, line: int, record: list[str], width: int) -> None:
    if len(record) != width:
        raise InputError(
            f"{source}, line {line}: {len(record)} cell{'s' if len(record) > 1 else ''} where the first line has {width}; "
            "correct that line."
        )


def rewritten(source: Source, dialect: Dialect, begin: Place) -> Iterator[Piece]:
    """Yield text with blanks after delimiters, quotes inside of words, or runs of blanks as Arrow reads it."""
    from isopleth.tables.text import Piece, Place

    source.file.seek(begin.byte)
    text = TextIOWrapper(source.file, encoding="utf-8", newline="")
    row = begin.row
    try:
        records = _records(source, text, dialect, begin.line)
        while few := list(islice(records, _ROWS)):
            out = StringIO()
            writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerows(record for _, record in few)
            row += len(few)
            lines = np.array([line for line, _ in few], dtype=np.int64)
            yield Piece(out.getvalue().encode(), ",", lines, Place(row), several_lines=True)
    except UnicodeDecodeError:
        raise refuse_encoding(source, begin.line + 1) from None
    finally:
        text.detach()  # which would close the file


def _records(source: Source, text: Any, dialect: Dialect, before: int) -> Iterator[tuple[int, list[str]]]:
    kept = (line for line in text)
    if dialect.commented:
        kept = ("\n" if line.startswith("#") else line for line in kept)
    if dialect.delimiter == " ":
        kept = (f"{line.strip()}\n" for line in kept)
    reader = csv.reader(kept, delimiter=dialect.delimiter, skipinitialspace=True, strict=True)
    line = before + 1
    try:
        for record in reader:
            if record:
                _check_width(source, line, record, len(dialect.names))
                if dialect.named and any(dialect.first) and record == dialect.first:
                    raise InputError(
                        f"{source}, line {line} repeats the header of line {dialect.place.line}; delete that line."
                    )
                yield line, record
            line = before + reader.line_num + 1
    except csv.Error as error:
        limit = csv.field_size_limit()
        if "limit" in str(error) and before + reader.line_num == line:
            raise InputError(
                f"{source}, line {line}: a cell is longer than {limit:,} characters; shorten it, or leave its column out."
            ) from None
        raise InputError(
            f"{source}, line {line}: a quoted cell is not closed properly ({error}); correct its quotes."
        ) from None
