"""Incremental fits: sums that rows are added to, solved when the result is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from isopleth.errors import InputError


class Streaming:
    """Base class of estimators whose ``partial_fit`` adds rows to sums.

    The first call solves the equations, so that errors in rows or parameters are raised there. After later calls, they are
    solved on the first use of the solution. This takes the same time after one new row as after a million.

    A subclass defines :meth:`_solve` and the names of the attributes that it sets.
    """

    # Attributes of the solution. The first of them is the one that :meth:`_solve` sets last.
    _solved: ClassVar[tuple[str, ...]]

    # Sums over the rows of all calls; None after a call was interrupted while it added rows.
    _running: Any

    def _solve(self, sums: Any) -> None:
        """Set the attributes of the solution."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Delete sums and solution of an earlier fit; subclasses delete further attributes."""
        for name in ("_running", *self._solved):
            vars(self).pop(name, None)

    def _sums_so_far(self) -> Any:
        """Return the sums of earlier calls, None before the first."""
        sums = vars(self).get("_running", self)
        if sums is None:
            raise InputError(
                "a call of partial_fit was broken off while rows were being added, and some of them may have been added; start "
                "again with fit or a new model, or continue from a saved model."
            )
        return None if sums is self else sums

    @contextmanager
    def _adding(self, sums: Any) -> Iterator[None]:
        """Context in which rows are added to sums. An interrupt or error invalidates them, or in a first call deletes them."""
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
        """Return the state with the solution, so that copies and saved models need not solve."""
        if "_running" in vars(self):
            getattr(self, self._solved[0])
        return super().__getstate__()

    if not TYPE_CHECKING:  # a type checker would accept every attribute

        def __getattr__(self, name: str) -> Any:
            """Solve if an attribute of the solution is missing; Python calls this for missing attributes only."""
            if name in self._solved and "_running" in vars(self) and self._solved[0] not in vars(self):
                self._solve(self._sums_so_far())
            return object.__getattribute__(self, name)
