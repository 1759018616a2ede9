"""Pictures of change points: what is marked, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isopleth.plotting import plot_change_points, save_figure
from isopleth.tasks import ChangePoints


def made_up(kinds, length=60, dim=1):
    places = np.arange(1, len(kinds) + 1) * (length // (len(kinds) + 1))
    series = np.arange(length * dim, dtype=float).reshape(-1, dim)
    return ChangePoints(
        places, np.array(kinds, dtype="<U7"), series, intervals=np.column_stack([places - 1, places + 2])
    )


def test_every_change_is_marked_in_every_panel_in_the_style_of_its_kind():
    changes = made_up(["level", "scatter", "level"], dim=2)
    figure = plot_change_points(changes)
    assert len(figure.axes) == 2
    for axes in figure.axes:
        marks = {
            float(line.get_xdata()[0])
            for line in axes.lines
            if len(line.get_xdata()) == 2 and not line.get_label().startswith("level")
        }
        assert {place - 0.5 for place in changes.places} <= marks
        bands = {(band.get_x(), band.get_x() + band.get_width()) for band in axes.patches}
        assert bands == {(place - 1.5, place + 1.5) for place in changes.places}
    assert figure.axes[0].get_title(loc="left").startswith("3 changes, at step ")


def test_segments_carry_their_means_unless_they_are_lines():
    flat, sloped = (plot_change_points(made_up([kind])).axes[0] for kind in ("level", "slope"))
    assert len(flat.collections) == 1
    assert [segment[0, 1] for segment in flat.collections[0].get_segments()] == [14.5, 44.5]
    assert len(sloped.collections) == 0


def test_without_a_change_there_is_no_legend():
    figure = plot_change_points(made_up([]))
    assert figure.axes[0].get_title(loc="left") == "No change"
    assert not figure.legends


def test_many_columns_are_shown_in_part_and_that_is_said():
    figure = plot_change_points(made_up(["level"], dim=9))
    assert len(figure.axes) == 6
    assert "6 of 9 columns shown" in [text.get_text() for text in figure.axes[5].texts]


def test_long_series_keep_their_extremes():
    changes = made_up(["level"], length=50_000)
    changes.series[12_345] = 1e9
    line = plot_change_points(changes).axes[0].lines[0]
    assert len(line.get_xdata()) <= 4000
    assert line.get_ydata().max() == 1e9


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_figure_can_be_saved(tmp_path, suffix):
    path = tmp_path / f"changes.{suffix}"
    save_figure(plot_change_points(made_up(["shape"]), ["price in $"]), path)
    assert path.stat().st_size > 2000


def test_times_stand_at_the_axis_and_in_the_title():
    days = np.datetime64("2024-01-01") + np.arange(60)
    figure = plot_change_points(replace(made_up(["level"]), times=days))
    curve = figure.axes[-1]
    assert curve.get_xlabel() == "time"
    ticks = curve.xaxis.get_major_formatter().format_ticks(curve.get_xticks())
    assert {"Jan", "Feb"} <= set(ticks)
    assert figure.axes[0].lines[0].get_xdata()[0] == (days[0] - np.datetime64("1970-01-01")).astype(float)
    assert figure.axes[0].get_title(loc="left") == "1 change, at 2024-01-31"


def test_lines_of_a_file_stand_at_the_axis_without_times():
    figure = plot_change_points(replace(made_up(["level"]), where={"line": np.arange(60) + 2}))
    assert figure.axes[-1].get_xlabel() == "line"
    assert figure.axes[0].get_title(loc="left") == "1 change, at line 32"
