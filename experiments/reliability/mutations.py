"""Seeded ways to spoil the bytes of a valid file."""

from __future__ import annotations

import io
import random
import re
import struct
import zipfile
from collections.abc import Callable

import numpy as np

# Content, randomness and other contents of the same kind, to the spoiled content.
Mutation = Callable[[bytes, random.Random, list[bytes]], bytes]

_HUGE = (0, 1, -1, 2**15, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1)
_WORDS = [
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "-1e400",
    "1e-400",
    "0x1p3",
    "1_000",
    "١٢٣",
    "１２",
    "1,5",
    "true",
    "FALSE",
    "null",
    "NA",
    "?",
    "--",
    "1e",
    "1e5e5",
    "''",
    '""',
    '"',
    "é",
    "😀",
]
_STRANGE_BYTES = (
    b"\x00",
    b"\xff",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r",
    b'"',
    b"\x1a",
    b"\x80",
    b"\xc3",
    b"\xe2\x80\xa8",
)


def _place(content: bytes, rng: random.Random) -> int:
    """Anywhere, the ends more often: headers and footers are there."""
    n = len(content)
    if not n:
        return 0
    where = rng.random()
    if where < 0.3:
        return rng.randrange(min(n, 128))
    return rng.randrange(max(0, n - 256), n) if where < 0.6 else rng.randrange(n)


def flip_bits(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """One to eight bits."""
    out = bytearray(content)
    for _count in range(rng.randint(1, 8) if out else 0):
        out[_place(out, rng)] ^= 1 << rng.randrange(8)
    return bytes(out)


def cut(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """The beginning only."""
    return content[: _place(content, rng)]


def cut_front(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """The end only."""
    return content[_place(content, rng) :]


def insert(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """Random or strange bytes amid the others."""
    where = _place(content, rng)
    new = (
        rng.choice(_STRANGE_BYTES) * rng.choice((1, 1, 2, 50))
        if rng.random() < 0.6
        else rng.randbytes(rng.randint(1, 40))
    )
    return content[:where] + new + content[where:]


def leave_out(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """A piece is missing."""
    where = _place(content, rng)
    return content[:where] + content[where + rng.choice((1, 2, 7, 64, 500)) :]


def repeat(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """A piece is there many times."""
    where = _place(content, rng)
    piece = content[where : where + rng.choice((1, 8, 100))]
    return content[:where] + piece * rng.choice((2, 3, 1000)) + content[where:]


def splice(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """The beginning of one file and the end of another."""
    other = rng.choice(others)
    return content[: _place(content, rng)] + other[_place(other, rng) :]


def huge_integer(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """A length or an offset that cannot be."""
    kind, size = rng.choice((("<h", 2), ("<i", 4), ("<q", 8), (">i", 4)))
    where = _place(content, rng)
    value = rng.choice([v for v in _HUGE if abs(v) < 2 ** (8 * size - 1)])
    return content[:where] + struct.pack(kind, value) + content[where + size :]


def append(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Something after the end, or before the beginning."""
    more = rng.choice([*others, rng.randbytes(30), b"\0" * 100, b"\n" * 1000])
    return content + more if rng.random() < 0.5 else more + content


def other_encoding(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """The text as other programs would have written it."""
    text = content.decode("utf-8", errors="replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-7", "cp1252", "cp037")), errors="replace")


def strange_number(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """A number of the text becomes something else."""
    found = list(re.finditer(rb"[-+0-9.e]+", content))
    if not found:
        return content
    match = rng.choice(found)
    word = rng.choice([*(w.encode() for w in _WORDS), b"9" * rng.choice((20, 400, 5000)), b"x" * 100_000])
    return content[: match.start()] + word + content[match.end() :]


def other_delimiters(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """Some delimiters or ends of lines become others."""
    old = rng.choice((b",", b"\t", b"\n", b"\r\n", b'"', b"."))
    new = rng.choice((b",", b";", b"\t", b"|", b" ", b"\r", b"\n\n", b'"', b"", b",,"))
    return content.replace(old, new, rng.choice((1, 2, -1)))


def long_line(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """One line of a million bytes, or a million short ones."""
    piece = rng.choice((b"1,", b'"', b"1 ", b"\t", b"a", b"\n", b"1\n"))
    return content + piece * (500_000 // len(piece))


def array_header(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """The header of an array in the content tells lies of its shape or type."""
    found = re.search(rb"\{'descr': ([^}]*)\}", content)
    if not found:
        return flip_bits(content, rng, _)
    shapes = (
        "(10**9, 3)",
        "(99999999999, 3)",
        "(3, 24)",
        "(-1, 3)",
        "(24,)",
        "()",
        "(0, 0)",
        "(24, 3, 1)",
        "(True, 72)",
        "'ab'",
    )
    kinds = (
        "'<f8'",
        "'<f4'",
        "'|O'",
        "'<U100000000'",
        "[('a', '<f8')]",
        "'<M8[s]'",
        "'<c16'",
        "'V8'",
        "5",
        "'?'",
        "'|S0'",
    )
    order = rng.choice(("False", "True", "3"))
    lie = f"{{'descr': {rng.choice(kinds)}, 'fortran_order': {order}, 'shape': {rng.choice(shapes)}, }}"
    length = found.end() - found.start()
    return (
        content[: found.start()]
        + lie.encode().ljust(length)[: length if rng.random() < 0.8 else None]
        + content[found.end() :]
    )


def nested_zip(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """Archives in archives, with names and sizes that no table or model has."""
    for _depth in range(rng.randint(1, 5)):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            names = (
                "X.npy",
                "../../X.npy",
                "/etc/passwd",
                "X",
                "schema.json",
                "isopleth.json",
                "\u202ex.npy",
                "a" * 300,
            )
            archive.writestr(rng.choice(names), content)
            archive.writestr(rng.choice(("bomb.npy", "y.npy")), bytes(rng.choice((10, 10**6))))
        content = buffer.getvalue()
    return content


def lying_zip(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """An array in an archive whose header announces far more than there is."""
    shape = rng.choice(((10**10, 3), (10**6, 10**6), (2**40,), (10**5, 10**5)))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(rng.choice((0, 80, 10**6))))
    return buffer.getvalue() if rng.random() < 0.5 else header.getvalue() + bytes(100)


ANY: tuple[Mutation, ...] = (
    flip_bits,
    flip_bits,
    cut,
    cut_front,
    insert,
    leave_out,
    repeat,
    splice,
    huge_integer,
    append,
)
TEXT: tuple[Mutation, ...] = (
    *ANY,
    other_encoding,
    strange_number,
    strange_number,
    other_delimiters,
    other_delimiters,
    long_line,
)
BINARY: tuple[Mutation, ...] = (*ANY, array_header, array_header, nested_zip, lying_zip)


def spoiled(content: bytes, suffix: str, rng: random.Random, others: list[bytes]) -> tuple[bytes, str]:
    """The content after one to three mutations, and their names."""
    names = []
    for mutate in rng.choices(TEXT if suffix in (".csv", ".tsv") else BINARY, k=rng.choice((1, 1, 1, 2, 3))):
        content = mutate(content, rng, others)
        names.append(mutate.__name__)
    return content, " + ".join(names)
