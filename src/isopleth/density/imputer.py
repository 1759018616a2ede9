"""A transformer that fills missing cells from a density."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from isopleth.core.errors import InputError
from isopleth.core.progress import ReportsProgress
from isopleth.density.column_scales import LEAVE_ONE_OUT
from isopleth.density.corrections import Calibration
from isopleth.density.sosrep import SOSREP
from isopleth.density.table_density import STRATEGIES
from isopleth.kernels.product import ProductLaplacian
from isopleth.tables.checks import TakesKinds
from isopleth.tables.given import Given


class DensityImputer(ReportsProgress, TakesKinds, TransformerMixin, BaseEstimator):
    """Fill missing cells of a table from the conditional density given the known cells of the row.

    Parameters
    ----------
    density : SOSREP or KDE, optional
        The density to fit, with a kernel that is a product over columns; None is ``SOSREP(ProductLaplacian(),
        length_scale="leave_one_out", frame="scale")``.
    strategy : {"regression", "mean", "draw"}, default="regression"
        Numbers by linear regression on the known cells around the mean of similar rows, the conditional mean of the density, or
        a joint draw of all missing cells of a row. The first two take the likeliest word.
    random_state : int, RandomState or None, default=None
        Seed of draws.
    verbose : bool or int, default=False
        Whether to show the progress of :meth:`transform` on standard error. A `density` that is given has a parameter of its own.

    Attributes
    ----------
    density_ : SOSREP or KDE
        The fitted density.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had names.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import DensityImputer
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> rows = np.hstack([x, 2 * x])
    >>> rows[0, 1] = np.nan
    >>> filled = DensityImputer().fit_transform(rows)
    >>> bool(abs(filled[0, 1] - 2 * x[0, 0]) < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "density": [None, HasMethods(["fit", "impute"])],
        "strategy": [StrOptions(set(STRATEGIES))],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        density: Any = None,
        strategy: str = "regression",
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.density = density
        self.strategy = strategy
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; cells may be missing.
        y : ignored
            Present for the scikit-learn interface.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As ``fit`` of the density.
        """
        self._validate_params()
        default = SOSREP(ProductLaplacian(), length_scale=LEAVE_ONE_OUT, frame="scale", verbose=self.verbose)
        density = default if self.density is None else clone(self.density)
        with self._named_for(density):
            self.density_ = density.fit(X, sample_weight=sample_weight)
        self._calibration: Calibration | None = None  # of the first intervals
        self.n_features_in_ = density.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(density, "feature_names_in_"):
            self.feature_names_in_ = density.feature_names_in_
        return self

    def transform(self, X: Any) -> Any:
        """Return a copy of the table with its missing cells filled.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        data frame, tensor or ndarray of shape (n_samples, n_features)
            Known cells are as they were; columns that the fit left out keep their gaps.

        Raises
        ------
        InputError
            As ``impute`` of the density.
        """
        check_is_fitted(self, "density_")
        with self._named_for(self.density_):
            return self.density_.impute(X, strategy=self.strategy, random_state=self.random_state)

    @contextmanager
    def _named_for(self, density: Any) -> Iterator[None]:
        """Name this class where scikit-learn refuses rows in the name of the density, which the user need not know."""
        try:
            yield
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise ValueError(str(error).replace(type(density).__name__, type(self).__name__)) from error

    def impute_interval(self, X: Any, confidence_level: float = 0.9) -> tuple[Any, Any]:
        """Compute intervals that hold missing numbers with a probability, given the known cells of their rows.

        They are about the local regression of the strategy "regression", whatever the strategy is: quantiles of the rows of the
        fit, moved along its line to the known cells. The levels of the quantiles are calibrated: between them are known cells
        of the column that are predicted without their rows. The first call after a fit calibrates, later ones keep that.
        Quantiles of the density itself are answered by ``density_.conditional(...).interval()``.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows with the columns of the fit.
        confidence_level : float, default=0.9
            Probability of an interval.

        Returns
        -------
        lower, upper : data frames or ndarrays of shape (n_samples, n_features)
            Ends of the intervals; both the cell itself where it is known. Frames of the library of a frame `X` have the columns
            that are used, times as times, and nothing in columns of words; arrays have NaN there.

        Raises
        ------
        InputError
            If `confidence_level` is not between 0 and 1, for rows on or beyond bounds, for kernels that are no product over
            columns, and for densities in other frames than "scale".

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import DensityImputer
        >>> x = np.random.default_rng(0).normal(size=(200, 1))
        >>> rows = np.hstack([x, 2 * x])
        >>> rows[0, 1] = np.nan
        >>> lower, upper = DensityImputer().fit(rows).impute_interval(rows)
        >>> bool(lower[0, 1] < 2 * x[0, 0] < upper[0, 1])
        True
        """
        check_is_fitted(self, "density_")
        given = Given.of(X)
        table, density = self.density_._checked(given), self.density_._table_density()
        if self._calibration is None:
            self._calibration = density.density.calibration()
        ends = density.intervals(table.rows, confidence_level, self._calibration)
        return density.like(given, ends[0], table.backend), density.like(given, ends[1], table.backend)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, which are those of the fit.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns, if the fit was to an array.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "density_")
        return np.asarray(_check_feature_names_in(self, input_features), dtype=object)
