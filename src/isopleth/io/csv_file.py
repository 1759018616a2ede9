"""Tables in text: comma, semicolon or tab between the cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from isopleth.errors import InputError
from isopleth.io.csv_cells import look_at
from isopleth.io.csv_text import Lines, find_delimiter, opened, records
from isopleth.io.gaps import Gaps
from isopleth.io.header import RowNumbers, header_names, warn_of_numbered_header
from isopleth.io.raw import Block, Progress, Raw
from isopleth.io.selection import positions
from isopleth.io.text_column import Column, Labels

# Rows converted at a time: few, because rows that die young are never looked at by the garbage collector.
_FEW = 256

# Rows between the places that are remembered.
_APART = 64 * _FEW


def read_csv_names(path: Path, delimiter: str | None) -> list[str] | None:
    """Column names in the first line, or None if it holds numbers."""
    with opened(path) as lines:
        _, first = next(records(lines, delimiter or find_delimiter(lines.sample())), (0, []))
        return header_names(path, first)


def read_csv(path: Path, delimiter: str | None, columns: Sequence[str] | None, but: str | None) -> Raw:
    """Read the chosen columns of a text file; `delimiter` None means: find out."""
    with opened(path) as lines:
        begun = _Begun(path, lines, delimiter)
        where = positions(path, begun.names, columns, but)
        parsed = [Column(begun.names[j]) for j in where]
        numbers = list(_parse(path, begun.rows, len(begun.names), dict(zip(where, parsed, strict=True))))
    _refuse_no_rows(path, sum(map(len, numbers)))
    counting = RowNumbers([begun.first[j] for j in where])
    counting.add(parsed[0].values if parsed else np.empty(0))
    parsed = parsed[_left_out(path, begun, counting, columns) :]
    look_at(path, parsed, chosen=columns is not None)
    lines_of_rows = np.concatenate(numbers)
    return Raw(_stacked(parsed, len(lines_of_rows)), [column.name for column in parsed], begun.named, lines_of_rows)


def read_csv_labels(path: Path, delimiter: str | None, column: str) -> tuple[list[str], list[int]]:
    """Cells of one column as they stand there, and the line on which the row of each begins."""
    with opened(path) as lines:
        begun = _Begun(path, lines, delimiter)
        labels = Labels()
        wanted = {positions(path, begun.names, [column])[0]: labels}
        numbers = list(_parse(path, begun.rows, len(begun.names), wanted))
    return labels.cells, np.concatenate(numbers).tolist() if numbers else []


class CsvSource:
    """The chosen columns of a text file, to be read in blocks: looked through once, places of rows remembered.

    Parameters
    ----------
    path : Path
        The file.
    delimiter : str or None
        What stands between cells; None means: find out.
    columns, but
        As for :func:`isopleth.io.read_table`.
    progress : callable
        Is told the share of the file that has been looked through.

    Raises
    ------
    InputError
        For all that :func:`read_csv` refuses.
    """

    def __init__(
        self, path: Path, delimiter: str | None, columns: Sequence[str] | None, but: str | None, progress: Progress
    ) -> None:
        self._path, self.n_rows = path, 0
        with opened(path) as lines:
            begun = _Begun(path, lines, delimiter)
            where = positions(path, begun.names, columns, but)
            parsed = [Column(begun.names[j]) for j in where]
            self.gaps: Gaps | None = Gaps(len(where))
            counting = RowNumbers([begun.first[j] for j in where])
            self._places, size = [begun.place], path.stat().st_size
            for block in _blocks_parsed(path, begun, where, parsed):
                self.gaps.add(block)
                counting.add(block.values[:, 0] if where else block.values)
                self.n_rows += len(block.values)
                if self.n_rows % _APART == 0:
                    self._places.append(lines.place)
                    progress(lines.place.byte / size)
        _refuse_no_rows(path, self.n_rows)
        dropped = _left_out(path, begun, counting, columns)
        self._width, self._delimiter, self._where = len(begun.names), begun.delimiter, where[dropped:]
        look_at(path, parsed[dropped:], chosen=columns is not None)
        self.names, self.named = [column.name for column in parsed[dropped:]], begun.named

    def blocks(self, size: int, start: int = 0) -> Iterator[Block]:
        """Blocks of `size` rows from row `start` on; the last may be smaller."""
        if start >= self.n_rows:
            return
        passed = start // _APART
        with opened(self._path, self._places[passed]) as lines:
            rows = islice(records(lines, self._delimiter), start - passed * _APART, self.n_rows - passed * _APART)
            while start < self.n_rows:
                parsed = [Column(name) for name in self.names]
                wanted = dict(zip(self._where, parsed, strict=True))
                numbers = np.concatenate(
                    [*_parse(self._path, islice(rows, size), self._width, wanted), np.empty(0, dtype=np.int64)]
                )
                if not len(numbers):
                    return
                yield Block(_stacked(parsed, len(numbers)), numbers)
                start += len(numbers)


class _Begun:
    """A text file of which the first line has been read.

    `first` are its cells, `names` the names to go by, `named` whether they stand there, `rows` the records that follow and
    `place` where they begin.
    """

    def __init__(self, path: Path, lines: Lines, delimiter: str | None) -> None:
        self.place = lines.place
        self.delimiter = delimiter or find_delimiter(lines.sample())
        coming = records(lines, self.delimiter)
        try:
            line, self.first = next(coming)
        except StopIteration:
            raise InputError(f"{path} is empty; a table of numbers is needed.") from None
        found = header_names(path, self.first)
        self.named = found is not None
        self.names = found or [f"x{j + 1}" for j in range(len(self.first))]
        self.rows = coming if self.named else chain([(line, self.first)], coming)
        if self.named:
            self.place = lines.place


def _blocks_parsed(path: Path, begun: _Begun, where: list[int], columns: list[Column]) -> Iterator[Block]:
    """All rows, a few at a time, which the columns count and do not keep."""
    for numbers in _parse(path, begun.rows, len(begun.names), dict(zip(where, columns, strict=True))):
        yield Block(_stacked(columns, len(numbers)), numbers)
        for column in columns:
            column.forget()


def _parse(
    path: Path, rows: Iterator[tuple[int, list[str]]], width: int, wanted: Mapping[int, Column | Labels]
) -> Iterator[np.ndarray]:
    """Fill the wanted columns, a few rows at a time, and yield the line numbers of these."""
    while few := list(islice(rows, _FEW)):
        numbers, found = zip(*few, strict=True)
        if set(map(len, found)) != {width}:
            _refuse_ragged(path, few, width)
        cells = list(zip(*found, strict=True))
        for position, column in wanted.items():
            column.add(cells[position], numbers)
        yield np.array(numbers, dtype=np.int64)


def _stacked(columns: list[Column], rows: int) -> np.ndarray:
    return np.stack([column.values for column in columns], axis=1) if columns else np.empty((rows, 0))


def _left_out(path: Path, begun: _Begun, counting: RowNumbers, columns: Sequence[str] | None) -> int:
    """How many of the first columns are none of the data, of a file with names of which none was chosen."""
    if not begun.named:
        return 0
    warn_of_numbered_header(path, begun.first)
    return int(columns is None and counting.found(path))


def _refuse_no_rows(path: Path, rows: int) -> None:
    if not rows:
        raise InputError(f"{path} has a header but no rows; a table of numbers is needed.")


def _refuse_ragged(path: Path, chunk: list[tuple[int, list[str]]], width: int) -> None:
    line, record = next((line, record) for line, record in chunk if len(record) != width)
    raise InputError(
        f"{path}, line {line}: {len(record)} cell{'s' if len(record) > 1 else ''} where the first line has {width}; "
        "correct that line."
    )
