"""What is known of the shares of classes among unlabelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class ClassPriors:
    """Shares of the classes among unlabelled rows.

    Parameters
    ----------
    classes : ndarray of shape (K,)
        The classes.
    priors : ndarray of shape (K,)
        Their shares, of sum 1.
    lower, upper : ndarray of shape (K,)
        Ends of an interval for each share, within [0, 1].
    covariance : ndarray of shape (K, K)
        Covariance of shares without constraint or ridge, by the delta method: noise of labelled and unlabelled rows.
    level : float
        Confidence of each interval.
    rows : int
        Number of unlabelled rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import ClassPriorEstimator
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 2)) + np.repeat([[0.0], [3.0]], 30, axis=0), np.repeat(["a", "b"], 30)
    >>> ClassPriorEstimator(random_state=0).fit(X, y).estimate(X[:35]).to_dict()["class"]
    ['a', 'b']
    """

    classes: np.ndarray
    priors: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    covariance: np.ndarray
    level: float
    rows: int

    def __repr__(self) -> str:
        return f"ClassPriors({', '.join(self._lines(', '))}; {100.0 * self.level:.6g}% intervals)"

    def __str__(self) -> str:
        return "\n".join(self._lines(" "))

    def _lines(self, gap: str) -> list[str]:
        cells = zip(self.classes.tolist(), self.priors, self.lower, self.upper, strict=True)
        return [f"{name}: {share:.3f} [{low:.3f}{gap}{high:.3f}]" for name, share, low, high in cells]

    def to_dict(self) -> dict[str, list[object]]:
        """Columns class, prior, lower and upper: ``pandas.DataFrame(priors.to_dict())`` is a table of them."""
        return {
            "class": self.classes.tolist(),
            "prior": self.priors.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the shares with their intervals; see :func:`isopleth.plotting.plot_class_priors`."""
        from isopleth.plotting.class_prior import plot_class_priors

        return plot_class_priors(self, ax=ax)
