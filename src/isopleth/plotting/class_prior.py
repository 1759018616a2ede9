"""Plot the shares of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.plotting.style import BLUE, column_label, given_or_new, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST_NAME = 32
# Inches; pictures of very many classes could not be written.
_TALLEST = 60.0


def plot_class_priors(priors: Any, ax: Axes | None = None) -> Axes:
    """Draw the share of each class as a dot with its interval.

    Parameters
    ----------
    priors : ClassPriors
        Result of :meth:`ClassPriorEstimator.estimate`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. None makes a figure without pyplot, so that no window opens and no display is needed.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; their figure is ``ax.figure``, which :func:`save_figure` writes to a file.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import ClassPriorEstimator
    >>> from isopleth.plotting import plot_class_priors
    >>> X, y = np.random.default_rng(0).normal(size=(40, 2)), np.repeat(["a", "b"], 20)
    >>> ax = plot_class_priors(ClassPriorEstimator(random_state=0).fit(X, y).estimate(X[:9]))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['a', 'b']
    """
    count = len(priors.classes)
    ax = given_or_new(ax, 6.0, min(1.4 + 0.35 * count, _TALLEST))
    places = np.arange(count)
    ax.hlines(places, priors.lower, priors.upper, color=BLUE, linewidth=2.0, alpha=0.5)
    ax.plot(priors.priors, places, "o", color=BLUE, clip_on=False)
    ax.set_yticks(places, [column_label(str(name), _LONGEST_NAME) for name in priors.classes.tolist()])
    ax.set(xlim=(0.0, 1.0), ylim=(count - 0.5, -0.5), xlabel="share of the rows")
    first = int(np.argmax(priors.priors))
    name = column_label(str(priors.classes[first]), _LONGEST_NAME)
    finding = f"{name}: {priors.priors[first]:.1%}"
    ax.set_title(
        f"{finding}\n{priors.rows:,} unlabelled rows, {percent(priors.confidence_level)} intervals",
        loc="left",
        fontsize=10,
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", linewidth=0.5, alpha=0.4)
    return ax
