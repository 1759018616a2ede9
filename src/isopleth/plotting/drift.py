"""Plot the statistic of a drift monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.plotting.style import BLUE, GREY, VERMILLION, given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_drift(alarms: Any, ax: Axes | None = None) -> Axes:
    """Draw the statistic of a drift monitor along the rows of a stream.

    The line breaks where no window is full: at the beginning and after alarms. Alarms are dots, and the threshold is a
    dashed line.

    Parameters
    ----------
    alarms : DriftAlarms
        Result of :meth:`DriftMonitor.update`.
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
    >>> from isopleth.plotting import plot_drift
    >>> from isopleth.tasks.drift.alarms import DriftAlarms
    >>> plot_drift(DriftAlarms(0, np.array([np.nan, 0.1, 0.4]), threshold=0.3, window=2)).get_xlabel()
    'row'
    """
    ax = given_or_new(ax, 7.2, 3.0)
    rows = alarms.counted_from + alarms.first_row + np.arange(len(alarms.statistic))
    ax.plot(rows, alarms.statistic, color=BLUE, linewidth=0.9)
    ax.axhline(alarms.threshold, color=GREY, linewidth=0.9, linestyle="--", label="threshold")
    count = len(alarms)
    label = f"{count:,} alarm{'' if count == 1 else 's'}"
    heights = alarms.statistic[alarms.rows - alarms.first_row]
    ax.plot(alarms.rows + alarms.counted_from, heights, "o", color=VERMILLION, markersize=5, label=label, zorder=4)
    ax.set(xlabel="row", ylabel=f"distance of the last {alarms.window} rows")
    ax.set_ylim(bottom=0.0)
    ax.spines[["top", "right"]].set_visible(False)
    title = f"{label}, the first at row {alarms.rows[0] + alarms.counted_from:,}" if count else "No alarm"
    ax.set_title(title, loc="left", fontsize=10)
    # Above the frame, where there is no data.
    ax.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.1)
    return ax
