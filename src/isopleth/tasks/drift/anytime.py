"""Drift monitor whose probability of a false alarm is bounded for a stream of any length."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from isopleth.core.errors import InputError
from isopleth.core.rows import row_keys
from isopleth.operators.features import GaussianFeatures
from isopleth.tables.checks import enter, plain_names
from isopleth.tables.row_encoding import RowEncoding
from isopleth.tasks.drift.alarms import DriftAlarms, ReferenceColumns, StreamMonitor
from isopleth.tasks.drift.calibration import spread
from isopleth.tasks.drift.reference_context import ReferenceResiduals
from isopleth.tasks.running_totals import is_running_total, warn_of_totals

_FEWEST = 20
# Rows of the reference from which bins and kernels are made; the others are compared with the stream.
_SHARE_OF_BINS, _MOST_OF_BINS = 0.25, 1000
_BINS = 200
_CENTERS = 200
# Products of all pairs of columns are scores up to this number of columns: each score divides the capital.
_MOST_IN_PAIRS = 8
# Stakes on small and large ranks, and on middle and outer ones; the first keeps its capital.
_STAKES = np.array([0.0, -1.0, -0.5, 0.5, 1.0, -1.0, -0.5, 0.5, 1.0])
_ON_SIDES = 5
# Share of the capital that moves between the stakes at every row, so that late changes find some everywhere.
_MOVED = 0.01


@dataclass(frozen=True, eq=False)
class AnytimeState:
    """Position of a monitor in its stream. It is replaced and never changed in place.

    Parameters
    ----------
    n_rows, alarms : int
        Rows of the stream so far, and alarms: 0 or 1.
    counts : array of shape (k, bins)
        Rows seen in each bin of each score, those of the reference included.
    log_capital : array of shape (k,)
        Logarithm of the capital that the bets on each score have won.
    shares : array of shape (k, 9)
        Share of that capital on each stake.
    recent : array of shape (k, n_features)
        The last rows as they came.
    key : int
        Key of the fitted monitor.
    """

    n_rows: int
    alarms: int
    counts: np.ndarray
    log_capital: np.ndarray
    shares: np.ndarray
    recent: np.ndarray
    key: int


class AnytimeDriftMonitor(StreamMonitor):
    r"""Raise at most one alarm; the probability of a false one is at most `false_alarm_probability` for any length of stream.

    :class:`DriftMonitor` has a mean run length, so a false alarm is certain in the long run. This monitor is a test martingale,
    a sequence of bets against the hypothesis that nothing has changed [1]_. Some scores of each row are ranked among the rows of
    the reference and all earlier rows of the stream.
    As long as reference and stream are exchangeable, the ranks (with ties broken at random) are independent and uniform,
    whatever the distribution. Bets on such ranks have an expected gain of 1, so by Ville's inequality the capital ever
    reaches :math:`1/\alpha` with a probability of at most :math:`\alpha`. There is a capital for each of k scores, and the
    alarm comes when one of them reaches :math:`k/\alpha`.

    Bets are placed on small or large ranks (a shift of the column) and on central or outer ranks (a change of spread). Scores are
    the columns, the residuals of columns of numbers given the other columns, the products of all pairs of up to eight columns of
    numbers (a change of dependence), and the mean of a Gaussian
    kernel over rows of the reference, which is small at unlikely combinations of values.

    Parameters
    ----------
    false_alarm_probability : float, default=0.01
        The bound :math:`\alpha`, over the reference and the whole stream.
    window : int, default=50
        Number of last rows from which the changes of the columns are computed at an alarm. It does not affect the alarm.
    categorical : None, name, or sequence of names or numbers of columns, optional
        Columns of numbers that are categories.
    compare_missing : bool, default=True
        Whether a different share of missing cells is a change. If not, missing cells are drawn from the known cells of their
        columns in the reference.
    random_state : int, RandomState or None
        Seed of the rows from which scores are made, and of the order of ties.
    verbose : bool or int, default=False
        Whether to show the progress of :meth:`update` on standard error.

    Attributes
    ----------
    threshold_ : float
        Logarithm of :math:`1/\alpha`; the statistic of a row is that of the largest capital over the number of scores.
    state_ : AnytimeState
        Position in the stream. Keep it and assign it later to return to that row.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had any.

    See Also
    --------
    DriftMonitor : Repeated alarms with a given mean run length, and a shorter delay.

    Notes
    -----
    The guarantee costs delay; docs/drift.rst has figures. Later rows are compared with rows after the change too, so a change
    that is not detected within about as many rows as the reference and the stream before it have will not be detected. A quarter
    of the reference, at most 1,000 rows, determines bins and kernels and is not used for comparison. Memory does not grow with
    the stream.

    References
    ----------
    .. [1] V. Vovk, I. Nouretdinov, A. Gammerman, "Testing exchangeability on-line", ICML 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.tasks import AnytimeDriftMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = AnytimeDriftMonitor(random_state=0).fit(rng.normal(size=(400, 2)))
    >>> len(monitor.update(rng.normal(size=(500, 2))))
    0
    >>> alarms = monitor.update(rng.normal([1.5, 0.0], size=(100, 2)))
    >>> len(alarms), alarms.changes()["column"][0]
    (1, 'column 0')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "false_alarm_probability": [Interval(Real, 0, 1, closed="neither")],
        "window": [Interval(Integral, 2, None, closed="left")],
        "categorical": [None, str, "array-like"],
        "compare_missing": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        false_alarm_probability: float = 0.01,
        window: int = 50,
        categorical: Any = None,
        compare_missing: bool = True,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.false_alarm_probability = false_alarm_probability
        self.window = window
        self.categorical = categorical
        self.compare_missing = compare_missing
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the reference; the stream begins with the first call of `update`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The reference, 20 rows or more. Reference and stream must be exchangeable while nothing changes, as independent
            rows of one distribution are. Times are left out: those of the stream are all later.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the rows or parameters cannot be used.
        """
        self._validate_params()
        self.__dict__.pop("threshold_", None)
        seed = int(check_random_state(self.random_state).randint(2**31))

        def parts(n: int) -> tuple[np.ndarray, np.ndarray]:
            order = np.random.default_rng(seed).permutation(n)
            count = min(_MOST_OF_BINS, max(2, int(_SHARE_OF_BINS * n)))
            return order[:count], order[count:]

        # Everything that shapes a score comes from the first part. The scores of the other rows of the reference and those of
        # the stream are then exchangeable; kinds, words or gaps chosen from rows that are compared later favour these rows.
        table = enter(self, X, reset=True, min_samples=2, missing=True, kinds_from=lambda n: parts(n)[0])
        if len(table.rows) < _FEWEST:
            raise InputError(f"the reference has {len(table.rows)} rows; give {_FEWEST} or more.")
        shaping, compared = parts(len(table.rows))
        table = self._without_clocks(X, table)
        given = table.rows
        names = plain_names(self) if table.columns is None else table.columns.numeric_names
        if totals := [name for name, column in zip(names, given.T, strict=False) if is_running_total(column)]:
            warn_of_totals(totals, left_out=False)
        self._encoding = encoding = RowEncoding.of_table(
            self, replace(table, rows=given[shaping]), compared=self.compare_missing
        )
        self._filling = np.random.default_rng([seed, 1]).integers(2**31, size=2)
        X = encoding.filled(given, int(self._filling[0]))
        part = X[shaping]
        first = encoding(part)
        self._context = ReferenceResiduals.of(encoding, first, np.ptp(first, axis=0) > 0.0)
        self._unit = _unit(first) if encoding.is_plain else encoding.spreads(part, spread)
        self._places = {
            j: _by_frequency(part[:, cell.place]) for j, cell in enumerate(encoding.cells) if cell.kind == "categorical"
        }
        self._numbers = [
            b.start for c, b in zip(encoding.cells, encoding.blocks, strict=True) if c.kind != "categorical"
        ]
        self._middle = np.median(first[:, self._numbers], axis=0)
        centers = first[:_CENTERS] / self._unit
        self._functions = GaussianFeatures(
            centers, max(float(np.sqrt(np.median(pdist(centers, "sqeuclidean")))), 1e-150)
        )
        levels = np.linspace(0.0, 1.0, _BINS + 1)[1:-1]
        self._edges = np.quantile(self._scores(part, alone=True), levels, axis=0).T.copy()
        bins = self._bins(X[compared])
        counts = np.stack([np.bincount(column, minlength=_BINS) for column in bins.T]).astype(np.float64)
        self._columns, self._seed = ReferenceColumns.of(encoding, given, self._context), seed
        key = int(row_keys(np.append(counts.ravel(), seed)[None])[0])
        shares = np.full((len(counts), len(_STAKES)), 1.0 / len(_STAKES))
        self.state_ = AnytimeState(0, 0, counts, np.zeros(len(counts)), shares, np.empty((0, X.shape[1])), key)
        self._key, self.threshold_ = key, -math.log(self.false_alarm_probability)
        return table.finish(self)

    def _scores(self, X: np.ndarray, *, alone: bool = False) -> np.ndarray:
        """Return scores of rows: columns, gaps, mean kernel value and products; with `alone`, centres do not count themselves."""
        rows = self._encoding(X)
        typical = self._functions(rows / self._unit).sum(axis=1)
        if alone:
            typical[: len(self._functions.centers)] -= 1.0
        numbers = rows[:, self._numbers]
        # Ranks of products of columns in units of the reference change with their dependence.
        one, other = np.triu_indices(numbers.shape[1] if numbers.shape[1] <= _MOST_IN_PAIRS else 0, 1)
        z = (numbers - self._middle) / self._unit[self._numbers]
        columns = [rows] if self._encoding.is_plain else self._columns_of(X)
        return np.column_stack([*columns, typical, z[:, one] * z[:, other], self._context.of_numbers(rows)])

    def _columns_of(self, X: np.ndarray) -> list[np.ndarray]:
        """Return a score for each column: numbers, and words by their place in the order of frequency."""
        encoding, out = self._encoding, []
        coded = encoding(X)
        for j, (cell, block) in enumerate(zip(encoding.cells, encoding.blocks, strict=True)):
            if cell.kind != "categorical":
                out.append(coded[:, block.start])
                continue
            places = self._places[j]
            missing = np.isnan(X[:, cell.place])
            codes = np.where(missing, 0, X[:, cell.place]).astype(np.intp)
            # Words that are not known come after all others, and missing ones last.
            found = np.where(codes < len(places), places[np.minimum(codes, len(places) - 1)], len(places))
            out.append(np.where(missing, len(places) + 1.0, found))
        if encoding.compared and any(cell.gap for cell in encoding.cells):
            out.append(np.isnan(X).sum(axis=1).astype(np.float64))
        return out

    def _bins(self, X: np.ndarray) -> np.ndarray:
        scores = self._scores(X)
        pairs = zip(self._edges, scores.T, strict=True)
        return np.stack([np.searchsorted(edges, column) for edges, column in pairs], axis=1)

    def update(self, X: Any) -> DriftAlarms:
        """Process the next rows of the stream.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows in the order in which they arrived, one or more.

        Returns
        -------
        DriftAlarms
            At most one alarm. Its statistic is the logarithm of the largest capital over the number of scores; NaN after the
            alarm.

        Raises
        ------
        InputError
            If rows cannot be used; then none of them is processed. Also if `state_` was assigned from another monitor.
        """
        return self._alarms(X)

    def _take_in(self, state: AnytimeState, X: np.ndarray) -> tuple[AnytimeState, np.ndarray, list[np.ndarray]]:
        out = np.full(len(X), np.nan)
        if state.alarms:
            return replace(state, n_rows=state.n_rows + len(X)), out, []
        filled = self._encoding.filled(X, int(self._filling[1]), state.n_rows)
        bins, counts = self._bins(filled), state.counts.copy()
        capital, shares = state.log_capital.copy(), state.shares.copy()
        scores, total = np.arange(len(counts)), float(counts[0].sum())
        for i, places in enumerate(bins):
            equal = counts[scores, places]
            above = np.where(np.arange(_BINS) > places[:, None], counts, 0.0).sum(axis=1)
            # Random numbers depend on the row number only, so answers do not depend on how rows are divided into calls.
            ties = np.random.default_rng([self._seed, state.n_rows + i]).random(len(scores))
            ranks = (above + ties * (equal + 1.0)) / (total + 1.0)
            counts[scores, places] += 1.0
            total += 1.0
            shares = (1.0 - _MOVED) * shares + _MOVED / len(_STAKES)
            sides, outside = 2.0 * ranks - 1.0, 2.0 * np.abs(2.0 * ranks - 1.0) - 1.0
            won = np.where(np.arange(len(_STAKES)) < _ON_SIDES, sides[:, None], outside[:, None]) * _STAKES
            shares *= 1.0 + won
            gain = shares.sum(axis=1)
            capital, shares = capital + np.log(gain), shares / gain[:, None]
            # Ranks of one score are independent of each other, but not of the past of other scores: the mean of capitals has no
            # such bound, the largest one has it by the union of events.
            out[i] = capital.max() - math.log(len(scores))
            if out[i] > self.threshold_:
                recent = np.vstack([state.recent, X[: i + 1]])[-int(self.window) :]
                after = AnytimeState(state.n_rows + len(X), 1, counts, capital, shares, recent, state.key)
                return after, out, [recent]
        recent = np.vstack([state.recent, X])[-int(self.window) :]
        return AnytimeState(state.n_rows + len(X), 0, counts, capital, shares, recent, state.key), out, []


def _unit(rows: np.ndarray) -> np.ndarray:
    """Return the spread of each column, and 1 for constant ones."""
    found = spread(rows)
    return np.where(found > 0.0, found, 1.0)


def _by_frequency(codes: np.ndarray) -> np.ndarray:
    """Return the place of each category in the order of its frequency, the most frequent one first."""
    known = codes[~np.isnan(codes)].astype(np.intp)
    counts = np.bincount(known, minlength=1)
    out = np.empty(len(counts))
    out[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return out
