"""KernelScore: the gradient of the log density of some rows, with all choices left open or to the folds."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.backend import Backend
from isopleth.kernels import Kernel
from isopleth.length_scales import loss_units
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.score.base import RegularizedScore
from isopleth.score.selection import FACTORS, Candidates, Rows, select
from isopleth.score.spaces import SPACES, Space
from isopleth.solvers.regularizers import Regularizer


class KernelScore(RegularizedScore):
    r"""The gradient of a log density, by kernels, without normalising anything.

    The true score s solves :math:`L s = -\zeta` for an operator L and a function :math:`\zeta` that the samples estimate; a
    regulariser inverts L [1]_:

    .. math:: \hat s = -g_\alpha(\hat L)\,\hat\zeta, \qquad \hat L s = \sum_m w_m K(x_m, \cdot)\, s(x_m), \qquad
        \hat\zeta = \sum_m w_m \operatorname{div}_{x_m} K(x_m, \cdot)

    Everything is computed with columns divided by their length scales, so that fits follow shifts and scales of the data, and
    rotations where there is one length scale, as by default. Then columns of unlike units want to be standardised first.

    What is not given is chosen by the mean Hyvarinen loss of rows held out, in `folds` parts that are always the same: the
    base, the length scale, and the strength of full Tikhonov, with a floor of 0.3 over the number of rows. Beyond 512 rows,
    bases and scales are compared on 512 of them. Strengths are compared by fits to all rows but a part; no more parts are held
    out than have 2,000 rows together. A Gaussian alone, with no kernels, is given up only for
    a loss that is lower by one and a half standard errors, and a strength for a smaller one by half an error. What was compared
    is in `search_path_`.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel, default="imq"
        The scalar kernel. Diagonal scores need the smoothness of Matern 3/2, curl-free ones that of Matern 5/2.
    space : {"curl_free", "diagonal"}, default="curl_free"
        Curl-free scores are gradients, and have a log density; diagonal ones are cheaper, each column for itself.
    regularizer : Regularizer, optional
        Tikhonov, SpectralCutoff, LandweberIteration or NuIteration, with its strength. None is ``Tikhonov(truncated=False)``
        of a strength that the folds choose.
    length_scale : "auto", float, array of shape (n_features,), "scott" or "median", default="auto"
        Length scale, one for all columns or one a column, in the units of the data. "median" is the median distance between
        distinct rows (1,000 of them at most), one number for all columns; "auto" is 1/2 to 8 times that, as the folds choose.
    base : {"auto", None, "gaussian"}, default="auto"
        The measure on top of which the score is fitted. None is the Lebesgue measure: far from the data the score tends to 0. A
        Gaussian with shrunk covariance gives log densities tails. "auto" is the better one by the folds.
    folds : int, default=5
        Into how many parts the distinct rows are parted; each is held out once, or beyond 2,000 rows the first few of them.
    solver : {"auto", "direct", "eigen", "cg", "lanczos", "iterate"}, default="auto"
        "direct" (Cholesky) and "eigen" keep the whole matrix, "cg", "lanczos" and "iterate" its products; "direct" and "cg" are
        for Tikhonov, "iterate" takes the steps of iterations. "auto" decides by the size.
    tol : float, default=1e-8
        Relative residual, in double precision, at which "cg" and "lanczos" stop. It holds at the samples only: a sum of kernels
        that has to interpolate the values there, as truncated forms and cut-offs are, may miss them by the root of it, and by
        about ten times that elsewhere.
    memory_limit : float, default=2**30
        Bytes that a fit may take beside the rows: what does not fit is computed again at each step.
    n_jobs : int, optional
        Threads; None is all processors.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`.
    dual_coef_ : ndarray of shape (n_centers, n_features)
        A vector a distinct row, in frame coordinates. Truncated Tikhonov solves for them when they are first needed:
        the score at the samples does not need them.
    centers_ : ndarray of shape (n_centers, n_features)
        The distinct rows of positive weight.
    weights_ : ndarray of shape (n_centers,)
        Their summed weights.
    zeta_factor_ : float
        The factor of zeta, 0 in truncated forms.
    base_ : GaussianBase or None
        The base measure, in frame coordinates.
    regularizer_ : Regularizer
        What was used.
    length_scale_ : ndarray of shape (n_features,)
        The length scale of each column.
    unit_ : ndarray of shape (n_features,)
        The unit of each column in :meth:`hyvarinen_loss`: its length scale, times a factor that brings their geometric mean
        to that of the standard deviations.
    search_path_ : SelectionPath
        What the folds compared and chose, if anything was left to them.
    residual_ : float
        Relative residual reached, 0 for direct solvers.
    n_iter_ : int
        Products with the matrix taken.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, where they had any.

    Warns
    -----
    ConvergenceWarning
        If `tol` was not reached.
    DataWarning
        If columns are of unlike spread, and the rule for the length scale gives one to all.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import KernelScore, Tikhonov
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = KernelScore(regularizer=Tikhonov(alpha=0.01)).fit(X)
    >>> left, right = score.grad_log_density([[-1.0, 0.0], [1.0, 0.0]])  # of a normal density: minus the row
    >>> bool(left[0] > 0.5 and right[0] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RegularizedScore._parameter_constraints,
        "space": [StrOptions(set(SPACES))],
        "regularizer": [Regularizer, None],
        "base": [None, StrOptions({"gaussian", "auto"})],
        "folds": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "curl_free",
        regularizer: Regularizer | None = None,
        length_scale: Any = "auto",
        base: str | None = "auto",
        folds: int = 5,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.regularizer = regularizer
        self.length_scale = length_scale
        self.base = base
        self.folds = folds
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _space_name(self) -> str:
        return self.space

    def _scale_and_base(
        self, space: Space, rows: np.ndarray, weights: np.ndarray, backend: Backend
    ) -> tuple[np.ndarray, str | None]:
        free = isinstance(self.length_scale, str) and self.length_scale == "auto"
        scale = self._resolved("median" if free else self.length_scale, rows, weights)
        if not free and self.base != "auto" and self.regularizer is not None:
            return scale, self.base
        bases = (None, "gaussian") if self.base == "auto" else (self.base,)
        candidates = Candidates(bases, FACTORS if free else (1.0,), self.regularizer)
        unit = float(loss_units(scale, rows, weights)[0] / scale[0])
        self.search_path_ = select(space, Rows(rows, weights, scale, unit, self.folds, backend), candidates)
        return self.search_path_.length_scale, self.search_path_.base

    def _regularizer(self) -> Regularizer:
        return self.search_path_.regularizer if self.regularizer is None else self.regularizer
