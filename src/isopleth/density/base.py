"""Base class of the density estimators: rows are mapped to frame coordinates, densities back to the units of the data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Array, Backend, requires_gradient, to_numpy
from isopleth.core.errors import InputError, require
from isopleth.core.progress import ReportsProgress
from isopleth.core.rows import distinct_rows
from isopleth.core.scales import RULES, Rule, ScaledColumns, bounded, deviations, loss_units, resolve_length_scale
from isopleth.core.threads import interruptible
from isopleth.density.coordinates import ColumnCoordinates
from isopleth.density.debias import Drift, moved
from isopleth.density.frame_density import ExpansionDensity, FrameDensity
from isopleth.density.search import Fit, Search, run_search
from isopleth.density.stack import (
    MOST_JUDGED,
    MOST_KERNELS,
    ROUGH,
    FrameOptions,
    StackDensity,
    StackRule,
    chosen_members,
    frames_by_name,
    rows_with_kernels,
)
from isopleth.frames import BoundedMap, Frame, Scale
from isopleth.kernels import Kernel, get_kernel
from isopleth.tables.checks import CheckedRows, column_names, enter, given_names, varying_columns, warn_few_rows


class DensityEstimator(ReportsProgress, DensityMixin, BaseEstimator, ABC):
    """Base class of density estimators, which fit and evaluate in frame coordinates.

    A subclass has the parameters `kernel`, `length_scale`, `frame`, `bounds`, `memory_limit` and `n_jobs`, and defines
    :meth:`_refuse`, :meth:`_fit_frame`, :meth:`_keep` and :meth:`_fitted_scaled`.
    """

    kernel: str | Kernel
    frame: Any

    # Most rows with kernels in other frames than that of scaled columns.
    _most_kernels: ClassVar[int] = MOST_KERNELS
    length_scale: Any
    bounds: Any
    memory_limit: float
    n_jobs: int | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel],
        "length_scale": [Real, str, "array-like", Search],
        "frame": [str, Frame],
        "bounds": [None, dict, "array-like"],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _refuse(self, kernel: Kernel) -> None:
        """Raise InputError, before any computation, if the bound kernel is unsuitable or memory does not suffice."""

    @abstractmethod
    def _fit_frame(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        """Fit a density to distinct rows `z` in frame coordinates, on its backend; return it and fitted attributes by name."""

    @abstractmethod
    def _keep(
        self, density: FrameDensity, X: np.ndarray, place: np.ndarray, z: np.ndarray, weights: np.ndarray
    ) -> None:
        """Set the attributes from which :meth:`_fitted` rebuilds the density; `place` has each row's index in `z`, or -1."""

    @abstractmethod
    def _fitted_scaled(self) -> FrameDensity:
        """Return the density from the attributes that :meth:`_keep` has set."""

    def _fitted(self) -> FrameDensity:
        """Return the density in the coordinates of the columns, shifted and scaled."""
        return StackDensity(self.components_) if self._is_stack else self._fitted_scaled()

    @property
    def _is_stack(self) -> bool:
        """Tell whether the kernels are in other frames than that of scaled columns."""
        return hasattr(self, "components_")

    @property
    def _only_scaled(self) -> bool:
        """Tell whether the user asks for columns that are shifted and scaled."""
        return isinstance(self.frame, Scale) or self.frame == "scale"

    def _why_scaled(self, kernel: Kernel) -> str | None:
        """Say what needs frame='scale', if something does."""
        return f"{kernel!r} has no distances of rows" if kernel.by_columns else None

    def _frames(self, kernel: Kernel) -> dict[str, Frame] | None:
        """Return the frames of the fit by name; None where columns are only shifted and scaled."""
        if self._only_scaled:
            return None
        frames = frames_by_name(self.frame, kernel.bound_dim)
        why = self._why_scaled(kernel)
        if why is None:
            return frames
        self._refuse_frame(why)
        return None

    def _refuse_frame(self, why: str) -> None:
        """Refuse what has one meaning in frame='scale' and another in the frame that is asked for."""
        of_columns = not isinstance(self.length_scale, Real)  # such length scales have one meaning only
        if not self._only_scaled and not (self.frame == "auto" and of_columns):
            raise InputError(
                f"frame = {self.frame!r} with length_scale = {self.length_scale!r}: {why}; take frame='scale', where length "
                "scales are in the units of the columns."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _draw_random(self, kernel: Kernel) -> None:
        """Draw the random numbers of a fit, once for all densities that it fits; most estimators need none."""
        return

    def _drift(self, rows: np.ndarray, weights: np.ndarray) -> Drift | None:
        """Return the score of centred rows, if these are moved by it before the fit."""
        return None

    def _rules(self) -> Mapping[str, Rule]:
        """Return the rules that `length_scale` may name."""
        return RULES

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows; computed in float64. The fit to a tensor, or to another array of the array API, runs on its device, and the
            fitted attributes are arrays there.
        y : ignored
            Present for the scikit-learn interface.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights. A row of weight 2 counts as two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the rows, weights, kernel, length scale or bounds are invalid. The message says which and what to do.
        """
        self._validate_params()
        self._forget()
        table = enter(self, X, sample_weight, reset=True, min_samples=2)
        return self._fit_table(self._reduce(table))

    def _reduce(self, table: CheckedRows) -> CheckedRows:
        """Return the rows and weights to fit; a subclass may select some of them."""
        return table

    def _fit_table(self, table: CheckedRows) -> Self:
        """Fit the density to checked rows, after the number and the names of the columns have been set."""
        X, weights, backend = table.rows, table.weights, table.backend
        bounds = BoundedMap.of(self.bounds, column_names(self), given_names(self))
        bounds.check(X, weights > 0, column_names(self))
        inside = _on_real_line(bounds, X, weights > 0)
        rows, weights, place = interruptible(100.0 * X.size, distinct_rows, inside, weights)
        keep = varying_columns(self, rows)
        frame = interruptible(100.0 * X.size, ScaledColumns.centred, rows, keep)
        kernel = get_kernel(self.kernel).bind(frame.dim)
        self._refuse(kernel)
        self._draw_random(kernel)
        warn_few_rows(len(rows), frame.dim)
        frames = self._frames(kernel)
        if frames is not None:
            self._fit_stack(frames, kernel, frame, bounds, X, rows, weights, place, backend)
            return table.finish(self)
        drift = self._drift(frame.centre(rows), weights)
        scale, unit = self._choose_length_scale(kernel, frame.centre(rows), weights, keep, backend, drift)
        frame = frame.scaled(scale)
        z = frame.enter(rows) if drift is None else moved(frame.enter(rows), drift.at_rows, scale)
        density, report = self._fit_frame(kernel, backend.array(z), backend.array(weights))
        self._set_fit(kernel, frame, bounds, report)
        self.length_scale_, self.unit_ = frame.by_column(frame.scale), frame.by_column(unit)
        self._keep(density, X, place, z, weights)
        self.log_normalizer_ = density.log_normalizer + frame.log_volume
        return table.finish(self)

    def _forget(self) -> None:
        """Delete the results of an earlier fit, so that a fit that fails does not leave a mixture of two models."""
        for name in ("log_normalizer_", "search_path_", "stack_path_", "components_", "length_scale_", "unit_"):
            self.__dict__.pop(name, None)

    def _fit_stack(
        self,
        frames: dict[str, Frame],
        kernel: Kernel,
        frame: ScaledColumns,
        bounds: BoundedMap,
        X: np.ndarray,
        rows: np.ndarray,
        weights: np.ndarray,
        place: np.ndarray,
        backend: Backend,
    ) -> None:
        """Fit kernels in other frames than that of scaled columns; `frame` is centred."""
        frame = frame.scaled(deviations(frame.centre(rows), weights))
        y = frame.enter(rows)
        options = FrameOptions.of(self.length_scale, frames, self._rules(), kernel, y, weights)
        rule = self._stack_rule(options, kernel, backend, len(y))
        members, path = chosen_members(rule, y, weights, frame.log_volume)
        chosen, mass = rows_with_kernels(y, weights, self._most_kernels, self.memory_limit, self.n_jobs)
        density, report = rule.fitted(members, y, weights, chosen, mass)
        self._set_fit(kernel, frame, bounds, path | report)
        self.components_, self.unit_ = density.components, frame.by_column(frame.scale)
        kernels = np.full(len(rows), -1)
        kernels[chosen] = np.arange(len(chosen))
        self._keep(density, X, np.where(place >= 0, kernels[place], -1), y[chosen], mass)
        self.log_normalizer_ = frame.log_volume

    def _stack_rule(self, options: FrameOptions, kernel: Kernel, backend: Backend, rows: int) -> StackRule:
        """Return how components are fitted; those that are only compared are solved to a residual of 1e-3."""
        rough, workers = self._parallel_copy(backend, min(rows, MOST_JUDGED), kernel.bound_dim)
        if hasattr(rough, "tol"):
            rough = copy(rough)
            rough.tol = max(ROUGH, rough.tol)
        verbose = getattr(self, "verbose", False)
        return StackRule(options, kernel, self._fit_frame, rough._fit_frame, backend, workers, verbose)

    def _set_fit(self, kernel: Kernel, frame: ScaledColumns, bounds: BoundedMap, report: dict[str, Any]) -> None:
        """Set the attributes common to all densities but the normaliser; that is set last and marks the model as fitted."""
        self._kernel, self._frame, self._bounds = kernel, frame, bounds
        for name, value in report.items():
            setattr(self, name, value)

    def _choose_length_scale(
        self,
        kernel: Kernel,
        rows: np.ndarray,
        weights: np.ndarray,
        keep: np.ndarray,
        backend: Backend,
        drift: Drift | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the length scale and the unit of each kept column."""
        search = self.length_scale if isinstance(self.length_scale, Search) else None
        asked, what = (search.base, "base of the Search") if search else (self.length_scale, "length_scale")
        scale = resolve_length_scale(asked, rows, weights, column_names(self), keep, what, self._rules())
        unit = loss_units(scale, rows, weights)
        if search is not None:
            one, workers = self._parallel_copy(backend, len(rows), kernel.bound_dim)
            fit, verbose = one._fitting_at(backend), getattr(self, "verbose", False)

            def at(factor: float) -> tuple[Kernel, np.ndarray, float]:
                with np.errstate(over="ignore"):
                    return kernel, bounded(rows / (factor * scale)), math.fsum(np.log(factor * scale))

            mover = None if drift is None else partial(drift.mover, rows, weights)
            criterion = search.criterion_for(kernel)
            self.search_path_ = run_search(search, criterion, scale, weights, at, fit, unit, mover, workers, verbose)
            scale = self.search_path_.best_factor * scale
        return scale, unit

    def _fitting_at(self, backend: Backend) -> Fit:
        """Return a function that fits NumPy rows and weights on `backend`."""
        return lambda kernel, z, weights: self._fit_frame(kernel, backend.array(z), backend.array(weights))[0]

    def _parallel_copy(self, backend: Backend, rows: int, columns: int) -> tuple[Self, int]:
        """Return an estimator that fits to folds of so many rows, and how many of its fits run at once in threads."""
        return self, 1

    def _checked(self, X: Any) -> CheckedRows:
        """Return the checked rows of a question to a fitted density."""
        check_is_fitted(self, "log_normalizer_")
        return enter(self, X)

    @property
    def _coordinates(self) -> ColumnCoordinates:
        """Return the map of rows to frame coordinates."""
        return ColumnCoordinates(self._bounds, self._frame, np.full(len(self._frame.keep), np.nan))

    def score_samples(self, X: Any) -> np.ndarray:
        """Compute the normalised log density of each row.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows, of any array library and on any device.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log densities in nats, per unit of volume of the kept columns; minus infinity on and beyond bounds. If `X` is a
            tensor, the result is a tensor on its device.

        Notes
        -----
        Far from the data, where p underflows, sums of nonnegative kernels are computed in the log domain. Other kernels (SDO)
        have an error of about 1e-12 of their peak and are 0 where they fall below 1e-17 of it, so the log density of rows that
        far from every centre is noise, and minus infinity further away. Random features (:class:`~isopleth.RandomFeatureSOSREP`)
        have a much larger error, and far rows get minus infinity; use :class:`~isopleth.SOSREP` with `landmarks` if such rows
        matter.

        The log densities of :class:`~isopleth.KDE` and :class:`~isopleth.SOSREP` of a tensor that requires a gradient have one.
        """
        if requires_gradient(X):
            densities = _functions_of_tensors()
            if self._is_stack:
                return densities.log_density_of_rows(self, X)
            return densities.score_samples(self._expansion_density(), self._frame, self.log_normalizer_, X)
        table = self._checked(X)
        out: np.ndarray = table.answer(self._log_density(table))
        return out

    def _expansion_density(self) -> ExpansionDensity:
        """Return the density as a sum of kernels, for derivatives in its argument."""
        check_is_fitted(self, "log_normalizer_")
        if self._is_stack:
            raise InputError(
                "X requires a gradient, and gradients of densities in frames have no derivatives; give X.detach(), or fit with "
                "frame='scale'."
            )
        bounded = bool(np.isfinite([self._bounds.low, self._bounds.high]).any())
        plain = getattr(self, "schema_", None) is None and not bounded
        density = self._fitted() if plain else None
        if not isinstance(density, ExpansionDensity) or density.expansion.kernel.by_columns:
            raise InputError(
                "X requires a gradient, which only sums of radial kernels over numeric columns without bounds pass on; give "
                "X.detach()."
            )
        return density

    def _log_density(self, table: CheckedRows) -> np.ndarray:
        constant, density = self.log_normalizer_ - self._frame.log_volume, self._fitted()
        return self._coordinates.log_density(table.rows, lambda z: density.log_unnormalized(z) - constant)

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the sum of the log densities of rows.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for the scikit-learn interface.

        Returns
        -------
        float
            The sum, in nats.
        """
        return float(np.sum(to_numpy(self.score_samples(X))))

    def grad_log_density(self, X: Any) -> np.ndarray:
        r"""Compute the gradient of the log density, :math:`\nabla \log p`.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows, of any array library and on any device.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In reciprocal units of the columns; 0 in constant columns. NaN for rows on or beyond a bound, and for rows where
            random features are below their noise. If `X` is a tensor, the result is a tensor on its device.

        Notes
        -----
        If `X` is a tensor that requires a gradient, what :class:`~isopleth.KDE` and :class:`~isopleth.SOSREP` return has a
        derivative, for kernels of a :attr:`~isopleth.kernels.Kernel.smoothness` above 1. It is NaN where the density underflows.
        """
        if requires_gradient(X):
            return _functions_of_tensors().grad_log_density(self._expansion_density(), self._frame, X)
        table = self._checked(X)
        out: np.ndarray = table.answer(self._gradient(table))
        return out

    def _gradient(self, table: CheckedRows) -> np.ndarray:
        return self._coordinates.gradient(table.rows, self._fitted().grad_log_density)

    def hyvarinen_loss(self, X: Any) -> float:
        r"""Compute the mean Hyvarinen loss of rows, :math:`\operatorname{tr} \nabla^2 \log p + |\nabla \log p|^2/2`, exactly.

        For new rows with distribution q, its expectation is half the Fisher divergence
        :math:`E_q |\nabla \log q - \nabla \log p|^2` plus a constant that depends on q alone [1]_: lower is better. It needs no
        normaliser. It is computed in the coordinates x/``unit_``, so that densities whose length scales have the same
        proportions can be compared; columns with bounds count as the logarithms or logits in which they are fitted.

        Parameters
        ----------
        X : array-like, tensor or data frame of shape (n_samples, n_features)
            Rows. For kernels of smoothness 1 or less, whose Laplacian is infinite at the centres, rows equal to a centre are
            left out.

        Returns
        -------
        float
            The loss, dimensionless. Infinite if the sum of kernels is not positive at some row (possible for kernels with
            negative values such as SDO), if random features are below their noise there, or if a row is on or beyond a bound.

        Raises
        ------
        InputError
            For mixtures over frames, and frames without second derivatives. In one column, for kernels as rough as the Laplacian,
            because the loss has atoms at the centres, which other rows never hit. For random features of kernels of smoothness 1
            or less. If no row is left.

        References
        ----------
        .. [1] A. Hyvarinen, "Estimation of non-normalized statistical models by score matching", JMLR 6, 2005.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import SOSREP
        >>> X = np.random.default_rng(0).normal(size=(1000, 1))
        >>> losses = [SOSREP(length_scale=h, frame="scale").fit(X[:500]).hyvarinen_loss(X[500:]) for h in (0.05, 0.6, 5.0)]
        >>> int(np.argmin(losses))
        1
        """
        table = self._checked(X)
        if table.missing.any():
            raise InputError(
                "X has missing cells, for which this is not defined; drop those rows or fill them with impute."
            )
        at = self._coordinates
        inside, kernel = at.inside(table.rows), self._kernel
        if kernel.bound_dim == 1 and kernel.smoothness <= 0.5:
            raise InputError(
                f"the Hyvarinen loss of {kernel!r} in one column leaves out its kinks at the centres; "
                "fit with a smoother kernel, such as 'matern32', 'matern52' or 'gaussian'."
            )
        density = self._fitted()
        if not inside.all() or not density.positive(z := at.enter(table.rows)).all():
            return float("inf")
        terms = density.hyvarinen_terms(z)
        if kernel.smoothness <= 1.0:
            terms = terms[terms != -np.inf]
        if not len(terms):
            raise InputError(
                f"every row of X is one that {kernel!r} was fitted to, where its Hyvarinen loss is minus infinity; pass other "
                "rows, or fit with a smoother kernel, such as 'matern52' or 'gaussian'."
            )
        if self._is_stack:
            return float(np.mean(terms))
        kept = int(np.argmax(self._frame.keep))
        ratio = float(self.unit_[kept]) / float(self.length_scale_[kept])
        return float(ratio**2 * np.mean(terms))


def _functions_of_tensors() -> Any:
    """Return the functions of tensors that require a gradient, which are part of an extra."""
    return require("isopleth.torch.densities", "torch", "the gradient of a density")


def _on_real_line(bounds: BoundedMap, X: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Return a copy of the rows with bounded columns mapped to the real line in rows of positive weight."""
    out = X.copy()
    out[counted] = bounds.forward(X[counted])
    return out
