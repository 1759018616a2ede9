"""KernelScore: the gradient of a log density, by a kernel at every row and a regularizer."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.core.arrays import Array, Backend
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT
from isopleth.core.errors import warn_user
from isopleth.core.scales import deviations, is_auto
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.frames import Frame
from isopleth.kernels import Kernel
from isopleth.score.base import Coordinates, FrameFit, ScoreEstimator, compared_frames, warn_if_all_is_cut
from isopleth.score.field import GaussianBase
from isopleth.score.selection import FACTORS, Candidates, select
from isopleth.score.spaces import SPACES, Space
from isopleth.score.system import (
    SCORE_SOLVERS,
    Accuracy,
    SampleSystem,
    Solution,
    solve,
    solve_truncated,
    solving_backend,
)
from isopleth.solvers.regularizers import Regularizer, SpectralCutoff


class KernelScore(ScoreEstimator):
    r"""Score estimator: the gradient of a log density as a regularised sum of kernels, without a normaliser.

    The true score s solves :math:`L s = -\zeta`, where the samples estimate the operator L and the function :math:`\zeta`. A
    regularizer :math:`g_\alpha` approximates the inverse of L [1]_:

    .. math:: \hat s = -g_\alpha(\hat L)\,\hat\zeta, \qquad \hat L s = \sum_m w_m K(x_m, \cdot)\, s(x_m), \qquad
        \hat\zeta = \sum_m w_m \operatorname{div}_{x_m} K(x_m, \cdot)

    Kernels are placed in a frame :math:`z = T(x)`, an invertible map of the rows (:mod:`isopleth.frames`) in which one length
    scale suits all columns better: the score is :math:`s(x) = T'(x)^\top \hat s(z) + \nabla \log |\det T'(x)|`. With
    ``Whiten(ridge=0)`` and one length scale, a fit with given parameters is equivariant under affine maps of the rows.

    Parameters that are not given are chosen by cross-validation with the mean Hyvarinen loss of held-out rows: the frame, the
    base measure, the length scale, and the strength of full Tikhonov, which is at least 0.3 over the number of rows. Frames are
    fitted without the rows that are held out, and compared in the coordinates x/``unit_``. The folds are the same in every run.
    With more than 512 rows, frames, bases and length scales are compared on 512 of them. Strengths are compared on all rows, but
    only as many folds are held out as have 2,000 rows together. The rule prefers simple models: the Gaussian base alone is chosen
    unless kernels decrease the loss by three standard errors, corrected for the skewness of the decrease over rows [2]_; a frame
    with more parameters only if it decreases the loss by one standard error, and a smaller strength by 0.5. `search_path_` has
    all losses that were compared.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel, default="imq"
        The scalar kernel. Diagonal scores need the smoothness of Matern 3/2, curl-free ones that of Matern 5/2.
    space : {"curl_free", "diagonal"}, default="curl_free"
        "curl_free": scores are gradients and have a log density. "diagonal": each column by itself, which is cheaper.
    regularizer : Regularizer, optional
        Tikhonov, SpectralCutoff, LandweberIteration or NuIteration, with its strength. None is ``Tikhonov(truncated=False)``
        with a strength chosen by cross-validation.
    length_scale : "auto", float, array of shape (n_features,), "scott" or "median", default="auto"
        Length scale, one for all columns or one for each column of the frame: in the units of the data for ``frame="scale"``, and
        of columns of unit variance in the others. "median" is the median distance between distinct rows (of at most 1,000) in
        the frame, one number for all columns; "auto" is 1/2 to 8 times that, chosen by cross-validation.
    base : {"auto", None, "gaussian"}, default="auto"
        The base measure; the kernels fit the difference of the score to the score of the base. None is the Lebesgue measure:
        far from the data the score tends to 0. "gaussian" has the mean and a shrunk covariance of the data; it gives the log
        density Gaussian tails. "auto" takes the one with the smaller cross-validation loss.
    frame : {"auto", "scale", "whiten", "smooth"} or Frame, default="auto"
        Coordinates of the kernels. "scale": the columns as they are given. "whiten": uncorrelated columns of unit variance.
        "smooth": a sinh-arcsinh map of each column towards a normal density, then "whiten". "auto" takes the one of
        :class:`isopleth.frames.LocalScale`, "whiten" and "smooth" with the smallest cross-validation loss, so that scores do not
        depend on the units of the columns. A frame needs second derivatives, which those of marginal densities lack.
    cv : int, default=5
        Number of folds of the distinct rows. Each fold is held out once; with more than 2,000 rows only the first few are.
    solver : {"auto", "direct", "eigen", "cg", "lanczos", "iterate"}, default="auto"
        "direct" (Cholesky) and "eigen" store the whole matrix; "cg", "lanczos" and "iterate" need its products only. "direct" and
        "cg" solve Tikhonov systems; "iterate" takes the steps of an iterative regularizer. "auto" decides by the size.
    tol : float, default=1e-8
        Relative residual, in double precision, at which "cg" and "lanczos" stop. It bounds the error at the samples. Truncated
        forms and cut-offs interpolate these values by a sum of kernels, whose error may be the square root of `tol` at the
        samples and about ten times that elsewhere.
    memory_limit : float, default=2**30
        Bytes that a fit may take in addition to the rows. Matrices that do not fit are computed again at each step.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    verbose : bool or int, default=False
        Whether to show the progress of the cross-validation on standard error.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`.
    dual_coef_ : ndarray of shape (n_centers, n_features)
        One vector for each distinct row, in the scaled coordinates of the fit. Truncated Tikhonov solves for them on first use,
        since the score at the samples does not need them.
    centers_ : ndarray of shape (n_centers, n_features)
        The distinct rows of positive weight.
    weights_ : ndarray of shape (n_centers,)
        Their summed weights.
    zeta_factor_ : float
        The factor of :math:`\hat\zeta` in the score; 0 in truncated forms.
    base_ : GaussianBase or None
        The base measure, in the scaled coordinates of the fit.
    regularizer_ : Regularizer
        The regularizer of the fit, given or chosen.
    frame_ : Frame or str
        The frame, given or chosen.
    length_scale_ : ndarray of shape (n_features,)
        The length scale of each column of the frame.
    unit_ : ndarray of shape (n_features,)
        The unit of each column in :meth:`hyvarinen_loss`: its standard deviation, or in ``frame="scale"`` its length scale times
        a factor that brings their geometric mean to that of the standard deviations.
    search_path_ : SelectionPath
        The losses compared by cross-validation and the choice, if any parameter was left open.
    residual_ : float
        Relative residual reached, 0 for direct solvers.
    n_iter_ : int
        Number of products with the matrix.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had names.

    Warns
    -----
    ConvergenceWarning
        If `tol` was not reached.
    DataWarning
        If the columns differ much in spread and have one common length scale in ``frame="scale"``; if columns are linearly
        dependent or have one value in 80 % of the rows: an automatic frame is then "scale", an automatic base None. The latter
        also in ``frame="smooth"``, where scores near that value have no bound. If the Gaussian base alone was chosen
        (``search_path_.base_alone``) although `kernel`, `space` or `length_scale` was given: none of them then has an effect.

    Notes
    -----
    Rows very far from all others, in the metric of their covariance, count less in frames, the base measure, `unit_` and mean
    losses; fewer than about 3 % of the rows can be such. The sums of kernels take all rows with their weights.

    The result is continuous in the rows except where two candidates of the cross-validation have equal losses.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.
    .. [2] P. Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import KernelScore
    >>> from isopleth.score import Tikhonov
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = KernelScore(regularizer=Tikhonov(alpha=0.01)).fit(X)
    >>> left, right = score.grad_log_density([[-1.0, 0.0], [1.0, 0.0]])  # the score of the normal density is minus the row
    >>> bool(left[0] > 0.5 and right[0] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScoreEstimator._parameter_constraints,
        "space": [StrOptions(set(SPACES))],
        "regularizer": [Regularizer, None],
        "base": [None, StrOptions({"gaussian", "auto"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "solver": [StrOptions(set(SCORE_SOLVERS))],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "verbose": ["verbose"],
    }

    _max_iter: ClassVar[int] = 2000

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "curl_free",
        regularizer: Regularizer | None = None,
        length_scale: Any = "auto",
        base: str | None = "auto",
        frame: str | Frame = "auto",
        cv: int = 5,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.regularizer = regularizer
        self.length_scale = length_scale
        self.base = base
        self.frame = frame
        self.cv = cv
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fixed_regularizer(self) -> Regularizer | None:
        """Return the regularizer that the parameters fix; None leaves the choice to cross-validation."""
        return self.regularizer

    def _searches_scale(self) -> bool:
        return is_auto(self.length_scale)

    def _is_chosen(self) -> bool:
        """Tell whether the frame, the length scale, the base or the regularizer is left to cross-validation."""
        searches = self._searches_scale() or is_auto(self.frame)
        return searches or self.base == "auto" or self._fixed_regularizer() is None

    def _choose_coordinates(
        self, space: Space, rows: np.ndarray, weights: np.ndarray, counts: np.ndarray, backend: Backend
    ) -> Coordinates:
        """Return the frame and the length scale with the least held-out loss among those that are compared."""
        frames, bases = compared_frames(self, rows, counts)
        found = [self._coordinates(frame, rows, weights, counts) for frame in frames]
        if not self._is_chosen():
            return found[0]
        candidates = Candidates(bases, FACTORS if self._searches_scale() else (1.0,), self._fixed_regularizer())
        framed = [one.as_rows(rows, weights, counts, self.cv, backend) for one in found]
        self.search_path_ = path = select(space, framed, candidates, deviations(rows, counts))
        self._warn_of_unused_kernel()
        chosen = next(one for one in found if one.frame is path.frame)
        return chosen._replace(length_scale=path.length_scale, base=path.base)

    def _warn_of_unused_kernel(self) -> None:
        """Warn if the Gaussian base alone was chosen although the kernel, its space or its length scale is not the default."""
        asked = {
            "kernel": self.kernel != "imq",
            "space": self.space != "curl_free",
            "length_scale": not is_auto(self.length_scale),
        }
        names = [name for name, differs in asked.items() if differs]
        if not names or self._fixed_regularizer() is not None or not self.search_path_.base_alone:
            return
        warn_user(
            f"kernels did not decrease the held-out loss beyond chance, so that the score is that of a Gaussian alone, whatever "
            f"{' and '.join(names)} may be. base=None fits kernels without it, a given regularizer kernels in any case."
        )

    def _fit_frame(
        self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None, backend: Backend
    ) -> FrameFit:
        """Solve for the coefficients in the coordinates that were chosen."""
        fixed = self._fixed_regularizer()
        regularizer = self.search_path_.regularizer if fixed is None else fixed
        system, share, at_base = _sample_system(space, z, weights, base, regularizer, backend)
        solution = solve(system, regularizer, self.solver, Accuracy(self.tol, self._max_iter))
        self._warn_of_residual(solution)
        warn_if_all_is_cut(regularizer, solution.at_samples, lambda: system.largest)
        at_samples, coefficients = system.fitted(solution.at_samples), None
        if solution.multipliers is not None:
            coefficients = system.coefficients(solution.multipliers)
        if at_base is not None:
            at_samples = at_samples + at_base
            if coefficients is not None:
                coefficients = coefficients + solution.factor * (share[:, None] * at_base)
        report = {"regularizer_": regularizer, "residual_": solution.residual, "n_iter_": solution.n_iter}
        return FrameFit(at_samples, z, coefficients, solution.factor, report)

    def _solve_coefficients(self, z: np.ndarray, weights: np.ndarray, backend: Backend) -> Array:
        system, _, _ = _sample_system(self._space, z, weights, self.base_, self.regularizer_, backend)
        solution = solve_truncated(system, self.regularizer_, self.solver, Accuracy(self.tol, self._max_iter))
        self._warn_of_residual(solution)
        return system.coefficients(solution.multipliers)

    def _warn_of_residual(self, solution: Solution) -> None:
        """Warn if the equations were not solved to the tolerance."""
        if solution.residual > self.tol:
            warn_user(
                f"the residual {solution.residual:.1e} is above tol = {self.tol:g} after {solution.n_iter} products; a larger "
                f"alpha, a larger tol or solver='eigen' may help.",
                ConvergenceWarning,
            )


def _sample_system(
    space: Space,
    z: np.ndarray,
    weights: np.ndarray,
    base: GaussianBase | None,
    regularizer: Regularizer,
    backend: Backend,
) -> tuple[SampleSystem, Array, Array | None]:
    """Return the system at distinct rows `z`, their weights of sum 1, and the base score there, on the solving backend."""
    solving = solving_backend(space, z, backend)
    at_base = None if base is None else solving.array(base.value(z))
    share = solving.array(weights / weights.sum())
    whole = isinstance(regularizer, SpectralCutoff) and regularizer.needs_all_eigenvalues
    return SampleSystem(space, solving.array(z), share, at_base, whole=whole), share, at_base
