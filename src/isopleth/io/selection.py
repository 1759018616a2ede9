"""Which columns of a file are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from isopleth.errors import InputError

# More names than this are not listed in one sentence.
_MANY = 12


def listed(names: Sequence[str]) -> str:
    """Names for a sentence: quoted, and cut short when there are many."""
    shown = ", ".join(repr(name) for name in names[:_MANY])
    return shown if len(names) <= _MANY else f"{shown} and {len(names) - _MANY} more"


def positions(path: Path, names: Sequence[str], columns: Sequence[str] | None, but: str | None = None) -> list[int]:
    """Where the chosen columns stand among `names`, in the order they were asked for; for None all of them but `but`.

    Raises
    ------
    InputError
        If names of the file or of the choice repeat, if the choice is empty or names what the file does not have.
    """
    _refuse_repeated(f"{path}: the column name", names, "give every column its own name.")
    if columns is None:
        return [j for j, name in enumerate(names) if name != but]
    if not columns:
        raise InputError("--columns: no column is named; name at least one, or leave it out to use all of them.")
    _refuse_repeated("--columns: the column", columns, "name every column once.")
    unknown = [name for name in columns if name not in names]
    if unknown:
        raise InputError(f"{path} has no column {listed(unknown)} (--columns); it has {listed(names)}.")
    where = {name: position for position, name in enumerate(names)}
    return [where[name] for name in columns]


def _refuse_repeated(subject: str, names: Sequence[str], advice: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{subject} {listed(repeated)} occurs more than once; {advice}")


def refuse_text(path: Path, text: Sequence[str], numeric: Sequence[str], *, chosen: bool, hint: str = "") -> None:
    """Refuse columns that hold no numbers; `hint` says what may have gone wrong with them.

    Raises
    ------
    InputError
        If `text` names any column.
    """
    if not text:
        return
    subject = f"{path}: no numbers in column{'s' if len(text) > 1 else ''} {listed(text)}{hint}"
    if chosen:
        raise InputError(f"{subject}; leave {'them' if len(text) > 1 else 'it'} out of --columns.")
    if not numeric:
        raise InputError(f"{subject}, and there are no others; a table of numbers is needed.")
    raise InputError(f"{subject}; choose those to use with --columns {_choice(numeric)}.")


def _choice(names: Sequence[str]) -> str:
    few = ",".join(names[:_MANY])
    return few if len(names) <= _MANY else few + ",..."
