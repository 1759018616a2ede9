"""Pictures of densities and of what tasks find in them."""

from __future__ import annotations

from isopleth.plotting.anomalies import plot_anomalies
from isopleth.plotting.density import plot_density
from isopleth.plotting.explanation import plot_explanation
from isopleth.plotting.saving import check_figure_target, save_figure
from isopleth.plotting.search import plot_search

__all__ = [
    "check_figure_target",
    "plot_anomalies",
    "plot_density",
    "plot_explanation",
    "plot_search",
    "save_figure",
]
