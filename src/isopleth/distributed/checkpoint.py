"""A fit that can be interrupted: the sums of its passes over the rows, kept in a folder beside the model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from isopleth.distributed.state import restored, state_of
from isopleth.errors import InputError
from isopleth.io.atomic import atomic_write, check_target, refused_writing, remove_leftovers
from isopleth.io.partial import NOTE, lock, refuse_other

S = TypeVar("S")

# What is beside the sums of a pass, under a name that no attribute has.
_ROWS = "number of rows"

# Between two savings of a pass that is under way.
SECONDS = 60.0


class Checkpoint:
    """Sums of passes over rows, so that a fit that is begun again finds those it has made.

    A fit asks for the same sums in the same order each time: what it does between passes is computed again, and the passes
    themselves are taken from here, as far as they got.

    Parameters
    ----------
    folder : Path
        Where they lie, made if it is not there.
    about : mapping of str to str
        What the fit is about, by what the user calls it; another one is refused.
    seconds : float
        At most so much work of a pass is lost.

    Raises
    ------
    InputError
        If the folder is none of ours or about something else, or cannot be written.
    """

    def __init__(self, folder: Path, about: Mapping[str, str], seconds: float = SECONDS) -> None:
        self.folder, self.seconds, self._passes = folder, seconds, 0
        self._claim(dict(about))

    def _claim(self, about: dict[str, str]) -> None:
        note = self.folder / NOTE
        if not self.folder.exists():
            self._begin(note, about)
        if not self.folder.is_dir() or (not note.exists() and any(_foreign(path) for path in self.folder.iterdir())):
            raise InputError(f"{self.folder} was not made by a fit; move it away, sums are to be kept there.")
        if not note.exists():
            _write_note(note, about)
        self._lock = open(note, "rb")  # noqa: SIM115 - held until the fit ends
        try:
            lock(self._lock, self.folder)
            refuse_other(self.folder, self._noted(), about)
        except BaseException:
            self._lock.close()
            raise

    def _begin(self, note: Path, about: dict[str, str]) -> None:
        check_target(self.folder)
        with refused_writing(self.folder):
            self.folder.mkdir()
        try:
            _write_note(note, about)
        except BaseException:
            self.folder.rmdir()
            raise

    def _noted(self) -> dict[str, str]:
        try:
            return dict(json.load(self._lock))
        except (ValueError, TypeError):
            raise InputError(f"{self.folder} is damaged; delete it to begin anew.") from None

    def next_pass(self) -> KeptPass:
        """The pass that comes next."""
        self._passes += 1
        return KeptPass(self.folder / f"pass-{self._passes:04d}.npz", self.seconds)

    def remove(self) -> None:
        """Delete everything, when the model has been written."""
        for path in self.folder.iterdir():
            if path.name != NOTE:  # that last: without it the folder would be nobody's
                path.unlink()
        self._lock.close()
        (self.folder / NOTE).unlink()
        self.folder.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.close()


def _write_note(note: Path, about: dict[str, str]) -> None:
    with atomic_write(note) as file:
        file.write(json.dumps(about).encode())


def _foreign(path: Path) -> bool:
    """Sums without the note may be about anything."""
    return not path.name.startswith(".isopleth-")


class KeptPass:
    """One pass: its sums so far, and of how many rows they are.

    Parameters
    ----------
    path : Path
        The file they are kept in.
    seconds : float
        How often.
    """

    def __init__(self, path: Path, seconds: float) -> None:
        self._path, self._seconds = path, seconds
        self._due = time.monotonic() + seconds

    def begun(self, start: Callable[[], S]) -> tuple[S, int]:
        """Sums as they were kept and the number of rows they are of, or fresh ones of none."""
        remove_leftovers(self._path)
        try:
            with np.load(self._path, allow_pickle=False) as found:
                state = {key: found[key] for key in found.files}
        except Exception:  # it is not there; or the machine has lost its power, and the rows are gone through again
            return start(), 0
        rows = int(state.pop(_ROWS))
        return restored(start(), state), rows

    def keep(self, sums: Any, rows: int, *, whole: bool) -> None:
        """Keep sums of the first `rows` rows, if it is time to, or they are the `whole`."""
        if whole or time.monotonic() >= self._due:
            with atomic_write(self._path) as file:
                kept: dict[str, Any] = {_ROWS: np.asarray(rows), **state_of(sums)}
                np.savez(file, **kept)
            self._due = time.monotonic() + self._seconds
