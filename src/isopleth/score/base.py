"""Base class of the score estimators: rows are mapped to frame coordinates, scores back to the units of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.core.budget import Budget
from isopleth.core.errors import InputError, listed, warn_user
from isopleth.core.progress import ReportsProgress
from isopleth.core.rows import distinct_rows
from isopleth.core.scales import RULES, deviations, is_auto, loss_units, median, medians, resolve_length_scale
from isopleth.core.threads import ONE_BLAS_THREAD
from isopleth.frames import Frame, FrameMap, Scale, ScaleMap
from isopleth.frames.compose import chain, divided_by
from isopleth.frames.derivatives import value_and_divergence
from isopleth.kernels import Kernel, get_kernel
from isopleth.sampling import Target
from isopleth.sampling import sample as draw
from isopleth.score.field import GaussianBase, KernelTerm, Normalizer, ScoreField, Term, ZetaTerm, score_target
from isopleth.score.pullback import auto_frames, fit_map, hyvarinen_terms, mapped, without_far
from isopleth.score.selection import NEARLY_CONSTANT, Rows
from isopleth.score.spaces import SPACES, Space
from isopleth.solvers.regularizers import Regularizer, SpectralCutoff
from isopleth.tables.checks import CheckedRows, column_names, enter

# Scores need wider kernels than densities do: the median distance unless a class has a rule of its own.
_RULES = {**RULES, "auto": median}

# Ratio of the spreads of two columns above which the narrow columns dominate a loss in their units.
UNLIKE = 5.0


class FrameFit(NamedTuple):
    """Fit in frame coordinates. Coefficients that are None are computed when the score is first evaluated at other rows."""

    at_samples: Array
    centers: Array
    coefficients: Array | None
    factor: float
    report: dict[str, Any]


class Coordinates(NamedTuple):
    """The frame of a fit, its map, the length scale in the frame, and the name of the base measure."""

    frame: str | Frame
    map: FrameMap
    length_scale: np.ndarray
    base: str | None

    def as_rows(
        self,
        rows: np.ndarray,
        weights: np.ndarray,
        counts: np.ndarray,
        cv: int,
        backend: Backend,
    ) -> Rows:
        """Return distinct rows as cross-validation takes them; `counts` are the weights without far rows."""
        scale = self.length_scale
        unit = float(loss_units(scale, mapped(self.map, rows), counts)[0] / scale[0])
        return Rows(rows, weights, self.frame, scale, unit, cv, backend)


class ScoreEstimator(ReportsProgress, BaseEstimator, ABC):
    """Base class of score estimators.

    A subclass has the attributes below as parameters or class attributes, and defines :meth:`_fit_frame`.
    """

    kernel: str | Kernel
    space: str
    length_scale: Any
    base: str | None
    frame: str | Frame
    memory_limit: float
    n_jobs: int | None
    regularizer_: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel],
        "length_scale": [Real, str, "array-like"],
        "frame": [str, Frame],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    @abstractmethod
    def _fit_frame(
        self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None, backend: Backend
    ) -> FrameFit:
        """Fit to distinct rows `z`, whose `weights` count repetitions; the user's rows are on `backend`."""

    def _solve_coefficients(self, z: np.ndarray, weights: np.ndarray, backend: Backend) -> Array:
        """Compute the coefficients that :meth:`_fit_frame` has left out."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the score.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; computed in float64.
        y : ignored
            Present for the scikit-learn interface.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, not negative. A row of weight 2 counts as two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If there are fewer than two distinct rows, a column is constant, the kernel is not smooth enough, or rows, weights or
            parameters are invalid. The message says which and what to do.

        Warns
        -----
        DataWarning
            If the columns differ much in spread, and the rule for the length scale gives one to all.

        Notes
        -----
        If X is a tensor, the fitted arrays are tensors on its device, and computations over pairs of rows run there. Small
        systems are solved on the CPU, where launching work on a device would cost more than the solution. Landmarks, folds and
        the base measure are computed on the CPU too; ``search_path_`` and ``base_`` hold NumPy arrays.
        """
        self._validate_params()
        self._forget()
        table = enter(self, X, sample_weight, reset=True, min_samples=2)
        backend = table.backend
        rows, weights, place = distinct_rows(table.rows, table.weights)
        with ONE_BLAS_THREAD:  # the products of small matrices cost more with several threads than they gain
            space, z, base = self._resolve_frame(rows, weights, backend)
            fitted = self._fit_frame(space, z, weights, base, backend)
        self._centers, self._dual_coef = backend.array(fitted.centers), backend.array(fitted.coefficients)
        self.zeta_factor_, self.weights_ = fitted.factor, weights
        for name, value in fitted.report.items():
            setattr(self, name, value)
        self.grad_log_density_ = self._at_rows(table.rows, place, to_numpy(fitted.at_samples))
        return table.finish(self)

    def _forget(self) -> None:
        """Delete the results of an earlier fit, so that a fit that fails does not leave a mixture of two models."""
        for name in ("grad_log_density_", "weights_", "search_path_", "_centers"):
            self.__dict__.pop(name, None)

    def _resolve_frame(
        self, rows: np.ndarray, weights: np.ndarray, backend: Backend
    ) -> tuple[Space, np.ndarray, GaussianBase | None]:
        """Resolve what depends on the distinct rows: the space, the rows in frame coordinates, and the base measure there."""
        refuse_without_score(self, rows)
        space = SPACES[self.space](get_kernel(self.kernel).bind(rows.shape[1]), Budget.of(self))
        counts = without_far(rows, weights)
        found = self._choose_coordinates(space, rows, weights, counts, backend)
        self.frame_, self._map, self.length_scale_ = found.frame, found.map, found.length_scale
        self._frame, self._space = chain(found.map, divided_by(found.length_scale)), space
        self.unit_ = deviations(rows, counts)
        if _in_units(found.frame):
            self.unit_ = loss_units(found.length_scale, mapped(found.map, rows), counts)
        z = self._frame.forward(rows)
        self.base_ = GaussianBase.fit(z, counts) if found.base == "gaussian" else None
        return space, z, self.base_

    def _choose_coordinates(
        self, space: Space, rows: np.ndarray, weights: np.ndarray, counts: np.ndarray, backend: Backend
    ) -> Coordinates:
        """Return the frame, the length scale of each of its columns, and the name of the base, for distinct rows."""
        return self._coordinates(self.frame, rows, weights, counts)

    def _coordinates(
        self, frame: str | Frame, rows: np.ndarray, weights: np.ndarray, counts: np.ndarray
    ) -> Coordinates:
        """Return the coordinates of a frame, with the length scale that the parameter or the rule gives in it."""
        map = fit_map(frame, rows, counts)
        inside = mapped(map, rows)
        if frame is self.frame and not map.affine:
            warn_of_nearly_constant(self, rows, counts)
        if self.frame == "scale" and isinstance(self.length_scale, str) and self.length_scale in ("auto", "median"):
            warn_of_unlike_columns(self, inside)
        keep = np.ones(rows.shape[1], dtype=bool)
        scale = resolve_length_scale(self.length_scale, inside, weights, column_names(self), keep, rules=_RULES)
        return Coordinates(frame, map, scale, self.base)

    def _at_rows(self, X: np.ndarray, place: np.ndarray, at_samples: np.ndarray) -> np.ndarray:
        """Return the score at all rows X, given the score at the distinct ones; rows of weight 0 are evaluated like new rows."""
        inside = at_samples[place]
        without = place < 0
        if without.any():
            z = self._frame.forward(X[without])
            inside[without] = to_numpy(self._field().value(self._backend.array(z)))
        return self._in_rows(X, inside)

    def _in_rows(self, X: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return the score at rows X, given the score in frame coordinates."""
        out = self._frame.pullback(X, inside)
        return out if self._frame.affine else out + self._frame.grad_log_volume(X)

    def chosen(self) -> dict[str, Any]:
        """Return the parameters that the fit has chosen, with which a fit to other rows makes no search.

        Returns
        -------
        dict
            Values of `frame`, `length_scale`, `base` and `regularizer`, as far as these are parameters of the estimator.
        """
        check_is_fitted(self, "_centers")
        found = {
            "frame": self.frame_,
            "length_scale": self.length_scale_,
            "base": None if self.base_ is None else "gaussian",
            "regularizer": self.regularizer_,
        }
        parameters = self.get_params(deep=False)
        return {name: value for name, value in found.items() if name in parameters}

    @property
    def _backend(self) -> Backend:
        """The backend of the fitted arrays: that of the rows at fit, or NumPy after `load`."""
        return Backend.of(self._centers)

    @property
    def centers_(self) -> Array:
        """Centres of the kernels, in the units of the data."""
        check_is_fitted(self, "_centers")
        return self._backend.array(self._frame.inverse(to_numpy(self._centers)))

    @property
    def dual_coef_(self) -> Array:
        """The coefficient vector of each centre, in frame coordinates; truncated forms solve for them on first access."""
        check_is_fitted(self, "_centers")
        if self._dual_coef is None:
            found = self._solve_coefficients(to_numpy(self._centers), to_numpy(self.weights_), self._backend)
            self._dual_coef = self._backend.array(found)
        return self._dual_coef

    def _field(self) -> ScoreField:
        """Return the fitted score as a sum of terms in frame coordinates."""
        terms: list[Term] = [KernelTerm(self._space, self._centers, self.dual_coef_)]
        if self.zeta_factor_:  # only full forms have it, and their centres are the samples
            weights = to_numpy(self.weights_)
            share = self._backend.array(weights / weights.sum())
            terms.append(ZetaTerm(self._space, self._centers, share, self.zeta_factor_))
        if self.base_ is not None:
            terms.append(self.base_.at(self._backend))
        return ScoreField(tuple(terms))

    def _enter(self, X: Any) -> tuple[CheckedRows, Array]:
        """Return the checked rows, and the same rows in frame coordinates on the backend of the model."""
        check_is_fitted(self, "_centers")
        table = enter(self, X)
        return table, self._backend.array(self._frame.forward(table.rows))

    def grad_log_density(self, X: Any) -> Array:
        r"""Compute the score, :math:`\nabla \log p`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In reciprocal units of the columns.
        """
        table, z = self._enter(X)
        return table.answer(self._in_rows(table.rows, to_numpy(self._value(z))))

    def _value(self, z: Array) -> Array:
        """Return the score in frame coordinates, at rows in frame coordinates."""
        return self._field().value(z)

    def divergence(self, X: Any) -> Array:
        r"""Compute the divergence of the score, :math:`\sum_j \partial s_j/\partial x_j`, in closed form.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            In the units of the data.
        """
        table, z = self._enter(X)
        scale = self._one_scale()
        with np.errstate(over="ignore", under="ignore"):  # for data of size 1e-160 it overflows
            if scale is not None:
                return table.answer(to_numpy(self._field().divergence(z)) / scale / scale)
            unit = np.ones(self.n_features_in_)
            found = value_and_divergence(self._field(), self._frame, table.rows, unit, Budget.of(self))
        return table.answer(found[1])

    def _one_scale(self) -> float | None:
        """Return the length scale if all columns are divided by it and nothing else happens to them, or None."""
        scale = self._frame.scale if isinstance(self._frame, ScaleMap) else np.arange(2.0)
        return float(scale[0]) if (scale == scale[0]).all() else None

    def hyvarinen_loss(self, X: Any) -> float:
        r"""Compute the mean Hyvarinen loss of rows, :math:`\operatorname{div} s + |s|^2/2`, in closed form.

        For new rows with distribution q, its expectation is half the Fisher divergence :math:`E_q |\nabla \log q - s|^2` plus a
        constant that depends on q alone [1]_: lower is better. It is computed in the coordinates x/``unit_``; the losses of fits
        can be compared if these are the same, as they are for all fits to columns of equal standard deviation.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        float
            The loss, dimensionless.

        References
        ----------
        .. [1] A. Hyvarinen, "Estimation of non-normalized statistical models by score matching", JMLR 6, 2005.
        """
        table, z = self._enter(X)
        if _in_units(self.frame_):
            # Length scales and units have the same proportions.
            loss = np.mean(to_numpy(self._field().hyvarinen_terms(z)))
            with np.errstate(over="ignore"):  # it may be infinite if kernels are far narrower than the data
                unit = float(self.unit_[0] / self.length_scale_[0])
                return float(unit * (unit * loss)) if loss else 0.0
        terms = hyvarinen_terms(self._field(), self._frame, table.rows, to_numpy(self.unit_), Budget.of(self))
        return float(np.mean(terms))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus :meth:`hyvarinen_loss`: higher is better.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for the scikit-learn interface.

        Returns
        -------
        float
            Minus the loss, dimensionless.
        """
        return -self.hyvarinen_loss(X)

    def log_density(self, X: Any) -> Array:
        """Compute the log density, up to a constant, whose gradient is the score (curl-free space only).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats. Without a base measure it need not decrease far from the data. With one, :meth:`log_normalizer` estimates
            the constant.

        Raises
        ------
        InputError
            If the space is diagonal: such scores are not gradients.
        """
        table, z = self._enter(X)
        energy = to_numpy(self._field().energy(z))
        if self.base_ is None and self._frame.affine:  # a constant, like that of the energy itself
            return table.answer(energy)
        return table.answer(energy + self._frame.log_volume(table.rows))

    def log_normalizer(self, n_samples: int = 10_000, random_state: Any = None) -> Normalizer:
        """Estimate the logarithm of the integral of exp(:meth:`log_density`), by importance sampling from the base measure.

        Parameters
        ----------
        n_samples : int, default=10_000
            Number of draws.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        Normalizer
            The estimate, with the effective number of draws.

        Raises
        ------
        InputError
            If there is no base measure, or the space is diagonal.
        """
        check_is_fitted(self, "_centers")
        if self.base_ is None:
            raise InputError("a log density without a base measure need not integrate; fit with base='gaussian'.")
        return Normalizer.of(self._field(), self.base_, n_samples, random_state, self._backend)

    def sample(
        self, n_samples: int = 1, method: str = "auto", random_state: Any = None, verbose: bool | int = False
    ) -> Array:
        """Draw rows by Markov chains that start at the rows of the fit.

        :func:`isopleth.sampling.sample` does the same, has the parameters of the chains, and returns the diagnostics.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        method : {"auto", "mala", "hmc", "ula", "annealed"}, default="auto"
            The sampler. "auto" is "mala" for curl-free scores, whose log density is the exact limit of the chains, and "ula" for
            diagonal ones, whose draws are approximate.
        random_state : int, RandomState or None
            Seed.
        verbose : bool or int, default=False
            Whether to show a progress bar on standard error.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows in the units of the data, from all chains; draws of the same chain are correlated.

        Raises
        ------
        InputError
            If a parameter is invalid, or the method needs a log density and the score has none.

        Warns
        -----
        ConvergenceWarning
            If the diagnostics of the chains are poor.

        Notes
        -----
        Without a base measure the score tends to 0 far from the data, so its density need not integrate. Such draws are confined:
        beyond the ellipsoid that contains all rows the density falls like a normal one.
        """
        check_is_fitted(self, "_centers")
        chains = draw(self, n_samples, method=method, random_state=random_state, verbose=verbose)
        return self._backend.array(chains.rows)

    def _sampling_target(self) -> Target:
        """Return what Markov chains draw from."""
        check_is_fitted(self, "_centers")
        if getattr(self, "out_of_sample", "regularized") == "augmented":
            raise InputError(
                "scores with out_of_sample='augmented' depend on all rows that are asked together, so no chain can move by them; "
                "fit with the default out_of_sample."
            )
        return score_target(self)


def _in_units(frame: str | Frame) -> bool:
    """Tell whether a frame leaves columns in their units, so that length scales have these units too."""
    return isinstance(frame, str) and frame == "scale"


# Smallest half range of a column; its inverse is the largest. Outside, distances or scores overflow.
SMALLEST = 1e-305

# Least number of rows for a warning of different spreads: with fewer, the difference may be chance.
ENOUGH_ROWS = 20


def refuse_without_score(estimator: BaseEstimator, rows: np.ndarray) -> None:
    """Refuse distinct `rows` whose score is not defined or overflows."""
    if len(rows) < 2:
        raise InputError(
            f"X has {len(rows)} distinct row of positive weight (n_samples = 1 once merged); a score needs at least two."
        )
    low, high = rows.min(axis=0), rows.max(axis=0)
    constant = low == high
    if constant.any():
        raise InputError(f"constant columns have no score: {_named(estimator, constant)}; drop them first.")
    half = 0.5 * high - 0.5 * low
    wild = (half < SMALLEST) | (half > 1.0 / SMALLEST)
    if wild.any():
        j = int(np.argmax(wild))
        raise InputError(
            f"{column_names(estimator)[j]} spans twice {half[j]:.1e}, so that its length scale or its score would overflow; "
            f"rescale it to numbers nearer to 1."
        )


def _named(estimator: Any, columns: np.ndarray) -> str:
    """Return the names of the columns of a mask."""
    return listed([name for name, one in zip(column_names(estimator), columns, strict=True) if one])


# Relative size of the smallest eigenvalue of a correlation matrix from which on columns are taken for linearly dependent: the
# square of a few times the relative precision of numbers of single precision.
_DEPENDENT = 1e-13


def compared_frames(
    estimator: Any, rows: np.ndarray, weights: np.ndarray
) -> tuple[tuple[str | Frame, ...], tuple[str | None, ...]]:
    """Return the frames and the bases that cross-validation compares.

    The narrower a hyperplane in which many rows lie, the better the Hyvarinen loss of whitened coordinates or a Gaussian base,
    whose score across it grows without bound. There kernels stay in the given columns, without a base, and the user is warned.
    """
    frames = auto_frames(rows.shape[1]) if is_auto(estimator.frame) else (estimator.frame,)
    bases = (None, "gaussian") if estimator.base == "auto" else (estimator.base,)
    if len(frames) * len(bases) == 1:
        return frames, bases
    what = _without_density(rows, weights)
    if not what.any():
        return frames, bases
    some = (
        "is constant in nearly all rows" if what.sum() == 1 else "are linearly dependent or constant in nearly all rows"
    )
    warn_user(
        f"{_named(estimator, what)} {some}, so that the score across them is not determined: the fit takes frame='scale' and no "
        f"base where these are not given. Leave columns out."
    )
    return frames if len(frames) == 1 else ("scale",), bases[:1]


def _without_density(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return a mask of the columns that have one value in most rows, or else of those that are linearly dependent."""
    constant = _nearly_constant(rows, weights)
    if constant.any() or len(rows) <= rows.shape[1]:  # with few rows all columns depend on each other
        return constant
    share = weights / weights.sum()
    scaled = Scale().fit(rows, weights).forward(rows)
    centred = (scaled - share @ scaled) * np.sqrt(share)[:, None]
    _, singular, directions = np.linalg.svd(np.linalg.qr(centred, mode="r"))
    null = singular**2 <= _DEPENDENT * singular[0] ** 2
    return np.any(np.abs(directions[null]) > 1e-3, axis=0)


def _nearly_constant(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return a mask of the columns that have one value in most rows."""
    middle = medians(rows)
    equal = np.abs(rows - middle) <= 1e-12 * np.abs(middle)
    return np.asarray((weights / weights.sum()) @ equal >= NEARLY_CONSTANT)


def warn_of_nearly_constant(estimator: Any, rows: np.ndarray, weights: np.ndarray) -> None:
    """Warn of columns with one value in most rows: a map that makes them normal is as steep there as numbers allow."""
    what = _nearly_constant(rows, weights)
    if what.any():
        warn_user(
            f"{_named(estimator, what)}: one value in {NEARLY_CONSTANT:.0%} of the rows or more, near which scores in frame = "
            f"{estimator.frame!r} grow without bound; take frame='scale', or leave columns out."
        )


def warn_of_unlike_columns(estimator: BaseEstimator, rows: np.ndarray) -> None:
    """Warn if columns differ much in spread, where all get one length scale."""
    if len(rows) < ENOUGH_ROWS:
        return
    ordered, cut = np.sort(rows.T, axis=1), len(rows) // 20  # quantiles, since one outlier does not make a column wide
    spread = ordered[:, -1 - cut] - ordered[:, cut]
    least, most = int(np.argmin(np.where(spread > 0.0, spread, np.inf))), int(np.argmax(spread))
    if spread[most] > UNLIKE * spread[least] > 0.0:
        names = column_names(estimator)
        warn_user(
            f"{names[most]} spreads {spread[most] / spread[least]:.3g} times as far as {names[least]}, and all columns get one "
            f"length scale; standardise the columns, or give length_scale one number for each column."
        )


def warn_if_all_is_cut(regularizer: Regularizer, fitted: Array, largest: Callable[[], float]) -> None:
    """Warn if a threshold is above all eigenvalues, so that the result `fitted` is 0; `largest` returns the largest one."""
    if not isinstance(regularizer, SpectralCutoff) or regularizer.threshold is None:
        return
    if bool(namespace(fitted).any(fitted != 0.0)):
        return
    top = largest()
    if top < regularizer.threshold:
        warn_user(
            f"threshold = {regularizer.threshold:g} is above the largest eigenvalue, {top:.3g}: nothing is fitted, and the score "
            f"is 0, or that of the base; use a smaller threshold."
        )
