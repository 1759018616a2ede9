"""Candidates that a fit compared by rows that were held out, and its choice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np


def summary(terms: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """Return the weighted mean of the held-out losses, its standard error, and the weight share where f is not positive."""
    held_out = ~np.isnan(terms)
    terms = terms[held_out]
    share = weights[held_out] / weights[held_out].max()
    share /= share.sum()
    lost = float(share[~positive[held_out]].sum())
    if np.isinf(terms).any():
        return math.inf, math.nan, lost
    n = len(terms)
    mean = float(share @ terms)
    error = math.sqrt(n / (n - 1) * float(share**2 @ (terms - mean) ** 2)) if n > 1 else math.nan
    return mean, error, lost


@dataclass(frozen=True, eq=False, repr=False)
class Choices:
    r"""Candidates that a fit compared by rows that were held out, and its choice: a length scale, or the weights of a mixture.

    Parameters
    ----------
    criterion : {"hyvarinen", "likelihood", "stable_minimum"}
        The criterion. Losses are mean held-out Hyvarinen losses in the coordinates x/unit (the fitted attribute ``unit_``);
        for "likelihood" they are minus the mean held-out log density, in nats per unit of volume of the data (columns with
        bounds as logarithms or logits).
    factors : ndarray of shape (k,)
        Multiples of the base scale, ascending; in a mixture, multiples of the rule in the frame of each candidate, NaN for a
        mixture of normal densities.
    length_scales : ndarray of shape (k, d)
        The length scales of the columns that vary, in the units of the data; NaN in frames other than "scale".
    losses : ndarray of shape (k,)
        Weighted means over the held-out rows; inf if f is not positive at a row or its loss is not finite, NaN for scales that
        were not computed.
    standard_errors : ndarray of shape (k,)
        Standard errors of the losses: :math:`\sqrt{\tfrac{n}{n-1} \sum_i \bar w_i^2 (t_i - \bar t)^2}` for losses
        :math:`t_i` of the n distinct held-out rows, their weights :math:`\bar w` scaled to sum 1 and the mean :math:`\bar t`.
        Copies of a row count as one observation. The formula assumes independent rows and ignores that folds share training
        rows. Losses along a path are correlated, since they use the same rows, so their differences have smaller errors.
    share_not_positive : ndarray of shape (k,)
        Share of the held-out weight at rows where f is not positive.
    best_index : int
        Index of the chosen scale, or of the candidate with the largest weight.
    frames : list of str, optional
        Frame of each candidate of a mixture.
    weights : ndarray of shape (k,), optional
        Weights of the candidates in a mixture.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP, Search
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> SOSREP(length_scale=Search(grid=[0.5, 1, 2, 4], cv=0.2), frame="scale").fit(X).search_path_
    Choices: criterion 'hyvarinen', best factor 2, 4 of 4 scales computed
        factor         loss   std. error  not positive
           0.5       48.307           23         0.00%
             1      0.75506          1.5         0.00%
             2     -0.91918         0.17         0.00%  <- best
             4     -0.75259        0.038         0.00%
    """

    criterion: str
    factors: np.ndarray
    length_scales: np.ndarray
    losses: np.ndarray
    standard_errors: np.ndarray
    share_not_positive: np.ndarray
    best_index: int
    frames: list[str] | None = None
    weights: np.ndarray | None = None

    @classmethod
    def of_rows(cls, factors: np.ndarray, terms: np.ndarray, mass: np.ndarray, columns: int, **chosen: Any) -> Self:
        """Summarise the losses of candidates in frames at rows that were held out, (k, n), with the weights of these rows."""
        positive = np.ones(len(mass), dtype=bool)
        summaries = [summary(np.where(np.isfinite(row), row, np.inf), positive, mass) for row in terms]
        losses, errors, shares = np.array(summaries).T
        scales = np.full((len(factors), columns), np.nan)
        best = int(np.argmin(losses))
        return cls("likelihood", factors, scales, losses, errors, shares, **{"best_index": best, **chosen})

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
        """Number of scales that were computed; a search for a stable minimum stops early."""
        return int(np.sum(~np.isnan(self.losses)))

    def __repr__(self) -> str:
        """Return a table with one line for each candidate."""
        if self.frames is not None and self.weights is not None:
            lines = [f"Choices: {int((self.weights > 0).sum())} of {len(self.weights)} candidates have weight"]
            lines += [f"{'frame':>10} {'factor':>7} {'log density':>12} {'weight':>7}"]
            rows = zip(self.frames, self.factors, -self.losses, self.weights, strict=True)
            return "\n".join(lines + [_line(*row) for row in rows])
        counted = f"{self.n_computed} of {len(self.factors)} scales computed"
        lines = [f"Choices: criterion {self.criterion!r}, best factor {self.best_factor:.4g}, {counted}"]
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
        """Plot the held-out losses.

        Of a mixture there is a line for each frame, and dots whose size is the weight. Of a search, each scale that was computed
        is a dot with a bar of one standard error in each direction; the chosen one is marked. Scales whose loss is above the
        frame are drawn at its top. So are scales of infinite loss, which are never chosen, with the share of the held-out rows
        that have an infinite loss. Scales that the search did not compute are drawn at the bottom.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None makes a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.density.search_figure import plot_search

        return plot_search(self, ax)


def _line(frame: str, factor: float, log_density: float, weight: float) -> str:
    """Return the line of a candidate of a mixture."""
    name = "normals" if math.isnan(factor) else f"{factor:.4g}"
    return f"{frame:>10} {name:>7} {log_density:>12.5g} {weight:>7.1%}"
