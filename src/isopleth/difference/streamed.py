"""A density difference that is fitted to sums: of rows in memory, of rows as they come, of rows that lie in parts."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from isopleth.backend import Backend, to_backend
from isopleth.difference.centers import choose_centers
from isopleth.difference.decisions import Decisions
from isopleth.difference.fitted import FittedDifference
from isopleth.difference.gaussian_system import fits_within
from isopleth.difference.grids import length_scales, ridges, spread_within
from isopleth.difference.interval import SquaredL2Law
from isopleth.difference.limit_law import deviation_factor
from isopleth.difference.samples import TwoSamples, speaking_of
from isopleth.difference.search import CrossFitted, cross_validate
from isopleth.difference.squared_l2 import in_sample
from isopleth.difference.statistics import DifferenceStatistics
from isopleth.difference.system import DifferenceSystem
from isopleth.difference.volume import over_volume
from isopleth.entry import check_rows, check_weights, column_names, on_host, varying_columns, warn_of_new_beginning
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.operators.threads import ONE_BLAS_THREAD, effective_n_jobs
from isopleth.streaming import Streaming


class StreamedDifference(Streaming, FittedDifference):
    """Fits a density difference to sums. A subclass has the parameters of :class:`LSDD`, and fits rows in memory."""

    length_scale: Any
    alpha: Any
    centers: Any
    cv: Any
    penalty: str
    random_state: Any
    _decisions: Decisions

    _solved = ("dual_coef_", "alpha_", "length_scale_", "log_volume_", "squared_l2_", "search_path_")

    def partial_fit(
        self, X: Any = None, Y: Any = None, sample_weight_x: Any = None, sample_weight_y: Any = None
    ) -> Self:
        """Add rows of one sample or both to those of earlier calls. No rows are kept.

        The first call settles, by its rows, which columns vary, the centres (drawn from them, where `centers` is no array) and
        the length scales to choose from. So it takes rows of both samples that are like those to come: some hundreds for each,
        in no order that matters. Whatever rows come later, and in whatever batches and order, the coefficients at a length
        scale and a ridge are those of one fit to all rows with these centres. What folds are asked about, the choice of
        several length scales and ridges among it, depends on the order of the rows as it would on a seed.

        The first call ends with a solve. After a later one, whatever is asked first takes the time of one, so that rows may
        come one by one. ``level_set`` needs rows to count and is refused.

        Parameters
        ----------
        X, Y : array-like or data frame of shape (n, n_features) and (n', n_features), optional
            Rows of the two samples; computed in float64. The first call needs both.
        sample_weight_x, sample_weight_y : array-like of shape (n,) and (n',), optional
            Weights, not negative. A row of weight 2 counts as two rows, in one fold.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If rows, weights or parameters cannot be used, `cv` is not a number, or there are too few rows to choose a length
            scale and a ridge.

        Warns
        -----
        DataWarning
            If the model was fitted by :meth:`fit`, which keeps no sums: its rows are forgotten. For constant columns.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import LSDD
        >>> rng = np.random.default_rng(0)
        >>> change = LSDD(length_scale=0.7, alpha=1.0, centers=50, random_state=0)
        >>> for day in range(5):
        ...     change = change.partial_fit(rng.normal(size=(100, 1)), rng.normal(1.0, size=(80, 1)))
        >>> (change.difference([[-1.0], [2.0]]) > 0).tolist()
        [True, False]
        """
        self._validate_params()
        running: DifferenceStatistics | None = self._sums_so_far()
        if running is None and (X is None or Y is None):
            raise InputError(
                f"{'X' if X is None else 'Y'} is missing; the first call of partial_fit needs both samples."
            )
        if X is None and Y is None:
            raise InputError("X and Y are missing; expected rows of one sample at least.")
        backend = Backend.of(Y if X is None else X)
        if running is None:
            if hasattr(self, "dual_coef_"):
                warn_of_new_beginning()
            self._forget()
            samples = TwoSamples.of(self, X, Y, sample_weight_x, sample_weight_y)
            self._decisions, _ = self._decide(samples, varying_columns(self, samples.rows))
            running = self._decisions.statistics(self._folds(self._decisions.searched), self.memory_limit, self.n_jobs)
        chunks = [
            _checked(self, name, rows, weights)
            for name, rows, weights in (("X", X, sample_weight_x), ("Y", Y, sample_weight_y))
        ]
        self.centers_ = backend.array(self._decisions.centers)
        with self._adding(running):
            for sample, chunk in enumerate(chunks):  # all of it has been checked before any of it is added
                if chunk is not None:
                    running.accumulate(sample, *chunk)
        return self

    def _decide(self, samples: TwoSamples, keep: np.ndarray) -> tuple[Decisions, np.ndarray | None]:
        """What rows of both samples, all there are or some, settle for the columns that vary; and which of them are centres."""
        frame = Frame.centred(samples.rows, keep)
        rows = frame.centre(samples.rows)
        scales, many = length_scales(self.length_scale, rows, samples.weights, keep, column_names(self))
        alphas, several = ridges(self.alpha)
        seed = int(check_random_state(self.random_state).randint(2**31))
        centers, chosen = choose_centers(self.centers, samples, seed)
        return Decisions(
            frame,
            centers,
            chosen is not None,
            scales,
            alphas,
            spread_within(rows, samples.weights),
            many or several,
            seed,
            self.penalty,
        ), chosen

    def _folds(self, searched: bool) -> int:
        """How many, where rows are not known before they are summed."""
        if not isinstance(self.cv, Integral):
            raise InputError("cv: expected a number of folds; folds of single rows can be named in fit alone.")
        return max(int(self.cv), 3 if searched else 2)

    def _forget(self) -> None:
        """Leave nothing of another fit: one that fails is to leave no mixture of two models."""
        super()._forget()
        self.__dict__.pop("_decisions", None)

    def _solve(self, sums: DifferenceStatistics) -> None:
        """The fit to the sums of partial fits, at the backend of the centres, which is that of the last rows."""
        backend = Backend.of(self.centers_)
        self._solve_at(self._decisions, sums, self._search(self._decisions, sums))
        to_backend(self, backend)

    def _solve_at(self, decisions: Decisions, running: DifferenceStatistics, found: CrossFitted | None) -> None:
        """The fit to sums with moments, at the length scales that a search has chosen."""
        with ONE_BLAS_THREAD:
            scale, near = decisions.scale(found), decisions.near(found)
            at = DifferenceSystem.of(running.at(running.place(scale)), decisions.penalty)
            self._keep(decisions, at, found)
            if not np.array_equal(near, scale):
                at = DifferenceSystem.of(running.at(running.place(near)), decisions.penalty)
            self._finish(SquaredL2Law.of(at, self.alpha_))

    def _search(self, decisions: Decisions, running: DifferenceStatistics) -> CrossFitted | None:
        """Cross-validation by sums at the candidates; None where a fold has no rows of a sample and nothing is to be chosen."""
        running.refuse_empty()
        least, folds = int(running.n_rows.min()), running.folds[0].folds
        if least < folds:
            if decisions.searched:
                raise InputError(
                    f"{'XY'[int(np.argmin(running.n_rows))]} has {least} row{'s' if least > 1 else ''} so far, too few for "
                    f"cross-validation in {folds} folds; begin with more, or give length_scale and alpha as numbers."
                )
            return None
        places = [running.place(scale) for scale in decisions.scales]
        workers = min(effective_n_jobs(self.n_jobs), fits_within(len(decisions.centers), self.memory_limit))
        with ONE_BLAS_THREAD:
            return cross_validate(
                lambda i, _: running.at(places[i]).systems(decisions.penalty),
                decisions.scales,
                decisions.alphas,
                workers,
            )

    def _keep(self, decisions: Decisions, at: DifferenceSystem, found: CrossFitted | None) -> None:
        """Coefficients, and what else is to be known of the fit at the chosen length scale and ridge."""
        frame, scale = decisions.frame, decisions.scale(found)
        self.alpha_ = float(decisions.alphas[0]) if found is None else found.path.best_alpha
        at.spectrum.check(self.alpha_)
        self.search_path_ = None if found is None else found.path
        self._frame, self.centers_ = frame.scaled(scale), decisions.centers
        self.length_scale_ = frame.by_column(scale)
        self._std_factor = deviation_factor(at, self.alpha_)
        self._estimates = in_sample(at, self.alpha_)
        if found is not None:
            self._estimates.update(cross_fitted=found.cross_fitted, lower_bound=found.lower_bound)
        self._held_out = np.empty((2, 0))
        self._means_coef = at.spectrum.solve(at.means, self.alpha_)
        self.log_volume_ = at.log_volume
        self.squared_l2_ = float(over_volume(self._estimates["cross_fitted"], self.log_volume_))

    def _finish(self, law: SquaredL2Law | None) -> None:
        """The law of intervals, and then what tells that there is a fit."""
        self._squared_l2_law = law
        self.dual_coef_ = self._means_coef[:, 0] - self._means_coef[:, 1]


def _checked(model: FittedDifference, name: str, rows: Any, weights: Any) -> tuple[np.ndarray, np.ndarray] | None:
    if rows is None:
        return None
    what = f"sample_weight_{name.lower()}"
    rows, weights = on_host(rows, name), on_host(weights, what)
    checked = speaking_of(name, "X", lambda: check_rows(model, rows, reset=False))
    return checked, speaking_of(what, "sample_weight", lambda: check_weights(weights, len(checked), added=True))
