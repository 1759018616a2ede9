"""New rows that look like those of the table that a density was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from isopleth.core.budget import Budget
from isopleth.core.errors import InputError, whole_number
from isopleth.core.progress import Progress
from isopleth.density import TableDensity
from isopleth.tables.coded_cells import new_table
from isopleth.tables.typed_cells import is_whole
from isopleth.tasks.made_rows.recording import Drawn, Recording
from isopleth.tasks.made_rows.selection import CANDIDATES, Selection

# Draws by which the distribution of draws in each column is known.
_REFERENCE = 4000
# Rows that are made at once.
_BATCH = 1000


def make_rows(
    density: Any,
    n_samples: int = 1,
    given: Mapping[Any, Any] | None = None,
    random_state: Any = None,
    complete: bool = False,
    verbose: bool | int = False,
) -> Any:
    """Make rows that look like those of the table that a density was fitted to.

    Every column has about the distribution that it has in the table: range, decimals, values that many rows share, and shares of
    words. Of ten draws that one is likeliest to be kept which trees take for a row of the table. Rows come evenly from the rows
    of the table, about one from each of as many; they are not independent of each other. Cells are missing about as often and in
    the same patterns.

    Parameters
    ----------
    density : SOSREP, KDE or TableDensity
        A fitted density with a kernel that is a product over columns, or a marginal or conditional density of one.
    n_samples : int, default=1
        Number of rows.
    given : mapping, optional
        Values that some columns have in every row, by name or number.
    random_state : int, RandomState or None
        Seed.
    complete : bool, default=False
        Whether no cell is missing.
    verbose : bool or int, default=False
        Whether to show progress on standard error.

    Returns
    -------
    data frame, tensor or ndarray of shape (n_samples, n_columns)
        A frame of the library of the rows of the fit with the types of their columns, or an array.

    Raises
    ------
    InputError
        If `n_samples` is not a whole number of at least 1, for `given` as in ``conditional``, if a value that is given is no
        whole number in a column of whole numbers, and for kernels that are no product over columns.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import KDE
    >>> from isopleth.tasks import make_rows
    >>> ages = np.random.default_rng(0).integers(18, 80, size=(200, 1)).astype(float)
    >>> made = make_rows(KDE().fit(ages), 50, random_state=0)
    >>> bool((made == made.round()).all() and made.min() >= 18 and made.max() < 80)
    True
    """
    table = density if isinstance(density, TableDensity) else density._table_density()
    n_samples = whole_number("n_samples", n_samples)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    rows = _Maker.of(table).rows(n_samples, given, rng, complete, Budget(verbose=verbose))
    return rows if density is table else density._fitted.backend.array(rows)


@dataclass(frozen=True, eq=False)
class _Maker:
    """A density of a table, and how the table records its values."""

    table: TableDensity
    recording: Recording

    @classmethod
    def of(cls, table: TableDensity) -> _Maker:
        """Look at the rows of the fit."""
        fit_rows = table.rows.fit_rows
        if fit_rows is None:
            raise InputError("this density has no rows of a table; fit SOSREP or KDE.", parameter="density")
        return cls(table, Recording.of(fit_rows, table.columns, table.frame_of_fit[1]))

    def rows(
        self,
        n_samples: int,
        given: Mapping[Any, Any] | None,
        rng: np.random.Generator,
        complete: bool,
        budget: Budget,
    ) -> Any:
        """Make rows, as many at once as fit in the cache."""
        table = self.table
        out, others, rest = table.begin(n_samples, given)
        known = np.setdiff1d(np.arange(out.shape[1]), others)
        self._check_whole(out[:1])
        maker = self if rest is table else _Maker.of(rest)
        usual = self._draws(_REFERENCE, rng)
        selection, reference, place = self._selection(usual, rng), usual.take(others), 0
        with Progress("samples", n_samples, budget.verbose) as tick:
            while place < n_samples:
                n = min(n_samples - place, _BATCH)
                drawn = maker._draws(CANDIDATES * n, rng)
                rows = np.tile(out[place], (len(drawn.rows), 1))
                rows[:, others] = maker.recording.record(drawn, reference, rng)
                out[place : place + n] = rows[selection.kept(rows, drawn.center, n, rng)]
                place += n
                tick(n)
        if self.recording.gaps is not None and not complete:
            gaps = self._gaps(out, usual.rows, rng)
            gaps[:, known] = False
            out[gaps] = np.nan
        return self.recording.typed(new_table(table.columns, table.by_column(out), table.frame_of_fit[0]))

    def _check_whole(self, row: np.ndarray) -> None:
        """Refuse values with decimals for columns of whole numbers."""
        values = self.table.by_column(row)[0]
        for column, value in zip(self.table.columns.columns, values, strict=True):
            if is_whole(self.recording.types.get(str(column.name), "")) and value % 1.0 > 0.0:
                text = "{parameter} has {value} for {column}, which holds whole numbers; give a whole number."
                raise InputError(text, parameter="given", column=column.name, value=float(value))

    def _draws(self, n: int, rng: np.random.Generator) -> Drawn:
        """Draw rows of known words evenly from the centres."""
        density, leave = self.table.density, self.table.rows.leave
        points, first, second = self.table.draw_evenly(n, rng)
        centers = leave(density.centers[:, density.columns])
        return Drawn(leave(points), centers[first], centers[second], first)

    def _selection(self, usual: Drawn, rng: np.random.Generator) -> Selection:
        """Return what tells draws from the rows of the table, whose gaps are filled."""
        density, recording = self.table.density, self.recording
        if recording.points is not None and recording.weights is not None:
            points, weights = recording.points, recording.weights
        else:
            points, weights = density.centers[:, density.columns], density.row_weights()
        sizes = (0,) * self.table.n_numeric + self.table.columns.sizes
        rows, drawn = recording.exact(self.table.rows.leave(points)), recording.record(usual, usual, rng)
        return Selection.of(rows, weights, drawn, sizes, int(rng.integers(2**31)))

    def _gaps(self, rows: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw which cells of drawn rows are missing."""
        density, enter = self.table.density, self.table.coordinates.enter
        kernel = density.kernel.take(density.columns)
        return self.recording.missing(kernel, enter(rows), enter(others), rng, density.budget)
