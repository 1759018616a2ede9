"""Read a table in any format, in one pass, with columns of all kinds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isopleth.core.errors import Hint, InputError, Message, one_of, other_names, quoted, warn_user
from isopleth.files import readers
from isopleth.files.delimited import (
    Dialect,
    Text,
    counts_columns,
    kind_of,
    recognised,
)
from isopleth.files.file_table import FileTable, refuse_odd_cells, refuse_other_kinds
from isopleth.files.readers import Columns, mapped, parquet_batches, parquet_shape, table_of_array
from isopleth.files.source import (
    PACKED_SUFFIXES,
    Source,
    as_utf8,
    check_beginning,
    opened,
    positions,
    refuse_half_characters,
    refuse_unknown,
    renamed,
)
from isopleth.files.typed_columns import ParseOptions, TypedColumns, typed_columns
from isopleth.files.workbook import read_workbook
from isopleth.io.input_files import names_of_files
from isopleth.tables.cells import MISSING_NUMBERS, MISSING_WORDS, NO_WORD
from isopleth.tables.numerals import Numerals
from isopleth.tables.schema import ColumnChoices, Schema

# First bytes and reader of each format but text, by suffix.
READERS = {**readers.READERS, ".xlsx": ((b"PK\x03\x04",), read_workbook)}
# Delimiters of text files by suffix; None means that it is found from the text.
_DELIMITERS = {".csv": None, ".txt": None, ".tsv": "\t"}
# Rows of a file larger than memory by which the kinds of its columns are decided.
FIRST_ROWS = 100_000


@dataclass(frozen=True)
class Reading:
    """Parameters of :func:`read_table`, which describes them."""

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    categorical: Sequence[str] = ()
    numeric: Sequence[str] = ()
    time_columns: Sequence[str] = ()
    identifiers: Sequence[str] = ()
    keep_identifiers: bool = False
    labels: Sequence[str] = ()
    missing: Iterable[str] | None = None
    bad_cells: str = "missing"
    decimal: str | None = None
    encoding: str | None = None
    schema: Schema | None = None
    max_unpacked: int | None = None
    rename: Mapping[str | int, str] | None = None
    written_as_words: Sequence[str] = ()  # columns whose text is words, since it holds codes in another table
    rename_each: bool = True  # whether every column of `rename` has to be in the table, and not in another one
    sheet: str | int | None = None
    detection_limits: Mapping[str, float] | None = None

    @property
    def said_missing(self) -> frozenset[str] | None:
        """Words that the user, or the schema, says mean a missing cell, with the empty cell; None if nothing was said."""
        if self.missing is None:
            return None if self.schema is None else self.schema.missing
        return frozenset({"", *self.missing})

    @property
    def choices(self) -> ColumnChoices:
        """Kinds that are asked for by name of a column."""
        lists = {name: tuple(getattr(self, name)) for name in ColumnChoices._LISTS}
        keep = self.keep_identifiers or self.columns is not None
        return ColumnChoices(**lists, keep_identifiers=keep, missing=self.said_missing)

    def of_schema(self, schema: Schema) -> Reading:
        """Return how the columns of a schema are read; what was said of columns was for those of another table."""
        names = (
            "columns",
            "missing",
            "bad_cells",
            "decimal",
            "encoding",
            "max_unpacked",
            "rename",
            "rename_each",
            "sheet",
            "detection_limits",
        )
        kept = {name: getattr(self, name) for name in names}
        return Reading(**kept, schema=schema)


def read_table(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    time_columns: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    keep_identifiers: bool = False,
    labels: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    bad_cells: Literal["missing", "refuse"] = "missing",
    decimal: str | None = None,
    encoding: str | None = None,
    schema: Schema | None = None,
    min_rows: int = 1,
    max_unpacked: int | None = None,
    rename: Mapping[str | int, str] | None = None,
    sheet: str | int | None = None,
    detection_limits: Mapping[str, float] | None = None,
    warn: bool = True,
) -> FileTable:
    """Read a table with columns of all kinds: numbers, words, truth values, times and missing cells.

    The suffix decides the format: .csv and .txt (cells between tabs, semicolons, bars, commas or blanks; a first line without
    numbers is the header, and lines that begin with # above it are comments), .tsv, .jsonl (one object a line), .parquet,
    .feather and .arrow, .xlsx (one sheet), .npy, and .npz (its array ``X``, or its only two-dimensional one). A further
    suffix .gz, .bz2, .xz or .zst says that the file is compressed. The path ``-`` is standard input. The file is opened once.

    A column holds numbers, times or truth values if nearly all cells that are not missing (four in five) are so, times in one
    format; the other cells are named. Decimal commas and signs between groups of three digits are recognised by the first lines,
    and so are brackets, currencies and units that do not change within a column. Columns of identifiers and of free text are
    not used. What was decided is in :attr:`FileTable.schema`, and a fit to the table honours it.

    Parameters
    ----------
    path : path-like
        The file.
    columns : sequence of str, optional
        Columns to read, in this order; all by default. Files without names have ``x1``, ``x2``, ... Columns that are asked for
        by name are used even if they look like identifiers.
    exclude : sequence of str
        Columns that are not read.
    categorical, numeric, time_columns : sequence of str
        Columns of these kinds, whatever values they hold.
    identifiers : sequence of str
        Columns to leave out since they name the rows.
    keep_identifiers : bool, default=False
        Whether columns that look like identifiers are used.
    labels : sequence of str
        Columns with the class or group of each row: they are kept apart as they are written, in :attr:`FileTable.labels`.
    missing : sequence of str, optional
        Words that mean a missing cell, besides the empty cell; by default NA, N/A, NaN, null, ? and a few others. A number, such
        as "-999", means every cell of that value.
    bad_cells : {"missing", "refuse"}, default="missing"
        What becomes of cells that are not of the kind of their column, such as "46,3O" among numbers or 2021-02-30 among dates:
        they count as missing, and a warning and :attr:`FileTable.odd` name them; or the table is refused with a sentence that
        names them. Cells that say a limit, such as "<0.5", are intervals and never refused.
    decimal : {".", ","}, optional
        Decimal sign of text; recognised by default.
    encoding : str, optional
        Encoding of text, such as "latin-1" or "cp1252"; "auto" guesses it. By default text is UTF-8, or UTF-16 with a mark.
    schema : Schema, optional
        Read the columns of this schema, as what they are there: that of a table to which a model was fitted.
    min_rows : int, default=1
        Fewer rows than this are refused.
    max_unpacked : int, optional
        Bytes that a compressed file may have when it is unpacked, and that a table in a workbook, an archive or JSONL may take;
        1 GiB by default.
    rename : mapping of str or int to str, optional
        Other names of columns, by their names, or where several have one name by their numbers, counted from 1.
    sheet : str or int, optional
        Sheet of a workbook, by its name or its number among those that are visible, counted from 1; the first by default.
    detection_limits : mapping of str to float, optional
        Limits by column for cells that say only that nothing was detected (ND, BDL, LOD, "n.d." and the like): their number is
        below the limit. Without it the limit is that of the other cells of the column, such as "<0.5", if there is one.
    warn : bool, default=True
        Whether warnings say which columns are left out and what was recognised. It is in :attr:`FileTable.notes` in any case.

    Returns
    -------
    FileTable

    Raises
    ------
    InputError
        If the file cannot be read as a table, or a cell is not of the kind of its column. The message says what is wrong, where,
        and what to do.
    MissingExtraError
        If the format needs a package that is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import isopleth
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n5,x\\n")
    >>> table = isopleth.read_table(path, columns=["a"])
    >>> table, table.numbers().tolist()
    (<Table ...points.csv: 3 rows: 1 number>, [[1.0], [3.0], [5.0]])
    >>> folder.cleanup()
    """
    how = Reading(
        columns=columns,
        exclude=exclude,
        categorical=categorical,
        numeric=numeric,
        time_columns=time_columns,
        identifiers=identifiers,
        keep_identifiers=keep_identifiers,
        labels=labels,
        missing=missing,
        bad_cells=one_of("bad_cells", bad_cells, ("missing", "refuse")),
        decimal=decimal,
        encoding=encoding,
        schema=schema,
        max_unpacked=max_unpacked,
        rename=rename,
        sheet=sheet,
        detection_limits=detection_limits,
    )
    table = Reader(path, how).read(min_rows)
    if warn:
        left_out = [f"{str(name)!r} ({why})" for name, why in table.schema.left_out.items() if name not in identifiers]
        notes = [Message(f"columns left out: {', '.join(left_out)}.", source=str(table.source))]
        for note in [*notes[: bool(left_out) and schema is None], *table.notes]:
            warn_user(note)
    return table


def _concatenated(tables: Sequence[Any]) -> Any:
    """Return the rows of Arrow tables one after another; numbers of several types get the wider one."""
    names = tables[0].column_names
    return pa.concat_tables([table.rename_columns(names) for table in tables], promote_options="permissive")


class Reader:
    """Open file of a table, which is read as a whole or in chunks."""

    def __init__(self, path: str | os.PathLike[str], how: Reading = Reading()) -> None:
        source = opened(path, how.max_unpacked)
        self.how = how
        if source.suffix not in _DELIMITERS and source.suffix not in READERS:
            known = f"{', '.join([*_DELIMITERS, *READERS])} (also {', '.join(PACKED_SUFFIXES)})"
            raise InputError(f"{source}: {source.suffix!r} files are not read; use one of {known}.")
        self.text: Text | None = None
        if source.suffix in _DELIMITERS:
            source = as_utf8(source, how.encoding) if source.size else source
            check_beginning(source, ())
            self.text = Text(source, recognised(source, _DELIMITERS[source.suffix], how.decimal))
        else:
            check_beginning(source, READERS[source.suffix][0])
        self.source: Source = source
        self._whole: Columns | None = None
        self._rows = 0  # of formats that are read in pieces and know their number
        if self.text is not None:
            offered, self.named = self.text.dialect.names, self.text.dialect.named
        elif source.suffix == ".npy":
            self._rows, width = mapped(source).shape
            offered, self.named = [f"x{j + 1}" for j in range(width)], False
        elif source.suffix == ".parquet":
            (self._rows, offered), self.named = parquet_shape(source), True
        else:
            self._whole = self._read_whole()
            offered, self.named = list(self._whole.data.column_names), self._whole.named
        if how.sheet is not None and source.suffix != ".xlsx":
            raise InputError(f"{source} is no workbook and has no sheets; leave {{parameter}} out.", parameter="sheet")
        offered = renamed(source, offered, how.rename or {}, each=how.rename_each)
        refuse_half_characters(f"{source}: the column name", offered)
        refuse_half_characters("{parameter}: the word", list(how.missing or ()), "missing")
        # Names as they stand in the file, which may be empty there.
        first = self.text.dialect.first if self.text is not None and self.named else offered
        names = offered if self.text is None else self.text.dialect.names
        self._header = [old if name == new else new for old, name, new in zip(first, names, offered, strict=True)]
        refuse_unknown(self.source, list(how.labels), offered, "labels")
        labels = [offered.index(name) for name in how.labels]
        self.where = [j for j in self._chosen(offered) if j not in labels]
        self.names = [offered[j] for j in self.where]
        self.where += labels
        # By the names of the file, which are matched by position where it has none.
        own = {} if how.schema is None else how.schema.day_first
        theirs = [] if how.schema is None else map(str, how.schema.names)
        self._day_first = {mine: own[name] for mine, name in zip(self.names, theirs, strict=False) if name in own}
        self._detection_limits = self._limits_of_words(offered)

    def _limits_of_words(self, offered: list[str]) -> dict[str, float]:
        """Return what words such as ND say: the limits of the user, and the only one of each column of the schema."""
        schema = self.how.schema
        own, theirs = ({}, []) if schema is None else (schema.detection_limits, map(str, schema.names))
        known = {mine: own[name] for mine, name in zip(self.names, theirs, strict=False) if name in own}
        for name, value in (self.how.detection_limits or {}).items():
            refuse_unknown(self.source, [name], offered, "detection_limits")
            if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(value):
                text = "{parameter} has {value} for {column}; expected a number."
                raise InputError(text, parameter="detection_limits", column=name, value=value)
            known[name] = float(value)
        return known

    def _read_whole(self) -> Columns:
        """Read a file that is not read in pieces."""
        if self.source.suffix == ".xlsx":
            return read_workbook(self.source, self.how.sheet)
        return READERS[self.source.suffix][1](self.source)

    def _chosen(self, offered: list[str]) -> list[int]:
        """Return the positions of the columns that are to be read."""
        how, schema = self.how, self.how.schema
        if schema is None:
            return positions(self.source, offered, how.columns, how.exclude)
        if schema.named and self.named:
            needed = [str(name) for name in schema.names]
            refuse_mismatch(
                self.source, needed, offered if how.columns is None else how.columns, how.columns is not None
            )
            return positions(self.source, offered, needed, ())
        where = positions(self.source, offered, how.columns, how.exclude)
        names = [str(name) for name in schema.names]
        if len(where) != len(names):
            count = f"{len(where)} column{'s' if len(where) != 1 else ''}"
            these = f"the {len(names)} columns" if len(names) > 1 else "the one column"
            # Of too few columns there is nothing to choose.
            hint = f"choose {these} with {{columns}}" if len(where) > len(names) else f"give a table with {these}"
            text = f"{self.source}: {count} where the model was fitted on {len(names)}"
            raise InputError(text, parameter="columns", hint=Hint(hint, columns=...))
        return where

    @property
    def dialect(self) -> Dialect | None:
        """Way in which text is cut into cells; None for other formats."""
        return None if self.text is None else self.text.dialect

    def read(self, min_rows: int = 1, *, cells: bool = False, more: Sequence[Reader] = ()) -> FileTable:
        """Return the whole table, whose cells are of the kinds of a schema that was given; `cells` keeps them as they stand.

        Rows of `more` files follow, and all of them decide what each column is.
        """
        columns = self._followed_by(self._all(None), more) if more else self._all(None)
        table = self._table(columns, min_rows)
        if self.how.bad_cells == "refuse":
            refuse_odd_cells(table)
        refuse_other_kinds(table)
        if self.how.schema is not None:
            table.encoded()  # which names a cell that is not of the kind of its column
        if not cells:
            return table
        as_they_stand = columns.data if columns.cells is None else columns.cells
        width = len(self.names)  # labels come behind
        of_text = self.text is not None or columns.cells is not None
        header = tuple(self._header[j] for j in self.where[:width]) if of_text else None
        return replace(
            table, cells=as_they_stand.select(range(width)).rename_columns(table.data.column_names), header=header
        )

    def _followed_by(self, columns: Columns, more: Sequence[Reader]) -> Columns:
        """Return columns with those of more files behind them, matched by name; refuse files that are not of one table."""
        readers, parts = [self, *more], [columns]
        for other in more:
            self._refuse_unlike(other)
            found = other._all(None)
            width = len(self.names)  # labels come behind
            order = [other.names.index(name) for name in self.names] if self.named else list(range(width))
            data = found.data.select([*order, *range(width, found.data.num_columns)])
            data = data.rename_columns(columns.data.column_names)
            parts.append(replace(found, data=data, cells=None if found.cells is None else found.cells.select(order)))
        try:
            data = _concatenated([part.data for part in parts])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(
                f"{self.source.shown} and {len(more)} other files have columns of other types ({error}); write them alike."
            ) from None
        names = np.array(names_of_files([reader.source.shown for reader in readers]), dtype=object)
        in_lines = all(part.lines is not None for part in parts)
        return replace(
            columns,
            data=data,
            lines=np.concatenate([part.lines for part in parts]) if in_lines else None,
            cells=None if columns.cells is None else _concatenated([part.cells for part in parts]),
            files=np.repeat(names, [len(part.data) for part in parts]),
        )

    def _refuse_unlike(self, other: Reader) -> None:
        """Refuse a file that is not of one table with this one: other columns, another format or other decimal signs."""
        how = "give all files of a pattern the same columns and one format, or name fewer of them"
        if self.named != other.named or (self.text is None) != (other.text is None):
            what = "has no names of columns" if self.named and not other.named else "is of another format"
            raise InputError(f"{other.source.shown} {what} than {self.source.shown}; {how}.")
        lost = [name for name in self.names if name not in other.names]
        new = [name for name in other.names if name not in self.names]
        if lost or new or len(self.where) != len(other.where):
            raise InputError(f"{other.source.shown} {other_names(lost, new)}, unlike {self.source.shown}; {how}.")
        if self.text is not None and other.text is not None:
            mine, theirs = (text.dialect.numerals for text in (self.text, other.text))
            if mine != theirs:
                raise InputError(
                    f"{other.source.shown} is written with another decimal sign than {self.source.shown}; write them alike.",
                    hint=Hint("name it with {decimal}", decimal=...),
                )

    def first(self) -> FileTable:
        """Return the first rows."""
        return self._table(self._all(FIRST_ROWS), 1)

    def _all(self, most: int | None) -> Columns:
        """Return the columns of the file, or their first rows."""
        if self.text is not None:
            tables, lines, count = [], [], 0
            for table, more in self.text.tables(self.where):
                tables.append(table)
                lines.append(more)
                count += len(more)
                if most is not None and count >= most:
                    break
            if not count:
                raise InputError(f"{self.source} has a header but no rows; a table is needed.")
            return Columns(pa.concat_tables(tables).slice(0, most), self.named, np.concatenate(lines)[:most])
        if self._whole is None:
            if most is not None and self._rows > most:
                return next(self._joined(self._pieces(most, 0), most))[0]
            self._whole = self._read_whole()
        whole = self._whole
        cells = None if whole.cells is None else whole.cells.select(self.where).slice(0, most)
        lines_ = None if whole.lines is None else whole.lines[:most]
        return Columns(whole.data.select(self.where).slice(0, most), self.named, lines_, cells=cells)

    def _table(self, columns: Columns, min_rows: int) -> FileTable:
        rows, how = len(columns.data), self.how
        if not self.names and how.labels:
            raise InputError(
                f"{self.source} has no column besides {quoted(list(how.labels))}; there is nothing to learn from."
            )
        if not self.names:
            raise InputError(f"{self.source} has no columns; a table is needed.")
        if rows < max(min_rows, 1):
            has = "only one row" if rows == 1 else f"{rows or 'no'} rows"
            raise InputError(
                f"{self.source} has {has}; at least {max(min_rows, 1)} {'are' if min_rows > 1 else 'is'} needed."
            )
        self._settle_missing(columns.data)
        how = self.how
        labels = {name: self._labels(columns, name) for name in how.labels}
        wanted = dict.fromkeys(how.written_as_words, "categorical")
        wanted |= {name: kind for name in self.names if (kind := how.choices.kind(name)) is not None}
        if how.schema is not None:
            kinds = zip(self.names, how.schema.columns, strict=True)
            wanted = {name: kind for name, column in kinds if (kind := column.wanted) is not None}
        read, named = self._typed(columns, wanted), self.named
        unnamed = [name for name, j in zip(self.names, self.where, strict=False) if not str(self._header[j]).strip()]
        data, odd = read.data, read.odd
        written = tuple(name for name in self._written if name not in how.written_as_words)
        choices = replace(how.choices, written=written, unnamed=tuple(unnamed))
        if how.schema is not None:  # columns of a file without names are matched by position
            theirs = [str(name) for name in how.schema.names]
            data, named = data.rename_columns(theirs), how.schema.named
            odd = odd.of_columns(dict(zip(self.names, theirs, strict=True)))
        schema = how.schema or Schema.of_numbers(self.names, True)
        of_file = (columns.lines, self._notes(), choices, labels, self.dialect)
        table = FileTable(data, schema, self.source.shown, named, *of_file, odd=odd, files=columns.files)
        notes = [*self._notes_of_workbook(), *read.notes, *odd.notes(table.place)]
        said = [note.located(self.source, table.place) for note in notes]
        table = replace(table, notes=(*table.notes, *said))
        if how.schema is not None:
            return table
        try:
            schema = Schema.of(data, typed=True, odd=(odd,), choices=choices)
            columns_ = (replace(c, day_first=self._day_first.get(str(c.name))) for c in schema.columns)
            schema = replace(schema, columns=tuple(columns_))
        except InputError as error:
            raise error.located(self.source, table.place) from None
        notes = [note.located(self.source, table.place) for note in schema.notes]
        return replace(table, schema=schema, notes=(*table.notes, *notes))

    def _settle_missing(self, data: Any) -> None:
        """Take what was typed for `missing` as one word if there is such a cell, and as a list of words otherwise."""
        typed_text = getattr(self.how.missing, "typed", None)
        if typed_text is None:
            return
        texts = [cells for cells in data.columns if pa.types.is_string(cells.type)]
        whole = any(pc.any(pc.equal(pc.utf8_trim_whitespace(cells), typed_text)).as_py() for cells in texts)
        self.how = replace(self.how, missing=[typed_text] if whole else list(self.how.missing or ()))

    def _labels(self, columns: Columns, name: str) -> np.ndarray:
        """Return a column as it is written: words of text, numbers or words of other formats."""
        cells = columns.data.column(len(self.names) + list(self.how.labels).index(name))
        values = cells.to_pylist()
        if self.text is not None:
            values = [cell.strip() for cell in values]
            kinds = {kind_of(cell) for cell in values}
            # Among words, "none" may be a class; among numbers it stands for a missing one.
            missing = [cell == "" if "text" in kinds else kind_of(cell) == "missing" for cell in values]
        else:
            missing = [cell is None or cell != cell for cell in values]
        if any(missing):
            row = missing.index(True)
            place = f"row {row + 1}" if columns.lines is None else f"line {columns.lines[row]}"
            raise InputError(
                f"{self.source}, {place}: no class in {{column}}",
                column=name,
                row=row,
                hint="fill the cell or drop the row",
            )
        return np.array(values)

    def _notes(self) -> tuple[Message, ...]:
        notes = []
        if self.text is not None:
            dialect = self.text.dialect
            if dialect.numerals.decimal == ",":
                notes.append("the comma is taken as the decimal sign.")
            elif dialect.numerals.grouped:
                notes.append("signs between groups of three digits are left out of numbers.")
            if dialect.named and counts_columns(dialect.first):
                notes.append("the first line counts the columns from 0, so it is taken as a header and not as a row.")
            if dialect.commented:
                notes.append("lines that begin with # are taken as comments.")
        return tuple(Message(note, source=str(self.source)) for note in notes)

    def _notes_of_workbook(self) -> list[Message]:
        """Return what is said of the sheet and of columns that are read."""
        notes = () if self._whole is None else self._whole.notes
        return [note for note in notes if note.column is None or note.column in self.names]

    @property
    def _written(self) -> tuple[str, ...]:
        """Columns that hold everything as words: all of a text, those of several types of other formats."""
        mixed = () if self._whole is None else self._whole.mixed
        places = zip(self.names, self.where, strict=False)  # labels come behind
        return tuple(name for name, j in places if self.text is not None or j in mixed)

    def _typed(self, columns: Columns, wanted: Mapping[str, str]) -> TypedColumns:
        """Return columns of text as numbers, times and truth values where they are."""
        numerals, missing = Numerals() if self.text is None else self.text.dialect.numerals, self.how.said_missing
        placeholders = MISSING_NUMBERS if missing is None else frozenset[str]()
        if missing is None:  # files of typed cells have missing cells of their own
            missing = MISSING_WORDS if self.text is not None or self.source.suffix == ".xlsx" else NO_WORD
        way = ParseOptions(missing, placeholders, numerals, self._day_first, self._detection_limits)
        return typed_columns(self.source, columns, self.names, wanted, self._written, way)

    def chunks(self, rows: int, like: FileTable, start: int = 0) -> Iterator[FileTable]:
        """Yield tables of `rows` rows with the schema of `like`, from a row on; some formats are read as a whole."""
        for columns, before in self._joined(self._pieces(rows, start), rows):
            yield self._chunk(columns, like, start + before)

    def _joined(self, pieces: Iterator[Columns], rows: int) -> Iterator[tuple[Columns, int]]:
        """Yield pieces of `rows` rows, and how many rows are before each."""
        held, lines, before = None, np.empty(0, dtype=np.int64), 0

        def first(data: Any) -> tuple[Columns, int]:
            return Columns(data, self.named, lines[:rows] if len(lines) else None), before

        for piece in pieces:
            held = piece.data if held is None else pa.concat_tables([held, piece.data])
            if piece.lines is not None:
                lines = np.concatenate([lines, piece.lines])
            while len(held) >= rows:
                yield first(held.slice(0, rows))
                held, lines, before = held.slice(rows), lines[rows:], before + rows
        if held is not None and len(held):
            yield first(held)

    def share_of(self, rows: int) -> float:
        """Return the share of the file that rows at its beginning take; 0 where that is not known."""
        if self.text is not None:
            return self.text.places[-1].byte / self.source.size if self.text.places else 0.0
        return rows / self._rows if self._rows else 0.0

    def _pieces(self, rows: int, start: int) -> Iterator[Columns]:
        if self.text is not None:
            for table, lines in self.text.tables(self.where, start):
                yield Columns(table, self.named, lines)
        elif self.source.suffix == ".npy":
            for first in range(start, len(mapped(self.source)), rows):
                # A new memory map for each block, because the pages that a map has read count as memory of the process.
                yield Columns(
                    table_of_array(np.asarray(mapped(self.source)[first : first + rows])).select(self.where), False
                )
        else:
            parquet = self.source.suffix == ".parquet"
            tables = parquet_batches(self.source, rows) if parquet else [self._all(None).data]
            for table in tables:
                if start < len(table):
                    whole = table.select(self.where) if parquet else table
                    yield Columns(whole.slice(start), self.named)
                start = max(0, start - len(table))

    def _chunk(self, columns: Columns, like: FileTable, before: int) -> FileTable:
        """Return the rows of a chunk as a table with the columns of the whole file."""
        kinds = dict(zip(self.names, map(wanted_of, like.data.schema.types), strict=True))
        kinds |= dict.fromkeys(self.how.categorical, "categorical")
        read = self._typed(columns, {name: kind for name, kind in kinds.items() if kind is not None})
        odd = read.odd.of_columns(dict(zip(self.names, like.data.column_names, strict=True)))
        table = replace(like, data=read.data.rename_columns(like.data.column_names), lines=columns.lines, before=before)
        return replace(table, odd=odd)


def wanted_of(kind: Any) -> str | None:
    """Return the kind as which text is read where the first rows of its column became an Arrow type."""
    if pa.types.is_string(kind):
        return "categorical"
    if pa.types.is_temporal(kind):
        return "time"
    return "truth" if pa.types.is_boolean(kind) else None if pa.types.is_null(kind) else "numeric"


def refuse_mismatch(path: object, names: list[str], offered: Sequence[str], chosen: bool) -> None:
    """Refuse missing columns. Other columns of the file are ignored; others that were chosen by name are refused."""
    there, known = set(offered), set(names)
    missing = [name for name in names if name not in there]
    extra = [name for name in offered if name not in known]
    if not missing and not (extra and chosen):
        return
    where = "{parameter}" if chosen else str(path)
    if not missing:
        raise InputError(
            f"{where} names {quoted(extra, most=4)}, which the model was not fitted on; its columns are {quoted(names)}.",
            parameter="columns",
            column=extra[0],
        )
    if len(missing) == len(names):
        raise InputError(
            f"{where} has none of the columns that the model was fitted on, {quoted(names)}; give a table with these columns.",
            parameter="columns",
            column=missing[0],
        )
    others = f", and has {quoted(extra, most=4)}, which the model does not know" if extra else ""
    raise InputError(
        f"{where} lacks {quoted(missing)} of the columns that the model was fitted on{others}; add or rename columns.",
        parameter="columns",
        column=missing[0],
    )
