"""SOSREP: a density p = f^2/Z whose root f is regularised in a reproducing kernel Hilbert space."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.core.arrays import NUMPY
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError
from isopleth.core.parts import ArrayParts, Parts, take_columns
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.density.landmarks import choose_landmarks
from isopleth.density.row_kernels import RowKernelDensity
from isopleth.density.solver import RootSolver
from isopleth.kernels import Kernel
from isopleth.solvers import SCALING_SOLVERS
from isopleth.tables.checks import CheckedRows, given_names


class SOSREP(RowKernelDensity):
    r"""Normalised Sobolev-regularised pre-density: a density :math:`p = f^2/Z`.

    The root f minimises :math:`-\sum_i w_i \log f(x_i)^2 + |f|_H^2` over the reproducing kernel Hilbert space H of a kernel, on
    the branch f > 0 [1]_. It is :math:`f = \sum_i \alpha_i k(x_i, \cdot)` with :math:`\alpha_i f(x_i) = w_i`, which is solved
    exactly as a symmetric scaling of the kernel matrix. :math:`Z = \int f^2` has a closed form, so
    :meth:`score_samples` is a normalised log density.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel, default="gaussian"
        The kernel. Its square must be integrable; the square of "imq" is integrable in one column only.
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
    solver : {"auto", "fixed_point", "newton", "coordinate_descent", "natural_gradient", "standard_gradient"}, default="auto"
        "auto" takes the fixed-point iteration for kernels without negative values, and Newton's method for other kernels and if
        the iteration does not converge. "coordinate_descent" works for every kernel but is several times slower. The two
        gradients are those of the papers, for comparison: the natural one may not converge for kernels with negative values,
        the standard one is slow and often does not converge.
    landmarks : int, optional
        Number of rows, at least 2, at which kernels are placed, for data too large for a kernel matrix of all rows. Landmarks
        are drawn at random with a fixed seed. Each gets the weight of all rows whose nearest landmark it is, with distances
        in standard deviations of the columns. Frames are fitted to the landmarks. Time and memory grow linearly with the
        rows. None is all rows, which takes a time that grows with their square if ``frame="scale"``: of 50,000 rows or more, give
        landmarks there. If there are no more distinct rows than `landmarks`, the fit equals that to all rows.
    tol : float, default=1e-8
        Largest :math:`|\alpha_i f(x_i)/w_i - 1|` to accept.
    memory_limit : float, default=2**30
        Bytes that the kernel matrix and scratch arrays may take together. The matrix is stored if it fits, and recomputed for
        each product otherwise.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    verbose : bool or int, default=False
        Whether to show the progress of a Search, of :meth:`impute` and of :meth:`sample` on standard error.

    Attributes
    ----------
    centers_ : ndarray of shape (n_centers, n_features)
        The distinct rows of positive weight, or the landmarks.
    weights_ : ndarray of shape (n_centers,)
        Their summed weights; for landmarks those of the nearest rows, scaled so that the sum is the number of landmarks.
    dual_coef_ : ndarray of shape (n_centers,)
        Coefficients alpha for :math:`k = \varphi(s)`, :math:`\varphi(0) = 1`; all positive.
    log_normalizer_ : float
        log Z in the units of the data (or of logarithms and logits, for columns with bounds).
    length_scale_ : ndarray of shape (n_features,)
        With ``frame="scale"``: the length scale of each column; NaN for constant columns, which are dropped.
    components_ : tuple of Component
        In other frames: the densities of the mixture, each with `frame`, `factor`, `weight`, `map` and `scale`. The rows of
        ``dual_coef_`` are then the coefficients of those that have kernels, which are all whose factor is not NaN.
    unit_ : ndarray of shape (n_features,)
        With ``frame="scale"``: the unit of each column in :meth:`hyvarinen_loss`: its length scale, times a factor that brings
        their geometric mean to that of the standard deviations. In other frames: these. NaN for constant columns.
    category_scale_ : ndarray of shape (n_features,)
        The category scale of each column, NaN for numbers; only after a fit to words or missing cells.
    search_path_ : Choices
        What was compared by rows that were held out, if there was a choice: the result of the Search if `length_scale` is one, or
        the candidates of the mixture with their log densities and weights.
    residual_ : float
        The largest :math:`|\alpha_i f(x_i)/w_i - 1|` reached. For rows with missing cells, how far the optimality (KKT)
        conditions are from holding: such a fit ends at 100 times `tol`, or when 20 passes lower the objective by less than
        a tenth of `tol` nats a row in all.
    n_iter_ : int
        Number of products with the kernel matrix.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had names.

    Warns
    -----
    ConvergenceWarning
        If `tol` was not reached.
    DataWarning
        For constant columns and for fewer distinct rows than columns.

    References
    ----------
    .. [1] M. Kozdoba, B. Perets, S. Mannor, "Sobolev Space Regularised Pre Density Models", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> density = SOSREP().fit(X)
    >>> near, far = density.score_samples([[0.0, 0.0], [4.0, 4.0]])
    >>> bool(near > far)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RowKernelDensity._parameter_constraints,
        "solver": [StrOptions(set(SCALING_SOLVERS))],
        "landmarks": [None, Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    _needs_complete_rows = "landmarks"

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        length_scale: Any = "auto",
        frame: Any = "auto",
        bounds: Any = None,
        categorical: Any = None,
        category_scale: Any = "frequency",
        solver: str = "auto",
        landmarks: int | None = None,
        tol: float = 1e-8,
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
        self.solver = solver
        self.landmarks = landmarks
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _solver(self) -> RootSolver:
        return RootSolver(Budget.of(self), self.solver, self.tol)

    def _reduce(self, table: CheckedRows) -> CheckedRows:
        if self.landmarks is None:
            return table
        parts = ArrayParts(table.rows, table.weights, names=given_names(self))
        rows, weights = choose_landmarks(parts, int(self.landmarks), self.bounds, Budget.of(self))
        return replace(table, rows=rows, weights=weights)


def fit_parts(estimator: SOSREP, parts: Parts) -> SOSREP:
    """Fit SOSREP with landmarks to rows in parts in three passes; only the landmarks and their weights are kept.

    The first pass computes mean and standard deviation of each column, the second draws the landmarks, the third counts the rows
    nearest to each. The model equals that of ``estimator.fit`` to all rows.
    """
    estimator._validate_params()
    if estimator.landmarks is None:
        raise InputError(
            "landmarks is None, and SOSREP with all rows as centres cannot be fitted to rows in parts; give a number, for "
            "example landmarks=500."
        )
    estimator._forget()
    take_columns(estimator, parts)
    rows, weights = choose_landmarks(parts, int(estimator.landmarks), estimator.bounds, Budget.of(estimator))
    if not len(rows):
        raise InputError("X has no rows of positive weight; expected at least two that differ.")
    return estimator._fit_numbers(CheckedRows(rows, weights, NUMPY))
