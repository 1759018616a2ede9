"""Fits to sums that rows are added to, solved when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from isopleth.errors import InputError


class Streaming:
    """An estimator whose ``partial_fit`` adds rows to sums.

    The first call ends with a solve, which tells of whatever its rows and the parameters do not allow. After a later one, the
    first question solves: that takes as long for one row more as for a million.

    A subclass defines :meth:`_solve` and names what it sets.
    """

    # Attributes of the solution, the one that :meth:`_solve` sets last being the first of them.
    _solved: ClassVar[tuple[str, ...]]

    # Sums over the rows of all calls; None for good once a call was broken off in the midst of adding.
    _running: Any

    def _solve(self, sums: Any) -> None:
        """Set the attributes of the solution."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Leave nothing of another fit, neither sums nor their solution; a subclass adds what else it has."""
        for name in ("_running", *self._solved):
            vars(self).pop(name, None)

    def _sums_so_far(self) -> Any:
        """Sums of earlier calls, None before the first.

        Raises
        ------
        InputError
            If a call was broken off, so that nobody knows what rows the sums have.
        """
        sums = vars(self).get("_running", self)
        if sums is None:
            raise InputError(
                "a call of partial_fit was broken off while rows were being added, and some of them may have been; begin anew "
                "with fit or a new model, or go on from one that was saved."
            )
        return None if sums is self else sums

    @contextmanager
    def _adding(self, sums: Any) -> Iterator[None]:
        """While rows are being added to sums, which are kept if nothing breaks that off; of a first call nothing stays."""
        first = "_running" not in vars(self)
        for name in self._solved:
            vars(self).pop(name, None)
        self._running = None
        try:
            yield
            if first:
                self._solve(sums)
            self._running = sums
        except BaseException:
            if first:
                self._forget()
            raise

    def __getstate__(self) -> Any:
        """With the solution, so that copies and files answer at once."""
        if "_running" in vars(self):
            getattr(self, self._solved[0])
        return super().__getstate__()

    if not TYPE_CHECKING:  # or every attribute would pass for one that is there

        def __getattr__(self, name: str) -> Any:
            """Solve if what is asked for is of the solution and not there; called for nothing that is."""
            if name in self._solved and "_running" in vars(self) and self._solved[0] not in vars(self):
                self._solve(self._sums_so_far())
            return object.__getattribute__(self, name)
