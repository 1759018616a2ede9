"""KDE: kernel density estimation with the kernels, length-scale rules and methods of SOSREP."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import HasMethods

from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.fitted_attributes import FromFit
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.density.debias import SharpenedSolver, with_moved_centers
from isopleth.density.fitting import fit_numbers
from isopleth.density.grid import GridDensity, density_on_grid
from isopleth.density.row_kernels import RowKernelDensity
from isopleth.density.solver import MixtureSolver
from isopleth.kernels import Kernel
from isopleth.tables.checks import CheckedRows


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
    unit_ : ndarray of shape (n_features,)
        With ``frame="scale"``: the unit of each column in :meth:`hyvarinen_loss`: its length scale, times a factor that brings
        their geometric mean to that of the standard deviations. In other frames: these. NaN for constant columns.
    category_scale_ : ndarray of shape (n_features,)
        The category scale of each column, NaN for numbers; only after a fit to words or missing cells.
    search_path_ : Choices
        What was compared by rows that were held out, if there was a choice: the result of the Search if `length_scale` is one, or
        the candidates of the mixture with their log densities and weights.
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
        return density_on_grid(self._value(), n_points, limits, Budget.of(self))

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RowKernelDensity._parameter_constraints,
        "debias": [None, HasMethods(["fit", "chosen"])],
    }

    _needs_complete_rows = "debias"

    rows_, score_ = FromFit("unmoved"), FromFit()

    def _solver(self) -> MixtureSolver:
        if self.debias is None:
            return MixtureSolver(Budget.of(self))
        return SharpenedSolver(Budget.of(self), self.debias)

    def _fit_numbers(self, table: CheckedRows) -> Self:
        fitted = fit_numbers(self, self._asked, self._solver(), table)
        self._fitted = fitted if self.debias is None else with_moved_centers(fitted)
        return self
