"""What all density estimators share: rows to a frame at the door, densities back to the units of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from isopleth.backend import Array, Backend, to_numpy
from isopleth.density.bounds import Bounds
from isopleth.density.fitted import ExpansionDensity, FrameDensity
from isopleth.density.search import Fit, Search, run_search
from isopleth.entry import Table, column_names, enter, on_host, varying_columns, warn_few_rows
from isopleth.errors import InputError
from isopleth.expansion import KernelExpansion
from isopleth.frame import Frame
from isopleth.kernels import Kernel, get_kernel
from isopleth.length_scales import RULES, Rule, loss_units, resolve_length_scale
from isopleth.operators.threads import interruptible
from isopleth.rows import distinct_rows, folds_of


class DensityEstimator(DensityMixin, BaseEstimator, ABC):
    """A density that is fitted and evaluated in frame coordinates.

    A subclass has the parameters `kernel`, `length_scale`, `bounds`, `memory_limit` and `n_jobs`, and defines
    :meth:`_refuse`, :meth:`_fit_frame`, :meth:`_keep` and :meth:`_fitted`.
    """

    kernel: str | Kernel
    length_scale: Any
    bounds: Any
    memory_limit: float
    n_jobs: int | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel],
        "length_scale": [Real, str, "array-like", Search],
        "bounds": [None, dict, "array-like"],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _refuse(self, kernel: Kernel) -> None:
        """Raise InputError for a bound kernel that cannot serve, and for more than memory holds, before any work is done."""

    @abstractmethod
    def _fit_frame(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        """The density of distinct rows `z` in frame coordinates, and what else is to be known of this fit, by attribute.

        Rows and weights are at the backend that the density is to have."""

    @abstractmethod
    def _keep(
        self, density: FrameDensity, X: np.ndarray, place: np.ndarray, z: np.ndarray, weights: np.ndarray
    ) -> None:
        """Set the attributes that :meth:`_fitted` needs, from the rows `X`, the place of each among the distinct rows `z` of
        the frame (-1: none), and the weights of these."""

    @abstractmethod
    def _fitted(self) -> FrameDensity:
        """The density from the attributes that :meth:`_keep` set."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _draw(self, kernel: Kernel) -> None:
        """Draw what a fit draws at random, once for all the densities that it makes; there is nothing of this kind in most."""
        return

    def _rules(self) -> Mapping[str, Rule]:
        """The rules that `length_scale` may name."""
        return RULES

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; computed in float64. The fit of a tensor, or of another array of the array API, runs on its device, and the
            fitted attributes are arrays there.
        y : ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, not negative. A row of weight 2 counts as two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the rows, weights, kernel, length scale or bounds cannot be used; the sentence says which and what to do.
        """
        self._validate_params()
        self._forget()
        table = enter(self, X, sample_weight, reset=True, min_samples=2)
        return self._fit_table(self._reduced(table))

    def _reduced(self, table: Table) -> Table:
        """Return the rows and weights to fit: all of them, unless a subclass takes fewer."""
        return table

    def _fit_table(self, table: Table) -> Self:
        """Fit the density to checked rows; the number of columns and their names are set."""
        X, weights, backend = table.rows, table.weights, table.backend
        names = [str(name) for name in self.feature_names_in_] if hasattr(self, "feature_names_in_") else None
        bounds = Bounds.of(self.bounds, column_names(self), names)
        bounds.check(X, weights > 0, column_names(self))
        inside = _on_the_line(bounds, X, weights > 0)
        rows, weights, place = interruptible(100.0 * X.size, distinct_rows, inside, weights)
        keep = varying_columns(self, rows, stacklevel=4)
        frame = interruptible(100.0 * X.size, Frame.centred, rows, keep)
        kernel = get_kernel(self.kernel).bind(frame.dim)
        self._refuse(kernel)
        self._draw(kernel)
        warn_few_rows(len(rows), frame.dim, stacklevel=4)
        scale, unit = self._choose_length_scale(kernel, frame.centre(rows), weights, keep, backend)
        frame = frame.scaled(scale)
        z = frame.enter(rows)
        density, report = self._fit_frame(kernel, backend.array(z), backend.array(weights))
        self._set_fit(kernel, frame, bounds, unit, report)
        self._keep(density, X, place, z, weights)
        self.log_normalizer_ = density.log_normalizer + frame.log_volume
        return table.finish(self)

    def _forget(self) -> None:
        """Be no fitted model until the end of a fit: one that fails leaves no mixture of two."""
        for name in ("log_normalizer_", "search_path_"):
            self.__dict__.pop(name, None)

    def _set_fit(self, kernel: Kernel, frame: Frame, bounds: Bounds, unit: np.ndarray, report: dict[str, Any]) -> None:
        """Set what every density is known by but its normaliser, which comes last: it says that all is there."""
        self._kernel, self._frame, self._bounds = kernel, frame, bounds
        self.length_scale_ = frame.by_column(frame.scale)
        self.unit_ = frame.by_column(unit)
        for name, value in report.items():
            setattr(self, name, value)

    def _choose_length_scale(
        self, kernel: Kernel, rows: np.ndarray, weights: np.ndarray, keep: np.ndarray, backend: Backend
    ) -> tuple[np.ndarray, np.ndarray]:
        """Length scale and unit of each kept column."""
        search = self.length_scale if isinstance(self.length_scale, Search) else None
        asked, what = (search.base, "base of the Search") if search else (self.length_scale, "length_scale")
        scale = resolve_length_scale(asked, rows, weights, column_names(self), keep, what, self._rules())
        unit = loss_units(scale, rows, weights)
        if search is not None:
            self.search_path_ = run_search(search, kernel, rows, weights, scale, unit, self._fitting_at(backend))
            scale = self.search_path_.best_factor * scale
        return scale, unit

    def _fitting_at(self, backend: Backend) -> Fit:
        """The density of rows and weights that are on the host, at `backend`."""
        return lambda kernel, z, weights: self._fit_frame(kernel, backend.array(z), backend.array(weights))[0]

    def _enter(self, X: Any) -> tuple[Table, np.ndarray, np.ndarray]:
        """Return the checked rows, a mask of those inside the bounds, and these in frame coordinates."""
        check_is_fitted(self, "log_normalizer_")
        table = enter(self, X)
        inside = np.asarray(self._bounds.inside(table.rows).all(axis=1))
        return table, inside, self._frame.enter(self._bounds.enter(table.rows[inside]))

    def _log_slope(self, X: np.ndarray) -> np.ndarray:
        """What log densities of rows inside the bounds gain by the map of bounded columns to the whole line."""
        return np.asarray(self._bounds.log_slope(X)[:, self._frame.keep].sum(axis=1))

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row, normalised.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows, of any array library and on any device.

        Returns
        -------
        ndarray of shape (n_samples,)
            A tensor on the device of `X`, where that is one.
            log p, in nats, per unit of volume of the kept columns; minus infinity on and beyond bounds. Far from the data,
            where p underflows, sums of kernels that are nowhere negative are computed in the log domain. Other kernels
            (SDO) are exact to about 1e-12 of their peak and 0 where they fall below 1e-17 of it: the log density of rows
            that far from every centre is noise, then minus infinity. Random features are noise much sooner, and minus
            infinity where they are not above it.
        """
        table, inside, z = self._enter(X)
        out = np.full(len(inside), -np.inf)
        if len(z):
            out[inside] = (
                self._fitted().log_unnormalized(z) - self.log_normalizer_ + self._log_slope(table.rows[inside])
            )
        return table.answer(out)

    def score(self, X: Any, y: Any = None) -> float:
        """Sum of the log densities of rows.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        float
            In nats.
        """
        return float(np.sum(to_numpy(self.score_samples(X))))

    def grad_log_density(self, X: Any) -> np.ndarray:
        r"""Gradient of the log density, :math:`\nabla \log p`.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows, of any array library and on any device.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            A tensor on the device of `X`, where that is one.
            In reciprocal units of the columns; 0 in constant columns. Rows on or beyond a bound have none, nor have those
            where random features are not above their noise: NaN.
        """
        table, inside, z = self._enter(X)
        out = np.full((len(inside), self.n_features_in_), np.nan)
        if len(z):
            gradient = np.zeros((len(z), self.n_features_in_))
            gradient[:, self._frame.keep] = self._fitted().grad_log_density(z) / self._frame.scale
            gradient = self._bounds.gradient(table.rows[inside], gradient)
            gradient[:, ~self._frame.keep] = 0.0
            out[inside] = gradient
        return table.answer(out)

    def hyvarinen_loss(self, X: Any) -> float:
        r"""Mean Hyvarinen loss of rows, :math:`\operatorname{tr} \nabla^2 \log p + |\nabla \log p|^2/2`, exactly.

        Of rows that were not fitted, it is up to a constant of their distribution q half the Fisher divergence
        :math:`E_q |\nabla \log q - \nabla \log p|^2`, which needs no normaliser [1]_: the lower, the better. It is taken in
        the coordinates x/``unit_``, so that densities whose length scales have the same proportions can be compared;
        columns with bounds count as the logarithms or logits in which they are fitted.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows. Those equal to a centre are left out for kernels of smoothness 1 and less, whose Laplacian is infinite
            there.

        Returns
        -------
        float
            Without a unit. Infinite if the sum of kernels is not positive at some row, as sums of kernels with negative
            values (SDO) need not be, if random features are not above their noise there, or if a row is on or beyond a
            bound.

        Raises
        ------
        InputError
            In one column, for kernels that are as rough as the Laplacian: the loss has atoms at the centres, which other
            rows never see. For random features of kernels of smoothness 1 and less. If no row is left.

        References
        ----------
        .. [1] A. Hyvarinen, "Estimation of non-normalized statistical models by score matching", JMLR 6, 2005.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import SOSREP
        >>> X = np.random.default_rng(0).normal(size=(1000, 1))
        >>> losses = [SOSREP(length_scale=h).fit(X[:500]).hyvarinen_loss(X[500:]) for h in (0.05, 0.6, 5.0)]
        >>> int(np.argmin(losses))
        1
        """
        _, inside, z = self._enter(X)
        kernel = self._kernel
        if kernel.bound_dim == 1 and kernel.smoothness <= 0.5:
            raise InputError(
                f"the Hyvarinen loss of {kernel!r} in one column does not see its kinks at the centres; "
                "fit with a smoother kernel, such as 'matern32', 'matern52' or 'gaussian'."
            )
        density = self._fitted()
        if not inside.all() or not density.positive(z).all():
            return float("inf")
        terms = density.hyvarinen_terms(z)
        if kernel.smoothness <= 1.0:
            terms = terms[terms != -np.inf]
        if not len(terms):
            raise InputError(
                f"every row of X is one that {kernel!r} was fitted to, where its Hyvarinen loss is minus infinity; pass other "
                "rows, or fit with a smoother kernel, such as 'matern52' or 'gaussian'."
            )
        kept = int(np.argmax(self._frame.keep))
        ratio = float(self.unit_[kept]) / float(self.length_scale_[kept])
        return float(ratio**2 * np.mean(terms))


def _on_the_line(bounds: Bounds, X: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Rows of positive weight with their bounded columns on the whole line; the others as they are."""
    out = X.copy()
    out[counted] = bounds.enter(X[counted])
    return out


class KernelDensity(DensityEstimator):
    """A density made of one kernel a distinct row.

    A subclass has the parameters `kernel`, `length_scale`, `bounds`, `memory_limit` and `n_jobs`, and defines
    :attr:`_density_type`, :meth:`_refuse` and :meth:`_fit_frame`.
    """

    # What the fitted sum of kernels means as a density.
    _density_type: ClassVar[type[ExpansionDensity]]

    def _keep(
        self, density: FrameDensity, X: np.ndarray, place: np.ndarray, z: np.ndarray, weights: np.ndarray
    ) -> None:
        self.centers_ = np.empty((len(z), X.shape[1]))
        self.centers_[place[place >= 0]] = X[place >= 0] + 0.0  # -0.0 is 0.0
        self.weights_ = weights
        self.dual_coef_ = cast(ExpansionDensity, density).expansion.coefficients

    def _fitted(self) -> ExpansionDensity:
        z = Backend.of(self.dual_coef_).array(self._frame.enter(self._bounds.enter(to_numpy(self.centers_))))
        expansion = KernelExpansion(self._kernel, z, self.dual_coef_, self.memory_limit, self.n_jobs)
        return self._density_type(expansion)

    def level_set(self, mass: Any) -> Any:
        """Log-density threshold of the highest-density region that holds `mass` of the rows' own distribution.

        The region is ``score_samples(X) >= level_set(mass)``, its boundary an isopleth. The threshold is a quantile of the log
        densities of held-out rows, in five folds that keep repeated rows together, at the fitted length scale: training rows
        themselves would look too likely.

        Parameters
        ----------
        mass : float or array-like
            Mass inside, between 0 and 1.

        Returns
        -------
        float or ndarray of the shape of `mass`
            Thresholds for :meth:`score_samples`; a tensor where `mass` is one with an axis.

        Raises
        ------
        InputError
            If `mass` is not between 0 and 1.
        """
        check_is_fitted(self, "log_normalizer_")
        backend = Backend.of(mass, "mass")
        asked = np.asarray(on_host(mass, "mass"))
        if asked.dtype.kind not in "fi" or not ((asked > 0) & (asked < 1)).all():
            raise InputError(f"mass = {mass!r}: expected numbers between 0 and 1, both left out.")
        centers, weights = to_numpy(self.centers_), to_numpy(self.weights_)
        fit = self._fitting_at(Backend.of(self.dual_coef_))
        held_out = cross_fitted(
            self._frame.enter(self._bounds.enter(centers)),
            weights,
            lambda rows, weights, test: fit(self._kernel, rows, weights).log_density(test),
        )
        held_out += self._log_slope(centers) - self._frame.log_volume
        levels = weighted_quantile(held_out, weights, 1.0 - asked)
        return backend.array(levels) if asked.ndim else float(levels)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw independent rows from the density, exactly.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Constant columns keep their value. A tensor on the device of the fitted attributes where these are tensors.

        Raises
        ------
        NotImplementedError
            For the square of a sum of kernels (SOSREP) other than the Gaussian: it is no mixture that can be drawn from
            directly.
        """
        check_is_fitted(self, "log_normalizer_")
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples = {n_samples!r}: expected a whole number of rows, at least 1.")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = self._fitted().sample(int(n_samples), rng)
        some = to_numpy(self.centers_[:1, ...])
        rows = self._bounds.leave(self._frame.leave(z, self._bounds.enter(some)[0]))
        rows[:, ~self._frame.keep] = some[:, ~self._frame.keep]
        return Backend.of(self.dual_coef_).array(rows)

    def plot(self, columns: Any = None, masses: Any = (0.5, 0.8, 0.95, 0.99), rows: Any = None, ax: Any = None) -> Any:
        """Draw the regions that hold stated masses, by :func:`isopleth.plotting.plot_density`.

        Parameters
        ----------
        columns : sequence of names or numbers, optional
            The columns to draw.
        masses : array-like, default=(0.5, 0.8, 0.95, 0.99)
            Masses of the regions, as for :meth:`level_set`.
        rows : array-like or data frame of shape (n_samples, n_features), optional
            Rows to draw as points.
        ax : matplotlib Axes, optional
            Where to draw; a new figure when left out.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.plotting import plot_density  # plotting stands above the estimators and is not needed by them

        return plot_density(self, columns=columns, masses=masses, rows=rows, ax=ax)


def cross_fitted(
    rows: np.ndarray, weights: np.ndarray, score: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Score of each distinct row under a fit to the other folds: `score(train_rows, train_weights, test_rows)`."""
    # The order of distinct rows, and so the folds, depends on the order of neither rows nor columns as they came.
    fold = folds_of(len(rows), seed=0)
    out = np.empty(len(rows))
    for k in range(fold.max() + 1):
        test = fold == k
        out[test] = score(rows[~test], weights[~test], rows[test])
    return out


def weighted_quantile(values: np.ndarray, weights: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Smallest value whose cumulative share of the weight exceeds `q`."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    place = np.searchsorted(cumulative, q * (1 + 1e-12), side="right")
    return values[order][np.minimum(place, len(values) - 1)]
