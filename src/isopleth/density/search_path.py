"""What a search for a length scale found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class SearchPath:
    r"""Held-out losses of a density along a grid of length scales, smaller being better.

    Parameters
    ----------
    criterion : {"hyvarinen", "likelihood", "stable_minimum"}
        What chose. Losses are mean held-out Hyvarinen losses in the coordinates x/unit (the fitted attribute ``unit_``), or,
        for "likelihood", minus the mean held-out log density in nats per unit of volume of the data (columns with bounds as
        logarithms or logits).
    factors : ndarray of shape (k,)
        Multiples of the base scale, ascending.
    length_scales : ndarray of shape (k, d)
        The length scales of the columns that vary, in the units of the data.
    losses : ndarray of shape (k,)
        Weighted means over the held-out rows; inf where f is not positive at a row or its loss is not finite, NaN where a
        lazy search did not look.
    standard_errors : ndarray of shape (k,)
        Of the losses, over held-out rows: :math:`\sqrt{\tfrac{n}{n-1} \sum_i \bar w_i^2 (t_i - \bar t)^2}` for losses
        :math:`t_i` of the n distinct rows held out, their weights :math:`\bar w` scaled to sum 1 and the mean :math:`\bar t`.
        Copies of a row are one observation in it. Rows are taken as independent, which leaves out that folds share training
        rows. Losses along a path are of the same rows, so their differences are known better than this says.
    share_not_positive : ndarray of shape (k,)
        Share of the held-out weight at rows where f is not positive.
    best_index : int
        Place of the chosen scale.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP, Search
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> SOSREP(length_scale=Search(grid=[0.5, 1, 2, 4], cv=0.2)).fit(X).search_path_
    SearchPath: criterion 'hyvarinen', best factor 2, 4 of 4 scales computed
        factor         loss   std. error  not positive
           0.5       16.484           13         0.00%
             1     -0.31827         0.68         0.00%
             2       -1.075         0.11         0.00%  <- best
             4     -0.79383        0.032         0.00%
    """

    criterion: str
    factors: np.ndarray
    length_scales: np.ndarray
    losses: np.ndarray
    standard_errors: np.ndarray
    share_not_positive: np.ndarray
    best_index: int

    @property
    def best_factor(self) -> float:
        """The chosen multiple of the base scale."""
        return float(self.factors[self.best_index])

    @property
    def best_length_scale(self) -> np.ndarray:
        """The chosen length scales, of shape (d,)."""
        return self.length_scales[self.best_index]

    @property
    def n_computed(self) -> int:
        """How many scales were looked at; the others were left out by a lazy search."""
        return int(np.sum(~np.isnan(self.losses)))

    def __repr__(self) -> str:
        """A table of one line a scale."""
        counted = f"{self.n_computed} of {len(self.factors)} scales computed"
        lines = [f"SearchPath: criterion {self.criterion!r}, best factor {self.best_factor:.4g}, {counted}"]
        lines += [f"{'factor':>10} {'loss':>12} {'std. error':>12} {'not positive':>13}"]
        for i, factor in enumerate(self.factors):
            if np.isnan(self.losses[i]):
                lines += [f"{factor:>10.4g} {'-':>12} {'-':>12} {'-':>13}"]
                continue
            numbers = f"{factor:>10.4g} {self.losses[i]:>12.5g} {self.standard_errors[i]:>12.2g}"
            best = "  <- best" if i == self.best_index else ""
            lines += [f"{numbers} {self.share_not_positive[i]:>13.2%}{best}"]
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw losses and standard errors against the factors.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when left out.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.plotting import plot_search

        return plot_search(self, ax)
