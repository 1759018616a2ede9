"""Result of Markov chains: draws, and how far they can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from sklearn.exceptions import ConvergenceWarning

from isopleth.core.errors import InputError, require, warn_user
from isopleth.core.laws import normal_scores
from isopleth.core.rows import without_rounding

# R-hat above which chains still differ by more than their noise. With the usual four chains of a thousand draws 1.01 is possible;
# the noise of many short chains, which start at the data, is larger.
LARGEST_R_HAT = 1.05

# Fewest independent draws: a mean is then known to a tenth of the standard deviation.
FEWEST_EFFECTIVE = 100.0

# Mean acceptance below which chains hardly move.
LEAST_ACCEPTANCE = 0.2

# Offset of ranks in Blom's normal scores.
_BLOM = 0.375


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Draws of Markov chains.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, columns)
        Draws of each chain after the warm-up, in order, in the units of the data.
    n_samples : int
        Number of rows that were asked for.
    method : {"mala", "hmc", "ula", "annealed"}
        The sampler.
    exact : bool
        Whether the density is the exact limit of the chains, because every step was accepted or rejected for it.
    acceptance : ndarray of shape (chains,)
        Mean probability of acceptance of each chain after the warm-up. For unadjusted steps it is the probability with which
        an adjusted step would have been accepted.
    jumps : ndarray of shape (chains,), optional
        Mean probability of acceptance of the jumps of each chain, if there were any.
    step_size : float
        Step size after the warm-up, for columns whose covariance is the identity; that of the fitted length scale for
        ``method="annealed"``.
    n_evaluations : int
        Number of places at which the gradient was computed, over all chains.
    """

    draws: np.ndarray
    n_samples: int
    method: str
    exact: bool
    acceptance: np.ndarray
    jumps: np.ndarray | None
    step_size: float
    n_evaluations: int

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows that were asked for, of shape (n_samples, columns): draws at even distances in all chains."""
        pooled = self.draws.transpose(1, 0, 2).reshape(-1, self.draws.shape[2])
        return pooled[np.linspace(0, len(pooled) - 1, self.n_samples).round().astype(int)]

    @cached_property
    def r_hat(self) -> np.ndarray:
        """Rank-normalised split R-hat of each column; NaN for constant columns."""
        return np.asarray(r_hat(self.draws))

    @cached_property
    def effective_sample_size(self) -> np.ndarray:
        """Bulk effective sample size of each column."""
        return np.asarray(effective_sample_size(self.draws))

    @cached_property
    def tail_effective_sample_size(self) -> np.ndarray:
        """Effective sample size for the 5 % and 95 % quantiles of each column, the smaller one of the two."""
        return np.asarray(tail_effective_sample_size(self.draws))

    def problems(self) -> list[str]:
        """Return a sentence for each diagnostic that is poor."""
        found = []
        if self.draws.shape[0] > 1 and not np.nanmax(self.r_hat, initial=1.0) <= LARGEST_R_HAT:
            found.append(
                f"R-hat of column {int(np.nanargmax(self.r_hat))} is {np.nanmax(self.r_hat):.3g}, above {LARGEST_R_HAT:g}"
            )
        sizes = {"effective": self.effective_sample_size, "tail effective": self.tail_effective_sample_size}
        for name, size in sizes.items():
            if float(np.nanmin(size, initial=np.inf)) < FEWEST_EFFECTIVE:
                found.append(
                    f"the {name} sample size of column {int(np.nanargmin(size))} is {np.nanmin(size):.0f}, below "
                    f"{FEWEST_EFFECTIVE:g}, of {self.draws.shape[0] * self.draws.shape[1]} draws"
                )
                break
        if float(np.mean(self.acceptance)) < LEAST_ACCEPTANCE:
            found.append(f"only {np.mean(self.acceptance):.0%} of the steps are accepted")
        return found

    def warn(self) -> None:
        """Warn if a diagnostic is poor."""
        found = self.problems()
        if found:
            warn_user(
                f"the chains have not converged: {'; '.join(found)}; take more draws or a larger `thin` or `warm_up`, or "
                "method='annealed' if the density has separate modes.",
                ConvergenceWarning,
            )

    def to_arviz(self) -> Any:
        """Return the draws as a data set of ArviZ, with one variable ``x`` and the acceptance of each chain.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            With the groups ``posterior`` and ``sample_stats``.

        Raises
        ------
        MissingExtraError
            If arviz is not installed.
        """
        arviz = require("arviz", "arviz", "to_arviz")
        acceptance = np.broadcast_to(self.acceptance[:, None], self.draws.shape[:2])
        groups = {"posterior": {"x": self.draws}, "sample_stats": {"acceptance_rate": acceptance}}
        if hasattr(arviz, "InferenceData"):
            return arviz.from_dict(**groups)
        return arviz.from_dict(groups)  # since version 1 the groups are one argument

    def __repr__(self) -> str:
        """Return a table of the diagnostics of each column."""
        chains, draws, columns = self.draws.shape
        kind = "exact in the limit" if self.exact else "approximate"
        jumps = "" if self.jumps is None else f" (jumps {np.mean(self.jumps):.2f})"
        lines = [
            f"Chains: method {self.method!r} ({kind}), {chains} chains of {draws} draws, acceptance "
            f"{np.mean(self.acceptance):.2f}{jumps}, {self.n_evaluations:,} gradients",
            f"{'column':>8} {'mean':>12} {'std. dev.':>12} {'R-hat':>8} {'ESS':>8} {'tail ESS':>9}",
        ]
        pooled = self.draws.reshape(-1, columns)
        for j in range(min(columns, 20)):
            lines += [
                f"{j:>8} {pooled[:, j].mean():>12.5g} {pooled[:, j].std(ddof=1):>12.5g} {self.r_hat[j]:>8.4f} "
                f"{self.effective_sample_size[j]:>8.0f} {self.tail_effective_sample_size[j]:>9.0f}"
            ]
        if columns > 20:
            lines += [f"{'...':>8}"]
        return "\n".join(lines)


# Fewest draws of a chain whose halves have a variance each.
FEWEST_DRAWS = 4


def r_hat(draws: np.ndarray) -> Any:
    r"""Compute the rank-normalised split R-hat of each column [1]_.

    R-hat compares the variance between chains to that within chains; it tends to 1 as the chains forget where they started. The
    chains are split into halves, and draws are replaced by normal scores of their ranks, so the result does not depend on
    moments. It is the larger one of the values for the draws and for their distances to the median.

    Parameters
    ----------
    draws : array of shape (chains, draws) or (chains, draws, columns)
        Draws of each chain in order, at least four of each.

    Returns
    -------
    ndarray of shape (columns,), or a scalar
        R-hat; NaN if draws are not finite or all equal.

    Raises
    ------
    InputError
        If the shape is another one.

    References
    ----------
    .. [1] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Buerkner, "Rank-normalization, folding, and localization: an
       improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.sampling import r_hat
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> bool(r_hat(draws) < 1.01)
    True
    >>> bool(r_hat(draws + np.arange(4)[:, None]) > 1.5)  # each chain at a place of its own
    True
    """

    def of_column(values: np.ndarray) -> float:
        halves = _halves(values)
        if not np.isfinite(halves).all() or np.ptp(halves) == 0.0:
            return math.nan
        # The two draws about the median are equally far from it, but for rounding.
        folded = without_rounding(np.abs(halves - np.median(halves)).reshape(-1, 1)).reshape(halves.shape)
        return max(_plain_r_hat(normal_scores(halves, None, _BLOM)), _plain_r_hat(normal_scores(folded, None, _BLOM)))

    return _by_column(of_column, draws)


def effective_sample_size(draws: np.ndarray) -> Any:
    """Compute the bulk effective sample size of each column: the number of independent draws with means as accurate.

    It is computed from the normal scores of the ranks, in split chains, with Geyer's rule [2]_ for the number of lags [1]_.

    Parameters
    ----------
    draws : array of shape (chains, draws) or (chains, draws, columns)
        Draws of each chain in order, at least four of each.

    Returns
    -------
    ndarray of shape (columns,), or a scalar
        Effective sample sizes; NaN if draws are not finite.

    Raises
    ------
    InputError
        If the shape is another one.

    References
    ----------
    .. [1] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Buerkner, "Rank-normalization, folding, and localization: an
       improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16, 2021.
    .. [2] C. Geyer, "Practical Markov chain Monte Carlo", Statistical Science 7, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.sampling import effective_sample_size
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> bool(3000 < effective_sample_size(draws) < 5000)
    True
    """

    def of_column(values: np.ndarray) -> float:
        return _size(normal_scores(_halves(values), None, _BLOM)) if np.isfinite(values).all() else math.nan

    return _by_column(of_column, draws)


def tail_effective_sample_size(draws: np.ndarray) -> Any:
    """Compute the effective sample size for the 5 % and 95 % quantiles of each column, the smaller one of the two [1]_.

    Parameters
    ----------
    draws : array of shape (chains, draws) or (chains, draws, columns)
        Draws of each chain in order, at least four of each.

    Returns
    -------
    ndarray of shape (columns,), or a scalar
        Effective sample sizes; NaN if draws are not finite.

    Raises
    ------
    InputError
        If the shape is another one.

    References
    ----------
    .. [1] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Buerkner, "Rank-normalization, folding, and localization: an
       improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.sampling import tail_effective_sample_size
    >>> bool(tail_effective_sample_size(np.random.default_rng(0).normal(size=(4, 1000))) > 2500)
    True
    """

    def of_column(values: np.ndarray) -> float:
        ends = np.quantile(values, [0.05, 0.95]) if np.isfinite(values).all() else [math.nan, math.nan]
        return min(_size(_halves((values <= end).astype(float))) if end == end else math.nan for end in ends)

    return _by_column(of_column, draws)


def _by_column(function: Callable[[np.ndarray], float], draws: np.ndarray) -> Any:
    """Return `function` of the draws of each column."""
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim not in (2, 3) or draws.shape[1] < FEWEST_DRAWS:
        raise InputError(
            f"draws has shape {draws.shape}; expected (chains, draws) or (chains, draws, columns) with at least "
            f"{FEWEST_DRAWS} draws of each chain."
        )
    if draws.ndim == 2:
        return np.float64(function(draws))
    return np.array([function(draws[:, :, j]) for j in range(draws.shape[2])])


def _halves(values: np.ndarray) -> np.ndarray:
    """Return the first and the last half of each chain as chains; the middle draw of an odd number is left out."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _plain_r_hat(values: np.ndarray) -> float:
    """Return the square root of the pooled variance over the mean variance within chains."""
    n = values.shape[1]
    within = float(values.var(axis=1, ddof=1).mean())
    between = float(values.mean(axis=1).var(ddof=1))
    return math.sqrt((between + (n - 1) / n * within) / within)


def _autocovariances(values: np.ndarray) -> np.ndarray:
    """Return the autocovariances of each chain at all lags, divided by the number of draws."""
    n = values.shape[1]
    spectrum = rfft(values - values.mean(axis=1, keepdims=True), next_fast_len(2 * n), axis=1)
    return np.asarray(irfft(np.abs(spectrum) ** 2, next_fast_len(2 * n), axis=1)[:, :n] / n)


def _size(values: np.ndarray) -> float:
    """Return the effective sample size for the mean of all draws of these chains."""
    if not np.isfinite(values).all():
        return math.nan
    chains, n = values.shape
    if np.ptp(values) < np.finfo(np.float64).resolution:
        return float(values.size)
    covariances = _autocovariances(values).mean(axis=0)
    within = covariances[0] * n / (n - 1)
    pooled = covariances[0] + (values.mean(axis=1).var(ddof=1) if chains > 1 else 0.0)
    correlations = 1.0 - (within - covariances) / pooled
    correlations[0] = 1.0
    time = max(_correlation_time(correlations), 1.0 / math.log10(values.size))
    return values.size / time


def _correlation_time(correlations: np.ndarray) -> float:
    """Return 1 plus twice the sum of the correlations, up to where sums of adjacent pairs stop being positive.

    Pair sums of a reversible chain are positive and decrease. The first even member left out counts, for chains that alternate.
    """
    n = len(correlations)
    last = 1  # index of the pair that was looked at last; pairs are (0, 1), (2, 3), ...
    pairs = [correlations[0] + correlations[1]]
    while 2 * last - 1 < n - 3 and pairs[-1] > 0.0:
        pairs.append(correlations[2 * last] + correlations[2 * last + 1])
        last += 1
    even = correlations[2 * (last - 1)]
    kept = np.minimum.accumulate(pairs[:-1])
    return float(-1.0 + 2.0 * np.sum(kept) + (even if even > 0.0 or pairs[-1] > 0.0 else 0.0))
