"""Difference of two kernel density estimates, as a baseline."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Array, Backend, to_numpy
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError
from isopleth.core.scales import ScaledColumns, is_auto
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.density import KDE
from isopleth.density.search import Search
from isopleth.difference.coordinates import BalancedColumns, balanced
from isopleth.difference.gaussian_system import over_volume
from isopleth.difference.samples import TwoSamples, enter_both
from isopleth.kernels import Gaussian
from isopleth.operators import Operator
from isopleth.tables.checks import CheckedRows, enter


class KDEDifference(BaseEstimator):
    r"""Difference of Gaussian kernel density estimates of two samples, with a separate length scale for each.

    A baseline for :class:`LSDD`. The length scale that is best for a density is too large for the difference, so that the
    squared L2 distance is too small, the more so the more columns there are [1]_.

    Parameters
    ----------
    length_scale : float, array of shape (n_features,), "auto", "scott", "median" or Search, default="auto"
        Length scale or rule for both densities, see :class:`KDE`; "auto" searches the length scale of the largest held-out
        likelihood for each.
    frame : {"auto", "balanced", "scale"}, default="auto"
        Coordinates in which the length scales stand, as for :class:`LSDD`: "balanced" removes the correlations within the samples
        and leaves volumes as they are, "scale" is the columns, and "auto" is "scale" if length scales are numbers.
    memory_limit : float, default=2**30
        Bytes that tiles of the kernel matrix and scratch may take together.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.

    Attributes
    ----------
    densities_ : tuple of two KDE
        The fitted densities, of rows in the coordinates.
    squared_l2_ : float
        Squared L2 distance :math:`\int (\hat p - \hat q)^2`, in closed form.

    References
    ----------
    .. [1] N. H. Anderson, P. Hall, D. M. Titterington, "Two-sample test statistics for measuring discrepancies between two
       multivariate probability density functions using kernel-based density estimates", Journal of Multivariate Analysis 50,
       1994.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.difference import KDEDifference
    >>> rng = np.random.default_rng(0)
    >>> baseline = KDEDifference().fit(rng.normal(size=(300, 1)), rng.normal(1.0, size=(200, 1)))
    >>> (baseline.difference([[-1.0], [2.0]]) > 0).tolist()
    [True, False]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "length_scale": [Real, str, "array-like", Search],
        "frame": [StrOptions({"auto", "balanced", "scale"})],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        length_scale: Any = "auto",
        frame: str = "auto",
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
    ) -> None:
        self.length_scale = length_scale
        self.frame = frame
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any, sample_weight_x: Any = None, sample_weight_y: Any = None) -> Self:
        """Fit both densities.

        Parameters
        ----------
        X, Y : array-like or data frame of shape (n, n_features) and (n', n_features)
            Rows of the two samples. If X is an array of a library other than NumPy, the densities are fitted in that library
            and on its device.
        sample_weight_x, sample_weight_y : array-like of shape (n,) and (n',), optional
            Weights, not negative.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If a sample cannot be used, or a column is constant in one of them.
        """
        self._validate_params()
        x, y = enter_both(self, X, Y, sample_weight_x, sample_weight_y, min_samples=2)
        self._coordinates = self._frame_of(x, y)
        self.densities_ = p, q = self._density(x, "X", x.backend), self._density(y, "Y", x.backend)
        sums, log_volumes = np.array([self._inner(p, p), self._inner(p, q), self._inner(q, q)]).T
        unit = log_volumes.min()  # reciprocal volumes may overflow, and their difference would be lost
        self.squared_l2_ = float(over_volume(np.array([1.0, -2.0, 1.0]) * sums @ np.exp(unit - log_volumes), unit))
        return self

    def _frame_of(self, x: CheckedRows, y: CheckedRows) -> BalancedColumns | None:
        """Return the coordinates of the densities; None for the columns themselves."""
        given = not isinstance(self.length_scale, (str, Search))
        if self.frame == "scale" or (self.frame == "auto" and given):
            return None
        samples = TwoSamples.of(x, y)
        columns = ScaledColumns.centred(samples.rows, np.ones(samples.rows.shape[1], dtype=bool))
        found = balanced(columns, samples.rows, samples.weights)
        return found if isinstance(found, BalancedColumns) else None

    def _entered(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in the coordinates of the densities."""
        return rows if self._coordinates is None else self._coordinates.centre(rows)

    def _density(self, table: CheckedRows, name: str, backend: Backend) -> KDE:
        """Fit the density of one sample; refuse columns that are constant in it."""
        counted = table.rows[table.weights > 0]
        if (counted.min(axis=0) == counted.max(axis=0)).any():
            where = "" if len(counted) == len(table.rows) else " in its rows of positive weight"
            raise InputError(
                f"{name} has constant columns{where}, which have no density; drop them from both samples first."
            )
        scale = Search(criterion="likelihood") if is_auto(self.length_scale) else self.length_scale
        return KDE(length_scale=scale, frame="scale", memory_limit=self.memory_limit, n_jobs=self.n_jobs).fit(
            backend.array(self._entered(table.rows)), None, table.weights
        )

    def _inner(self, one: KDE, other: KDE) -> tuple[float, float]:
        """Integrate the product of two densities, a sum over pairs of centres; return it times a volume, and the log of that."""
        backend, of_one, of_other = Backend.of(one.centers_), to_numpy(one.centers_), to_numpy(other.centers_)
        scale = np.hypot(to_numpy(one.length_scale_), to_numpy(other.length_scale_))
        shift = np.median(of_one, axis=0)
        x, y = (backend.array((centers - shift) / scale) for centers in (of_one, of_other))
        sums = Operator(Gaussian(), x, y, budget=Budget.of(self)).matvec(other.dual_coef_)
        log_volume = 0.5 * x.shape[1] * math.log(2.0 * math.pi) + math.fsum(np.log(scale))
        return float(one.dual_coef_ @ sums), log_volume

    def difference(self, X: Any) -> Array:
        """Compute the difference of the densities at each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; their library and device are those of the answer.

        Returns
        -------
        array of shape (n_samples,)
            p - q, per unit of volume.
        """
        check_is_fitted(self, "densities_")
        table = enter(self, X)
        z = self._entered(table.rows)
        p, q = (np.exp(density.score_samples(z)) for density in self.densities_)
        return table.answer(p - q)
