"""Plot densities and the results of tasks."""

from __future__ import annotations

from isopleth.plotting.anomalies import plot_anomalies
from isopleth.plotting.change_points import plot_change_points
from isopleth.plotting.class_prior import plot_class_priors
from isopleth.plotting.density import plot_density
from isopleth.plotting.difference import plot_difference
from isopleth.plotting.drift import plot_drift
from isopleth.plotting.explanation import plot_explanation
from isopleth.plotting.goodness_of_fit import plot_stein_test
from isopleth.plotting.saving import check_figure_target, save_figure
from isopleth.plotting.search import plot_search
from isopleth.plotting.two_sample import plot_made_rows, plot_two_samples

__all__ = [
    "check_figure_target",
    "plot_anomalies",
    "plot_change_points",
    "plot_class_priors",
    "plot_density",
    "plot_difference",
    "plot_drift",
    "plot_explanation",
    "plot_made_rows",
    "plot_search",
    "plot_stein_test",
    "plot_two_samples",
    "save_figure",
]
