"""What all density estimators share: rows to a frame at the door, densities back to the units of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from isopleth._namespace import Array, Home, to_numpy
from isopleth.density.bounds import Bounds
from isopleth.density.fitted import FrameDensity
from isopleth.density.search import Fit, Search, run_search
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.home import settle
from isopleth.kernels import Kernel, get_kernel
from isopleth.length_scales import RULES, Rule, loss_units, resolve_length_scale
from isopleth.rows import merge_rows
from isopleth.validation import check_rows, check_weights, column_names, varying_columns, warn_few_rows


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

        Rows and weights are at the home that the density is to have."""

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
        home = Home.of(X)
        self._validate_params()
        self._forget()
        X = check_rows(self, X, reset=True, min_samples=2)
        weights = check_weights(sample_weight, len(X))
        names = [str(name) for name in self.feature_names_in_] if hasattr(self, "feature_names_in_") else None
        bounds = Bounds.of(self.bounds, column_names(self), names)
        bounds.check(X, weights > 0, column_names(self))
        rows, weights, place = merge_rows(_on_the_line(bounds, X, weights > 0), weights)
        keep = varying_columns(self, rows)
        frame = Frame.centred(rows, keep)
        kernel = get_kernel(self.kernel).bind(frame.dim)
        self._refuse(kernel)
        self._draw(kernel)
        warn_few_rows(len(rows), frame.dim)
        scale, unit = self._choose_length_scale(kernel, frame.centre(rows), weights, keep, home)
        frame = frame.scaled(scale)
        z = frame.enter(rows)
        density, report = self._fit_frame(kernel, home.send(z), home.send(weights))
        self._set_fit(kernel, frame, bounds, unit, report)
        self._keep(density, X, place, z, weights)
        self.log_normalizer_ = density.log_normalizer + frame.log_volume
        settle(self, home)
        return self

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
        self, kernel: Kernel, rows: np.ndarray, weights: np.ndarray, keep: np.ndarray, home: Home
    ) -> tuple[np.ndarray, np.ndarray]:
        """Length scale and unit of each kept column."""
        search = self.length_scale if isinstance(self.length_scale, Search) else None
        asked, what = (search.base, "base of the Search") if search else (self.length_scale, "length_scale")
        scale = resolve_length_scale(asked, rows, weights, column_names(self), keep, what, self._rules())
        unit = loss_units(scale, rows, weights)
        if search is not None:
            self.search_path_ = run_search(search, kernel, rows, weights, scale, unit, self._fitting_at(home))
            scale = self.search_path_.best_factor * scale
        return scale, unit

    def _fitting_at(self, home: Home) -> Fit:
        """The density of rows and weights that are on the host, at `home`."""
        return lambda kernel, z, weights: self._fit_frame(kernel, home.send(z), home.send(weights))[0]

    def _enter(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Checked rows, which of them are inside the bounds, and those in frame coordinates."""
        check_is_fitted(self, "log_normalizer_")
        X = check_rows(self, X, reset=False)
        inside = np.asarray(self._bounds.inside(X).all(axis=1))
        return X, inside, self._frame.enter(self._bounds.enter(X[inside]))

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
        home = Home.of(X)
        X, inside, z = self._enter(X)
        out = np.full(len(X), -np.inf)
        if len(z):
            out[inside] = self._fitted().log_unnormalized(z) - self.log_normalizer_ + self._log_slope(X[inside])
        return home.send(out)

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
        home = Home.of(X)
        X, inside, z = self._enter(X)
        out = np.full((len(X), self.n_features_in_), np.nan)
        if len(z):
            gradient = np.zeros((len(z), self.n_features_in_))
            gradient[:, self._frame.keep] = self._fitted().grad_log_density(z) / self._frame.scale
            gradient = self._bounds.gradient(X[inside], gradient)
            gradient[:, ~self._frame.keep] = 0.0
            out[inside] = gradient
        return home.send(out)

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
        X, inside, z = self._enter(X)
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
