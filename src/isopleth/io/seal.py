"""A checksum over every byte of an archive, by which any change to it shows."""

from __future__ import annotations

import hashlib
from io import BytesIO
from zipfile import ZipFile

_MARK = b"sha256:"
_DIGITS = 64


def sealed(archive: bytes) -> bytes:
    """The zip archive with the SHA-256 of all its bytes in its comment, which is where such a file ends.

    Parameters
    ----------
    archive : bytes
        A zip archive, all members stored; a comment it may have is replaced.

    Returns
    -------
    bytes
        The same members; the last 64 bytes are the checksum of all bytes before them.

    Examples
    --------
    >>> from io import BytesIO
    >>> from zipfile import ZipFile
    >>> archive = BytesIO()
    >>> with ZipFile(archive, "w") as zipped:
    ...     zipped.writestr("a", "1")
    >>> content = sealed(archive.getvalue())
    >>> is_whole(content), is_whole(content[:-1]), is_whole(content.replace(b"1", b"2"))
    (True, False, False)
    """
    buffer = BytesIO(archive)
    with ZipFile(buffer, "a") as zipped:
        zipped.comment = _MARK + b"0" * _DIGITS
    before = buffer.getvalue()[:-_DIGITS]
    return before + _digest(before)


def is_whole(content: bytes) -> bool:
    """Whether the checksum at the end is that of everything before it.

    It finds accidents, of which it misses one in 2**256. Who changes a file on purpose can seal it again.
    """
    before = content[:-_DIGITS]
    return before.endswith(_MARK) and content[-_DIGITS:] == _digest(before)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode("ascii")
