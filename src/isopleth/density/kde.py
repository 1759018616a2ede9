"""KDE: kernel density estimation with the kernels, length-scale rules and methods of SOSREP, and its values on a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import fft
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Array, Backend, to_numpy
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT
from isopleth.core.errors import InputError, refuse_too_large
from isopleth.core.scales import Rule, deviations
from isopleth.core.threads import DEFAULT_N_JOBS, slices
from isopleth.density.debias import Drift, moved, scott_of_fourth_order
from isopleth.density.frame_density import ExpansionDensity, FrameDensity, MixtureDensity
from isopleth.density.row_kernels import RowKernelDensity
from isopleth.kernels import Gaussian, Kernel, get_kernel

# Nodes per length scale, at least, and length scales beyond which a Gaussian is below 2e-16 of its peak.
_NODES, _REACH = 8, 8.5
_ROWS = 2**15  # rows at once, so that their weights stay in the processor's cache
_POINTS, _MARGIN = (1024, 128), 4.0  # points along each of one or two columns, and length scales beyond the rows
_NODE_BYTES = 48  # a node is two numbers, and those of three transforms
# Largest error of a cubic through four nodes, over the fourth derivative times the fourth power of the step; the largest fourth
# derivative of a Gaussian; and the factor by which the cubics of one axis increase the error of the other.
_CUBIC, _FOURTH, _LEBESGUE = 9.0 / 16.0 / 24.0, 3.0, 1.25


class GridDensity(NamedTuple):
    """A density on a regular grid.

    Parameters
    ----------
    axes : tuple of ndarray
        The coordinates along each column, in the units of the data.
    density : ndarray of shape (len(axes[0]),) or (len(axes[0]), len(axes[1]))
        The density at the nodes, per product of units, at least 0.
    error : float
        Bound on the absolute error at every node.
    """

    axes: tuple[Array, ...]
    density: Array
    error: float


class _Axis:
    """One axis: the points asked for and the nodes between and beyond them, on a circle long enough that its ends do not meet."""

    def __init__(self, points: np.ndarray, length_scale: float) -> None:
        step = (points[-1] - points[0]) / (len(points) - 1)
        self.between = max(1, math.ceil(step * _NODES / length_scale))  # nodes from one point to the next
        self.step = step / self.between
        self.beyond = math.ceil(_REACH * length_scale / self.step) + 3
        self.inner = (len(points) - 1) * self.between + 1
        self.low, self.length_scale = points[0], length_scale
        self.size = fft.next_fast_len(self.inner + 2 * self.beyond + 1, real=True)

    def spread(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the node before each row, the weights (4, n) of the nodes around it, and which rows are near enough to count."""
        place = np.clip((x - self.low) / self.step + self.beyond, 0.0, self.size - 1.0)
        base = np.floor(place)
        u = place - base
        ahead, behind, last = u + 1.0, u - 1.0, u - 2.0
        cubic = [
            -u * behind * last / 6.0,
            ahead * behind * last / 2.0,
            -ahead * u * last / 2.0,
            ahead * u * behind / 6.0,
        ]
        near = (base >= 1) & (base < self.inner + 2 * self.beyond - 3)
        return base.astype(np.intp), np.stack(cubic), near

    def transformed(self) -> np.ndarray:
        """Return the transform of the kernel, which is even and therefore real."""
        away = np.minimum(np.arange(self.size), self.size - np.arange(self.size)) * self.step / self.length_scale
        return np.asarray(fft.fft(np.exp(-0.5 * away**2)).real)

    @property
    def error(self) -> float:
        """Largest error of a kernel between nodes, over its peak."""
        return _CUBIC * _FOURTH * (self.step / self.length_scale) ** 4


def grid_points(rows: np.ndarray, scale: np.ndarray, shift: np.ndarray, n_points: Any, limits: Any) -> list[np.ndarray]:
    """Return the points along each column, from what the caller asks for and the centred rows, or raise InputError."""
    dim = len(scale)
    count = np.asarray(_POINTS[dim - 1] if n_points is None else n_points)
    if count.dtype.kind not in "iu" or count.shape not in ((), (dim,)) or (count < 2).any():
        raise InputError(f"n_points = {n_points!r}: expected a number of points of at least 2, or one for each column.")
    if limits is None:
        ends = (
            np.stack([rows.min(axis=0) - _MARGIN * scale, rows.max(axis=0) + _MARGIN * scale], axis=1) + shift[:, None]
        )
    else:
        ends = np.asarray(limits, dtype=np.float64)
    if ends.shape != (dim, 2) or not np.isfinite(ends).all() or (ends[:, 0] >= ends[:, 1]).any():
        raise InputError(
            f"limits = {limits!r}: expected a pair (low, high), low < high, for each of the {dim} columns."
        )
    return [
        np.linspace(low, high, number)
        for (low, high), number in zip(ends, np.broadcast_to(count, dim).tolist(), strict=True)
    ]


def gaussian_sum_on_grid(
    rows: np.ndarray, shares: np.ndarray, length_scales: np.ndarray, points: list[np.ndarray], memory_limit: float
) -> tuple[np.ndarray, float]:
    """Return the sum of normal densities about weighted rows at the points of a regular grid, and a bound on its error."""
    axes = [_Axis(*pair) for pair in zip(points, length_scales, strict=True)]
    shape = [axis.size for axis in axes]
    what = f"{' x '.join(f'{size:,}' for size in shape)} nodes of the grid, {_NODES} a length scale,"
    refuse_too_large(what, _NODE_BYTES * math.prod(shape), memory_limit, "give narrower limits")
    binned = np.zeros(math.prod(shape))
    strides = [math.prod(shape[1:]), 1][-len(shape) :]
    for part in slices(len(rows), _ROWS):
        places, weights = np.zeros((1, 1), dtype=np.intp), shares[part][None]
        kept = np.ones(weights.shape[1], dtype=bool)
        for axis, stride, x in zip(axes, strides, rows[part].T, strict=True):
            base, cubic, near = axis.spread(x)
            kept &= near
            places = (places[:, None] + (base + np.arange(-1, 3)[:, None]) * stride).reshape(-1, len(x))
            weights = (weights[:, None] * cubic).reshape(-1, len(x))
        binned += np.bincount(places[:, kept].ravel(), weights[:, kept].ravel(), minlength=len(binned))
    half = axes[-1].size // 2 + 1
    kernel = axes[-1].transformed()[:half]
    if len(axes) > 1:
        kernel = axes[0].transformed()[:, None] * kernel
    total = fft.irfftn(fft.rfftn(binned.reshape(shape)) * kernel, shape)
    inner = tuple(slice(axis.beyond, axis.beyond + axis.inner, axis.between) for axis in axes)
    peak = 1.0 / float(np.prod(math.sqrt(2.0 * math.pi) * length_scales))
    error = sum(_LEBESGUE**j * axis.error for j, axis in enumerate(axes)) + 1e-13
    return np.maximum(total[inner], 0.0) * peak, float(error * peak * shares.sum())


class KDE(RowKernelDensity):
    r"""Kernel density estimate, :math:`p(x) = \sum_i w_i k(x_i, x) / \int k(0, x)\, dx` for weights of sum 1.

    A fit solves no equations, and every kernel can be sampled exactly [1]_ [2]_.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72"} or Kernel, default="gaussian"
        The kernel. It must have a finite integral and no negative values.
    length_scale : float, array of shape (n_features,), "auto", "scott", "median", "leave_one_out" or Search, default="auto"
        With ``frame="scale"``: length scale, one for all columns or one for each column, in the units of the data, or of their
        logarithms or logits for columns with `bounds`. In other frames a number is a multiple of Scott's rule in the
        coordinates of the frame, rules are computed there, and a Search compares log densities of held-out rows.
        "auto" and "scott" follow the standard deviation of each column and the number of rows ("auto" is "leave_one_out" for
        tables with words or missing cells in the frame "marginal"),
        "median" is the median distance of at most 1,000 distinct rows, and a :class:`~isopleth.Search` takes the best of a
        grid. "leave_one_out" finds a scale for each column, categories included unless `category_scale` has numbers, by the
        leave-one-out likelihood of a kernel density estimate of at most 500 rows; it needs a kernel that is a product over
        columns.
    frame : {"scale", "whiten", "smooth", "marginal", "gp1", "gp2", "gp4", "auto", "deep"} or Frame, default="auto"
        Coordinates in which the kernels have one shape. "scale" shifts and scales the columns, as in the papers.
        The other words and objects map the rows by more: "whiten" removes correlations, "marginal" makes each column normal,
        "gp1" does both, "gp2" and "gp4" do it two and four times, "smooth" does so by
        functions that have a Hyvarinen loss. "auto" is a mixture of densities in "scale", "whiten",
        "marginal" and "gp1" at seven length scales, with the weights that maximise the log density of held-out rows. Beside
        Gaussian kernels with ``length_scale="auto"``, mixtures of normal densities in "whiten" and "gp1" are candidates too: near
        clusters of several sizes, kernels of one shape do not suffice. So are normal densities of shrunken covariance in "scale"
        and "marginal", for few rows of many columns.
        "deep" adds "gp2" and "gp4", and has no :meth:`marginal` and :meth:`conditional`. Tables with
        words or missing cells take "auto", which is "marginal" for them, "marginal" and "scale"; without these, kernels that
        are not radial have "scale". At most 4,096 rows of numbers have kernels, except in "scale".
    bounds : None, dict or sequence, optional
        Bounds of columns: a dict from names or numbers of columns to pairs (low, high), or one pair for each column; None
        is an open end. A column with a lower bound is fitted as :math:`\log(x - low)`, one with an upper bound as
        :math:`-\log(high - x)`, one with both as their sum, a logit. Densities, gradients, samples and levels are
        still in the units of the data; on and beyond a bound the density is 0.
    categorical : None, name, or sequence of names or numbers of columns, optional
        Columns of numbers that are categories. Columns of words and truth values of a frame are categories anyway.
    category_scale : "frequency", float, or array of shape (n_categorical,), default="frequency"
        Kernel of two different categories, between 0 and 1; for categories it has the role of the length scale of numbers.
        "frequency" depends on the frequencies and the number of rows. A Search varies it together with the length scales.
    debias : None or estimator of a score, default=None
        A score estimator such as ``KernelScore()``: the rows are moved by half the squared length scale times the score that a
        clone of it estimates before they are smoothed, which cancels the leading term of the bias (see the notes). It needs the
        Gaussian kernel and complete rows of numbers. "auto" is then wider.
    memory_limit : float, default=2**30
        Bytes that tiles of the kernel matrix and scratch may take together; the matrix is never stored.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    verbose : bool or int, default=False
        Whether to show the progress of a Search and of :meth:`impute` on standard error.

    Attributes
    ----------
    centers_ : ndarray of shape (n_centers, n_features)
        The distinct rows of positive weight; with `debias` the places that they were moved to.
    rows_ : ndarray of shape (n_centers, n_features)
        The distinct rows before they were moved; only with `debias`.
    score_ : estimator
        The score estimator, fitted to the rows divided by the standard deviations of the columns; only with `debias`.
    weights_ : ndarray of shape (n_centers,)
        Their summed weights.
    dual_coef_ : ndarray of shape (n_centers,)
        The weights over their sum.
    log_normalizer_ : float
        log of the integral of the kernel, in the units of the data (or of logarithms and logits, for columns with bounds).
    length_scale_ : ndarray of shape (n_features,)
        With ``frame="scale"``: the length scale of each column; NaN for constant columns, which are dropped.
    components_ : tuple of Component
        In other frames: the densities of the mixture, each with `frame`, `factor`, `weight`, `map` and `scale`. The rows of
        ``dual_coef_`` are then the coefficients of each.
    stack_path_ : StackPath
        With several candidates: their held-out log densities and weights.
    unit_ : ndarray of shape (n_features,)
        With ``frame="scale"``: the unit of each column in :meth:`hyvarinen_loss`: its length scale, times a factor that brings
        their geometric mean to that of the standard deviations. In other frames: these. NaN for constant columns.
    category_scale_ : ndarray of shape (n_features,)
        The category scale of each column, NaN for numbers; only after a fit to words or missing cells.
    search_path_ : SearchPath
        The result of the Search, if `length_scale` is one.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had names.

    Warns
    -----
    DataWarning
        For constant columns and for fewer distinct rows than columns.

    See Also
    --------
    SOSREP : The square of a sum of kernels, whose coefficients are solved for.

    Notes
    -----
    The expectation of the estimate with a Gaussian kernel is :math:`p + \tfrac{\ell^2}{2}\Delta p + O(\ell^4)`. Points that are
    moved by :math:`\tfrac{\ell^2}{2}\nabla\log p` have the density :math:`p - \tfrac{\ell^2}{2}\Delta p` to first order, so with
    `debias` the bias is of order :math:`\ell^4`; moving data before smoothing was proposed by [3]_. The rule "auto" is then
    :math:`\sigma_j n^{-1/(d+8)}`, which balances this bias and the variance.

    References
    ----------
    .. [1] M. Rosenblatt, "Remarks on some nonparametric estimates of a density function", Annals of Mathematical
       Statistics 27, 1956.
    .. [2] E. Parzen, "On estimation of a probability density function and mode", Annals of Mathematical Statistics 33, 1962.
    .. [3] E. Choi, P. Hall, "Data sharpening as a prelude to density estimation", Biometrika 86, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import KDE
    >>> hours = np.random.default_rng(0).exponential(size=(500, 1))
    >>> density = KDE(kernel="gaussian", bounds={0: (0, None)}).fit(hours)
    >>> density.score_samples([[-0.1]])  # outside the bounds
    array([-inf])
    >>> bool((density.sample(100, random_state=0) > 0).all())
    True
    """

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        length_scale: Any = "auto",
        frame: Any = "auto",
        bounds: Any = None,
        categorical: Any = None,
        category_scale: Any = "frequency",
        debias: Any = None,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.frame = frame
        self.bounds = bounds
        self.categorical = categorical
        self.category_scale = category_scale
        self.debias = debias
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def evaluate_on_grid(self, n_points: Any = None, limits: Any = None) -> GridDensity:
        r"""Return the density on a regular grid, by a fast Fourier transform.

        The rows are spread over nodes at most an eighth of the length scale :math:`\ell_j` apart, by cubic interpolation of the
        kernel, and convolved with it; the nodes include the grid. With nodes :math:`\delta_j` apart, the density differs from
        the sum over all rows, which is ``exp(score_samples(X))``, by at most

        .. math:: \frac{1}{\prod_j \sqrt{2\pi}\,\ell_j} \sum_j \frac{9}{128} \Bigl(\frac{5}{4}\Bigr)^{j-1}
            \Bigl(\frac{\delta_j}{\ell_j}\Bigr)^4 ,

        which is below 2e-5 of the largest value of one kernel in one column, and below 4e-5 in two. Values far below that are
        lost: where the tails matter, take :meth:`score_samples`.

        Parameters
        ----------
        n_points : int or sequence of int, optional
            Number of points along each column, at least 2; 1,024 for one column and 128 for each of two when left out.
        limits : sequence of pairs of float, optional
            First and last point along each column, in the units of the data; four length scales beyond the rows when left out.

        Returns
        -------
        GridDensity
            The named tuple (axes, density, error): the coordinates along each column, the densities, and the bound on their
            absolute error.

        Raises
        ------
        InputError
            If the estimate is no sum of Gaussian kernels in one or two scaled columns without bounds, if the points or limits
            cannot be used, or if the nodes do not fit in `memory_limit`.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import KDE
        >>> X = np.random.default_rng(0).normal(size=(500, 1))
        >>> (x,), density, error = KDE(frame="scale").fit(X).evaluate_on_grid()
        >>> round(float(np.trapezoid(density, x)), 4), error < 2e-5
        (1.0, True)
        """
        check_is_fitted(self)
        if not self._on_scaled_columns():
            raise InputError(
                "evaluate_on_grid needs a sum of Gaussian kernels in one or two columns of numbers that vary: "
                "KDE(frame='scale', kernel='gaussian') without bounds. Take score_samples at the points of the grid."
            )
        backend, scale, shift = Backend.of(self.centers_), self._frame.scale, self._frame.shift
        rows = to_numpy(self.centers_) - shift
        points = grid_points(rows, scale, shift, n_points, limits)
        centred = [axis - middle for axis, middle in zip(points, shift, strict=True)]
        found, error = gaussian_sum_on_grid(rows, to_numpy(self.dual_coef_), scale, centred, float(self.memory_limit))
        return GridDensity(tuple(map(backend.array, points)), backend.array(found), error)

    def _on_scaled_columns(self) -> bool:
        """Tell whether the density is a sum of Gaussian kernels in one or two columns, each scaled."""
        if self._is_stack or self._of_kinds or self.bounds is not None or not self._frame.keep.all():
            return False
        return isinstance(get_kernel(self.kernel), Gaussian) and self._frame.dim <= 2

    _density_type: ClassVar[type[ExpansionDensity]] = MixtureDensity

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RowKernelDensity._parameter_constraints,
        "debias": [None, HasMethods(["fit", "chosen"])],
    }

    def _refuse(self, kernel: Kernel) -> None:
        kernel.log_integral()
        if self.debias is not None and not isinstance(kernel, Gaussian):
            raise InputError(f"debias moves rows by the bias of the Gaussian kernel; take that in place of {kernel!r}.")

    def _why_scaled(self, kernel: Kernel) -> str | None:
        return "debias moves rows by a score" if self.debias is not None else super()._why_scaled(kernel)

    def _forget(self) -> None:
        super()._forget()
        for name in ("rows_", "score_"):
            self.__dict__.pop(name, None)

    def _takes_kinds(self) -> bool:
        return self.debias is None and super()._takes_kinds()

    def _refuse_kinds(self) -> None:
        super()._refuse_kinds()
        raise InputError("debias needs complete rows of numbers; leave it out for words and missing cells.")

    @property
    def _instead(self) -> str:
        return "debias=None" if self.debias is not None else super()._instead

    def _rules(self) -> Mapping[str, Rule]:
        return {**super()._rules(), "auto": scott_of_fourth_order} if self.debias is not None else super()._rules()

    def _drift(self, rows: np.ndarray, weights: np.ndarray) -> Drift | None:
        if self.debias is None:
            return None
        drift = Drift.of(self.debias, rows, weights)
        self.score_ = drift.score
        return drift

    def _keep(
        self, density: FrameDensity, X: np.ndarray, place: np.ndarray, z: np.ndarray, weights: np.ndarray
    ) -> None:
        super()._keep(density, X, place, z, weights)
        if self.debias is not None:
            self.rows_ = self.centers_
            self.centers_ = self._coordinates.leave(z)

    def _fitted_rows(self) -> np.ndarray:
        return to_numpy(self.rows_) if self.debias is not None else super()._fitted_rows()

    def _refitted_rows(self, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if self.debias is None:
            return z
        scale = self._frame.scale
        own = self._frame.centre(self._bounds.forward(self._fitted_rows()))
        drift = Drift(self.score_, deviations(own, to_numpy(self.weights_)), own)
        return moved(z, drift.refitted(z * scale, weights), scale)

    def _coefficients(self, kernel: Kernel, z: Array, shares: Array) -> tuple[Array, dict[str, Any]]:
        return shares, {}
