"""Files to read: checked before the work, opened once, unpacked, transcoded to UTF-8, and recognised by name and first bytes."""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import lzma
import os
import re
import shutil
import sys
import tempfile
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from isopleth.core.errors import MANY_NAMES, Hint, InputError, listed, meant, quoted
from isopleth.io.input_files import check_source

# A file that holds more than this once it is unpacked, or needs more memory than this for being wide or sparse, is refused:
# 146 kB of .zst can hold 4.5 GB. Ordinary text, whose size is what it takes on the disk, has no limit.
MAX_UNPACKED = 2**30

_SHOWN = Path("standard input")
_PIECE = 2**20


@dataclass(frozen=True, eq=False)
class Source:
    """Open file, the name that messages give it, and the suffix that says the format, in small letters."""

    file: BinaryIO
    shown: Path
    suffix: str
    limit: int = MAX_UNPACKED
    encoding: str = "utf-8"  # that the text had before it was transcoded

    def __post_init__(self) -> None:
        weakref.finalize(self, self.file.close)  # with it and not some time later, which Python warns of

    def __str__(self) -> str:
        return str(self.shown)

    @property
    def size(self) -> int:
        """Number of bytes."""
        return os.fstat(self.file.fileno()).st_size

    @property
    def stamp(self) -> tuple[int, int]:
        """Size and time of the last change."""
        status = os.fstat(self.file.fileno())
        return status.st_size, status.st_mtime_ns

    def refuse_beyond(self, size: float, what: str) -> None:
        """Refuse a table that takes more memory than the limit."""
        if size > self.limit:
            raise InputError(
                f"{self}: {what} would take {_in_bytes(size)}, more than the limit of {_in_bytes(self.limit)}",
                parameter="max_unpacked",
                hint=Hint("raise {max_unpacked} if you trust the file", max_unpacked=...),
            )


def _in_bytes(size: float) -> str:
    return f"{size / 2**20:,.0f} MiB" if size >= 2**20 else f"{size:,.0f} bytes"


def _zstd(file: Any) -> IO[bytes]:
    import pyarrow

    return cast(IO[bytes], pyarrow.CompressedInputStream(file, "zstd"))


# Suffix of each kind of compression, its first bytes, and the function that opens such a file.
_PACKINGS: dict[str, tuple[bytes, Callable[[Any], Any]]] = {
    ".gz": (b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file)),
    ".bz2": (b"BZh", bz2.BZ2File),
    ".xz": (b"\xfd7zXZ\x00", lzma.LZMAFile),
    ".zst": (b"\x28\xb5\x2f\xfd", _zstd),
}
PACKED_SUFFIXES = tuple(_PACKINGS)

# The standard input of this process, which can be read only once.
_read: list[Source] = []


def opened(path: str | os.PathLike[str], max_unpacked: int | None = None) -> Source:
    """Open a file, or its unpacked data; ``-`` is standard input."""
    shown, limit = check_source(path), MAX_UNPACKED if max_unpacked is None else max_unpacked
    if str(shown) == "-":
        if not _read:
            _read.append(_standard_input(limit))
        return _read[0]
    try:
        file: BinaryIO = open(shown, "rb")  # noqa: SIM115 - read by whoever holds the source
    except PermissionError:
        raise InputError(f"{shown} may not be read; ask for the permission to read it.") from None
    source = Source(file, shown, shown.suffix.lower(), limit)
    if source.suffix not in _PACKINGS:
        return source
    if not _beginning(file).startswith(_PACKINGS[source.suffix][0]):
        raise InputError(f"{shown} is named {source.suffix} but its content is not; rename it or save it again.")
    return Source(_unpacked(source, source.suffix), shown, shown.with_suffix("").suffix.lower(), limit)


def _unpacked(packed: Source, packing: str) -> BinaryIO:
    """Unpack a compressed file to a temporary one."""
    import pyarrow

    try:
        with _PACKINGS[packing][1](packed.file) as file:
            return _copied(iter(lambda: file.read(_PIECE), b""), packed)
    except (EOFError, zlib.error, lzma.LZMAError, pyarrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise InputError(f"{packed} is damaged or cut short; compress it again.") from None


def _copied(pieces: Iterator[bytes], source: Source) -> BinaryIO:
    """Return a temporary file with these bytes, which is gone when nothing refers to it any more."""
    copy, size = tempfile.TemporaryFile(prefix="isopleth-"), 0  # noqa: SIM115
    for piece in pieces:
        size += len(piece)
        source.refuse_beyond(size, "the unpacked file")
        copy.write(piece)
    copy.seek(0)
    return cast(BinaryIO, copy)


def _standard_input(limit: int) -> Source:
    """Copy standard input; its first bytes say the format."""
    file = cast(BinaryIO, tempfile.TemporaryFile(prefix="isopleth-"))  # noqa: SIM115
    shutil.copyfileobj(sys.stdin.buffer, file, _PIECE)
    beginning = _beginning(file)
    for packing, (magic, _) in _PACKINGS.items():
        if beginning.startswith(magic):
            file = _unpacked(Source(file, _SHOWN, "", limit), packing)
    return Source(file, _SHOWN, _suffix_by_content(file), limit)


def _beginning(file: BinaryIO, size: int = 64) -> bytes:
    file.seek(0)
    found = file.read(size)
    file.seek(0)
    return found


# Suffixes of binary formats by their first bytes, each of which holds a byte that no text begins with: a column may well be
# called PK or PAR1.
_BINARY = {
    b"PAR1\x15": (".parquet", "a Parquet file"),
    b"ARROW1\0\0": (".feather", "an Arrow file"),
    b"\x93NUMPY": (".npy", "an .npy file"),
    b"PK\x03\x04": (".xlsx", "a zip archive (an .npz file or a workbook)"),
    b"\x1f\x8b": (".gz", "compressed by gzip"),
    b"\x28\xb5\x2f\xfd": (".zst", "compressed by zstd"),
    b"\x80": ("", "a pickle or other binary data"),
}


def _suffix_by_content(file: BinaryIO) -> str:
    """Return the suffix of a file by its first bytes."""
    from zipfile import BadZipFile, ZipFile

    beginning = _beginning(file)
    suffix = next((suffix for magic, (suffix, _) in _BINARY.items() if beginning.startswith(magic)), "")
    if suffix == ".xlsx":
        try:
            with ZipFile(file) as archive:
                suffix = ".npz" if any(name.endswith(".npy") for name in archive.namelist()) else ".xlsx"
        except BadZipFile:
            suffix = ".npz"
        file.seek(0)
    return suffix or (".jsonl" if beginning.lstrip().startswith(b"{") else ".csv")


def check_beginning(source: Source, magic: tuple[bytes, ...]) -> None:
    """Refuse a file whose first bytes are of another format than its suffix."""
    beginning = _beginning(source.file)
    if not beginning:
        raise InputError(f"{source} is empty; a table is needed.")
    if magic and beginning.startswith(magic):
        return
    other = next((name for first, (_, name) in _BINARY.items() if beginning.startswith(first)), None)
    if other and not _MARKS.match(beginning):
        raise InputError(f"{source} is named {source.suffix} but is {other}; rename it or save it again.")
    if magic:
        raise InputError(f"{source} is named {source.suffix} but its content is not; rename it or save it again.")


_MARKS = re.compile(rb"\xff\xfe|\xfe\xff")
# Bytes by which an encoding is guessed.
_GUESSED = 2**18
# The encoding that is named where several fit about as well: by far the most files in none of Unicode are in it.
_WESTERN, _ALIKE = "cp1252", 0.01


def as_utf8(source: Source, encoding: str | None) -> Source:
    """Return the text of a file in UTF-8; without `encoding` it is UTF-8 already, or begins with the mark of UTF-16."""
    if encoding is None and not _MARKS.match(_beginning(source.file)):
        return source
    name = "utf-16" if encoding is None else likely_encoding(source) if encoding == "auto" else encoding
    decoder = decoder_of(name or "utf-8")
    if codecs.lookup(name or "utf-8").name == "utf-8":
        return source
    source.file.seek(0)
    pieces = iter(lambda: source.file.read(_PIECE), b"")
    copy = tempfile.TemporaryFile(prefix="isopleth-")  # noqa: SIM115
    try:
        for piece in pieces:
            copy.write(decoder.decode(piece).encode())
        copy.write(decoder.decode(b"", final=True).encode())
    except UnicodeError:
        hint = Hint("name its encoding with {encoding}, or 'auto'", encoding=...)
        raise InputError(f"{source} is not {name} text", parameter="encoding", hint=hint) from None
    copy.seek(0)
    return Source(cast(BinaryIO, copy), source.shown, source.suffix, source.limit, str(name))


def decoder_of(encoding: str) -> codecs.IncrementalDecoder:
    """Return a decoder of the pieces of a text."""
    try:
        return codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise InputError(
            "{parameter} is {value}, which is unknown; try 'utf-8', 'latin-1' or 'auto'.",
            parameter="encoding",
            value=encoding,
        ) from None


def likely_encoding(source: Source) -> str | None:
    """Return the encoding that the first bytes of a text have most likely; None if none fits."""
    from charset_normalizer import from_bytes

    found = from_bytes(_beginning(source.file, _GUESSED))
    best = found.best()
    if best is None:
        return None
    alike = {name for each in found if each.chaos <= best.chaos + _ALIKE for name in each.could_be_from_charset}
    return _WESTERN if _WESTERN in alike else str(best.encoding).replace("_", "-")


def choice(names: Sequence[str]) -> list[Any]:
    """Return names to choose, the first ones and `...` where there are many."""
    return [*names[:MANY_NAMES], ...] if len(names) > MANY_NAMES else list(names)


# Columns of one name for which a message has new names.
_RENAMED = 3


def positions(source: object, names: Sequence[str], columns: Sequence[str] | None, exclude: Sequence[str]) -> list[int]:
    """Return the positions of the chosen columns among `names`, in the given order; all for None."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        places = [j + 1 for j, name in enumerate(names) if name == twice[0]][1:]
        new = {place: f"{twice[0]}_{k}" for k, place in enumerate(places[:_RENAMED], 2)}
        more = f" and so on, for {len(places)} columns" * (len(places) > _RENAMED)
        hint = Hint(f"give columns names of their own, as with {{rename}}{more}", rename=new)
        _refuse_repeated(f"{source}: the column name", names, hint)
    if columns is not None:
        if not columns:
            how = Hint("name at least one, or leave {columns} out to use all of them", columns=...)
            raise InputError("{parameter} names no column", parameter="columns", hint=how)
        _refuse_repeated("{parameter}: the column", columns, "name every column once")
    where = {name: position for position, name in enumerate(names)}
    for asked, parameter in ((columns or (), "columns"), (exclude, "exclude")):
        refuse_unknown(source, asked, names, parameter)
    left = [name for name in (names if columns is None else columns) if name not in exclude]
    if exclude and not left:
        hint = Hint("keep at least one column with {exclude}", exclude=...)
        raise InputError(f"no column of {source} is left to use", parameter="exclude", hint=hint)
    return [where[name] for name in left]


def refuse_half_characters(what: str, words: Sequence[str], parameter: str | None = None) -> None:
    """Refuse words with a lone surrogate, half of a character that no text can hold."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            text = f"{what} {{value}} holds half of a character (a lone surrogate); correct it."
            raise InputError(text, parameter=parameter, value=word) from None


def renamed(source: object, names: Sequence[str], rename: Mapping[str | int, str], *, each: bool = True) -> list[str]:
    """Return names of columns with others in the place of some, which are given by name or, of repeated names, by number from 1.

    With `each`, every one has to be there.
    """
    found, counts = list(names), Counter(names)
    for key, new in rename.items():
        places = [j for j, name in enumerate(names) if name == key]
        if not places and str(key).isdigit() and 1 <= int(key) <= len(names) and counts[names[int(key) - 1]] > 1:
            places = [int(key) - 1]
        if len(places) > 1:
            numbers = listed([str(j + 1) for j in places])
            text = f"{source} has {len(places)} columns {key!r} ({{parameter}}): say which by its number, {numbers}."
            raise InputError(text, parameter="rename", column=str(key))
        if not places and each:
            refuse_unknown(source, [key], names, "rename")
        if places:
            found[places[0]] = new
    return found


def refuse_unknown(source: object, asked: Sequence[Any], names: Sequence[str], parameter: str) -> None:
    """Refuse a parameter that names columns which a file does not have."""
    there = set(names)
    if unknown := [name for name in asked if name not in there]:
        text = (
            f"{source} has no column {quoted(unknown)} ({{parameter}}){meant(unknown, names)}; it has {quoted(names)}."
        )
        raise InputError(text, parameter=parameter, column=str(unknown[0]))


def _refuse_repeated(subject: str, names: Sequence[str], advice: str | Hint) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        some, occur = (subject, "occurs") if len(repeated) == 1 else (f"{subject}s", "occur")
        raise InputError(f"{some} {quoted(repeated)} {occur} more than once", parameter="columns", hint=advice)


# Bytes at the beginning of a table that are hashed to recognise the table.
_HASHED = 2**20


def table_fingerprint(path: Path) -> str:
    """Return a fingerprint of a possibly huge table without reading it all: size, modification time, hash of the first MiB."""
    if str(path) == "-":  # standard input, which has been copied and has no time of its own
        source = opened(path)
        source.file.seek(0)
        return f"{source.size} bytes, {hashlib.sha256(source.file.read(_HASHED)).hexdigest()}"
    status = path.stat()
    with open(path, "rb") as file:
        head = hashlib.sha256(file.read(_HASHED)).hexdigest()
    return f"{status.st_size} bytes, {status.st_mtime_ns} ns, {head}"
