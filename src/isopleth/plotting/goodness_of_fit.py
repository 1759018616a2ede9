"""Plot the result of a Stein test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.plotting.style import BLUE, GREY, VERMILLION, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 30
_LEVEL = 0.05


def plot_stein_test(result: Any) -> Figure:
    """Draw the statistic of a Stein test among those of random signs, and the score of each length scale.

    Parameters
    ----------
    result : SteinTestResult
        Answer of :func:`~isopleth.stein_test`.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: no window opens, and no display is needed.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import stein_test
    >>> from isopleth.plotting import plot_stein_test
    >>> result = stein_test(np.random.default_rng(0).normal(size=(50, 1)), lambda X: -X, n_resamples=99, random_state=0)
    >>> len(plot_stein_test(result).axes)
    2
    """
    figure = new_figure(9.0, 3.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1.0))
    counts, edges = np.histogram(result.resampled, _BINS)
    left.stairs(counts, edges, color=GREY, fill=True, alpha=0.5, label="random signs")
    left.axvline(result.statistic, color=VERMILLION, linewidth=1.6, label="this sample")
    left.set(xlabel="statistic", ylabel="vectors of signs")
    verdict = "The sample does not fit the score" if result.pvalue <= _LEVEL else "No misfit is shown"
    left.set_title(f"{verdict}: p = {result.pvalue:.3g}", loc="left", fontsize=10)
    figure.legend(*left.get_legend_handles_labels(), frameon=False, fontsize=8, loc="outside upper right", ncols=2)
    right.plot(result.length_scales, result.scores, "o-", color=BLUE, linewidth=0.9, markersize=5)
    right.set(xscale="log", xlabel="length scale, in standard deviations", ylabel="score")
    right.set_xticks(result.length_scales, [f"{scale:.3g}" for scale in result.length_scales])
    right.minorticks_off()
    right.set_title("Scores by length scale", loc="left", fontsize=10)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
