"""LSDD: the difference of two densities, fitted as it is and not as two densities."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.backend import Array, Backend, to_backend
from isopleth.difference.cross_validation import FoldSystems, Split, fold_coefficients
from isopleth.difference.decisions import Decisions
from isopleth.difference.gaussian_system import GaussianSystem, fits_within
from isopleth.difference.interval import SquaredL2Law
from isopleth.difference.samples import TwoSamples, split_as_given, split_at_random
from isopleth.difference.search import cross_validate
from isopleth.difference.streamed import StreamedDifference
from isopleth.difference.sums import SampleSums
from isopleth.difference.system import DifferenceSystem
from isopleth.entry import varying_columns
from isopleth.errors import InputError
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.operators.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD, effective_n_jobs


class LSDD(StreamedDifference):
    r"""Least-squares estimate of a density difference, :math:`g \approx p - q` for samples X of p and Y of q [1]_.

    The Gaussian sum :math:`g(x) = \sum_l \theta_l\, \psi_l(x)`, :math:`\psi_l(x) = e^{-|x - c_l|^2/2}` in units of the length
    scale, that minimises :math:`\int (g - (p - q))^2` up to a constant and a ridge:

    .. math:: (H + \lambda I)\, \theta = h, \quad H_{lm} = \int \psi_l \psi_m, \quad
        h_l = \tfrac1n \sum_i \psi_l(x_i) - \tfrac1{n'} \sum_j \psi_l(y_j).

    H is known in closed form, so nothing is sampled or iterated, and one eigendecomposition of it serves every ridge. Length
    scale and ridge are chosen by cross-validation, whose fits to the training folds use the centres among them only.

    Parameters
    ----------
    length_scale : None, float, array of shape (n_features,) or of shape (k, 1) or (k, n_features), optional
        Length scale of the kernel, one for all columns or one a column, in the units of the data; a table is a grid of k
        candidates. None is a grid of eleven multiples of the standard deviations within the samples, values more than 8
        interquartile ranges beyond the quartiles being brought to that distance first.
    alpha : None, float or sequence of float, optional
        The ridge :math:`\lambda` over the volume :math:`V = \pi^{d/2} \prod_j \sigma_j` of the kernel, so that it means the
        same at every length scale; a sequence is a grid. None is a grid from 0.001 to 10,000.
    centers : int, None or array of shape (b, n_features), default=500
        Centres of the kernels: an array as it is, or distinct rows of both samples, all of them (None) or at most so many,
        drawn at random, half of them from each sample as far as it has them. An array serves all folds alike, and must not be
        made of the rows if held-out estimates are to be unbiased.
    cv : int or pair of arrays, default=5
        Folds of the cross-validation, or the fold of each row of X and of Y.
    penalty : {"l2", "rkhs"}, default="l2"
        What the ridge multiplies: the squared norm of the coefficients, or that of g in the Gaussian kernel's own space
        (section 2.3.2 of [1]_, its :math:`\gamma` being :math:`\sqrt2` length scales), for which
        :math:`(H + \lambda K)\, \theta = h` with K the kernel matrix of the centres; 1e-8 is added to K's diagonal.
    memory_limit : float, default=2**30
        Bytes that matrices of the centres, tiles of kernels and scratch may take together.
    n_jobs : int or None, default=-1
        Threads of kernel sums; -1 is all processors, None is one or what joblib.parallel_config says.
    random_state : int, RandomState or None
        Seed of the folds and of the choice of centres.

    Attributes
    ----------
    centers_ : array of shape (b, n_features)
        The centres. This and other arrays are in the library and on the device of X.
    dual_coef_ : array of shape (b,)
        :math:`\theta V`.
    log_volume_ : float
        log V, in the units of the data. V overflows in hundreds of dimensions, so whatever is a reciprocal volume can be
        had times V, by ``relative=True``.
    length_scale_ : array of shape (n_features,)
        The length scale of each column; NaN for constant columns, which are dropped.
    alpha_ : float
        The ridge over V.
    squared_l2_ : float
        Cross-fitted estimate of :math:`\int (p - q)^2`, see :meth:`squared_l2`; NaN where a sample has one row only.
    search_path_ : DifferenceSearchPath or None
        Cross-validation losses; None where a sample has one row only.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, where they had any.

    Warns
    -----
    DataWarning
        For constant columns.

    See Also
    --------
    KDEDifference : The difference of two kernel density estimates, for comparison.

    Notes
    -----
    Data that do not fit in memory go chunk by chunk through :meth:`partial_fit`, or part by part through
    :func:`isopleth.distributed.fit`.

    Swapping the samples changes the sign of the difference and nothing else. Weights count repetitions; a sample whose
    weights add up to less than its distinct rows has them scaled up to that number. Samples with atoms (discrete data) have no
    densities and their squared L2 distance is infinite: the search then settles for the smallest length scales.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu, I. Takeuchi, "Density-difference estimation", NIPS
       2012.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import LSDD
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.normal(size=(300, 1)), rng.normal(1.0, size=(200, 1))
    >>> change = LSDD(random_state=0).fit(before, after)
    >>> (change.difference([[-1.0], [2.0]]) > 0).tolist()  # more of the first sample on the left, less on the right
    [True, False]
    >>> abs(change.squared_l2_ - 0.125) < 0.04  # of two normal densities one standard deviation apart
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "length_scale": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "alpha": [None, Interval(Real, 0, None, closed="left"), "array-like"],
        "centers": [None, Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), tuple, list],
        "penalty": [StrOptions({"l2", "rkhs"})],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        length_scale: Any = None,
        alpha: Any = None,
        centers: Any = 500,
        cv: Any = 5,
        penalty: str = "l2",
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
    ) -> None:
        self.length_scale = length_scale
        self.alpha = alpha
        self.centers = centers
        self.cv = cv
        self.penalty = penalty
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any, sample_weight_x: Any = None, sample_weight_y: Any = None) -> Self:
        """Fit the difference of the density of X less that of Y.

        Parameters
        ----------
        X, Y : array-like or data frame of shape (n, n_features) and (n', n_features)
            Rows of the two samples; computed in float64. Where X is an array of another library than NumPy, kernel sums and
            matrices of the centres are computed in that library and on its device, and fitted arrays live there.
        sample_weight_x, sample_weight_y : array-like of shape (n,) and (n',), optional
            Weights, not negative. A row of weight 2 counts as two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If rows, weights or parameters cannot be used, the samples have different columns, all rows are equal, or there
            are too few rows to choose a length scale and a ridge; the sentence says which and what to do.
        """
        self._validate_params()
        backend = Backend.of(X)
        self._forget()
        samples = TwoSamples.of(self, X, Y, sample_weight_x, sample_weight_y)
        decisions, chosen = self._decide(samples, varying_columns(self, samples.rows))
        split = self._split(samples, chosen, decisions)
        workers = min(effective_n_jobs(self.n_jobs), fits_within(len(decisions.centers), self.memory_limit))

        def summed(scale: np.ndarray, n_jobs: int | None, moments: bool) -> tuple[SampleSums, Array]:
            system = decisions.system(scale, self.memory_limit, n_jobs, backend)
            z = backend.array(decisions.frame.scaled(scale).enter(samples.rows))
            sums = SampleSums.empty(system, split.folds, split.units is not None, moments)
            return sums.accumulate(z, split.weights, split.units), z

        def systems_at(place: int, n_jobs: int) -> tuple[float, FoldSystems]:
            return summed(decisions.scales[place], n_jobs, False)[0].systems(self.penalty)

        with ONE_BLAS_THREAD:  # the systems of folds are small, and threads part the length scales better
            found = (
                None if split.folds == 1 else cross_validate(systems_at, decisions.scales, decisions.alphas, workers)
            )
            scale = decisions.scale(found)
            sums, z = summed(scale, self.n_jobs, True)
            at, system = DifferenceSystem.of(sums, self.penalty), sums.system
            del sums  # which are of the size of the statistics
            self._keep(decisions, at, found)
            if at.systems is not None:
                self._held_out = _held_out(at.systems, self.alpha_, system, z, split)
            near = decisions.near(found)
            if not np.array_equal(near, scale):
                del at, z  # which leaves room for as much again
                at = DifferenceSystem.of(summed(near, self.n_jobs, True)[0], self.penalty)
            self._finish(SquaredL2Law.of(at, self.alpha_))
        to_backend(self, backend)
        return self

    def _split(self, samples: TwoSamples, chosen: np.ndarray | None, decisions: Decisions) -> Split:
        """The folds; one where a sample has a single row, which cannot be split and needs not where nothing is chosen."""
        searched = decisions.searched
        least = int(samples.units.sum(axis=0).min())
        if searched and least < 3:
            name = "XY"[int(np.argmin(samples.units.sum(axis=0)))]
            raise InputError(
                f"{name} has {least} row{'s' if least > 1 else ''}, too few for cross-validation, which needs 3; "
                "give length_scale and alpha as numbers."
            )
        if least < 2:
            return Split(samples.weights[:, :, None], None)
        if isinstance(self.cv, Integral):
            folds = min(max(int(self.cv), 3 if searched else 2), least)
            weights = split_at_random(samples, folds, decisions.seed)
        else:
            weights = split_as_given(samples, self.cv)
            if weights.shape[2] < (3 if searched else 2):
                raise InputError(f"cv has {weights.shape[2]} folds; expected at least 3, or 2 where nothing is chosen.")
        return Split(weights, None if chosen is None else weights[chosen])


def _held_out(systems: FoldSystems, alpha: float, system: GaussianSystem, z: Array, split: Split) -> np.ndarray:
    """Differences at rows of held-out folds, and what each row adds to the mass of the first sample less the second's."""
    weights = split.weights / split.counts.sum(axis=1)[None, :, None]
    drawn = weights.sum(axis=1) > 0
    values = system.values(z, fold_coefficients(systems, alpha))
    return np.array([values[drawn], (weights[:, 0] - weights[:, 1])[drawn]])
