"""Result of Markov chains: draws, and how far they can be trusted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from isopleth.errors import require
from isopleth.sampling.diagnostics import effective_sample_size, r_hat, tail_effective_sample_size

# R-hat above which chains still differ by more than their noise. With the usual four chains of a thousand draws 1.01 is possible;
# the noise of many short chains, which start at the data, is larger.
LARGEST_R_HAT = 1.05

# Fewest independent draws: a mean is then known to a tenth of the standard deviation.
FEWEST_EFFECTIVE = 100.0

# Mean acceptance below which chains hardly move.
LEAST_ACCEPTANCE = 0.2


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

    def warn(self, stacklevel: int) -> None:
        """Warn if a diagnostic is poor."""
        found = self.problems()
        if found:
            warnings.warn(
                f"the chains have not converged: {'; '.join(found)}; take more draws or a larger `thin` or `warm_up`, or "
                "method='annealed' if the density has separate modes.",
                ConvergenceWarning,
                stacklevel=stacklevel + 1,
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
