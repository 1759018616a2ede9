"""Pictures of explanations: the columns that explain most, and between which values."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.errors import InputError
from isopleth.plotting import plot_explanation
from isopleth.tasks.anomaly.explanation import Explanation

pytest.importorskip("matplotlib")


def explained(rise, values=None, best=None):
    rise = np.atleast_2d(np.asarray(rise, dtype=float))
    names = [f"c{j}" for j in range(rise.shape[1])]
    values = np.zeros(rise.shape) if values is None else np.atleast_2d(values)
    best = np.ones(rise.shape) if best is None else np.atleast_2d(best)
    return Explanation(names, values, rise, best, -1.0 - np.arange(len(rise)))


def names_of(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_bars_fall_and_carry_both_values():
    ax = plot_explanation(explained([1.0, 3.0, 2.0], [5.0, 17.99, 7.0], [4.0, 12.1, 6.0]))
    assert names_of(ax) == ["c1", "c2", "c0"]
    assert [bar.get_width() for bar in ax.patches] == [3.0, 2.0, 1.0]
    assert ax.texts[0].get_text() == "17.99 → 12.1"
    assert ax.yaxis.get_inverted()


def test_ten_columns_at_most_and_only_those_that_explain():
    ax = plot_explanation(explained(np.arange(30)))
    assert names_of(ax) == [f"c{j}" for j in range(29, 19, -1)]
    assert "10 of 30 columns" in ax.get_xlabel()
    assert names_of(plot_explanation(explained([0.0, 2.0, 0.0]))) == ["c1"]


def test_the_row_is_named_with_its_score():
    three = explained([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]])
    assert plot_explanation(three, 1).get_title(loc="left").startswith("Row 1, score -2\n")
    assert plot_explanation(three, -1).get_title(loc="left").startswith("Row 2, score -3\n")


def test_a_row_that_no_column_explains():
    ax = plot_explanation(explained([0.0, 0.0]))
    assert not ax.patches
    assert "no column alone" in ax.texts[0].get_text()


def test_narrow_axes_hold_their_title_and_label():
    figure = pytest.importorskip("matplotlib.figure").Figure((6.4, 4), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax in axes:
        plot_explanation(explained(np.r_[3.49e9, np.arange(11)]), ax=ax)
    canvas = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    canvas.draw()
    for ax, beside in zip(axes, [*axes[1:], None], strict=True):
        end = figure.bbox.x1 if beside is None else beside.get_window_extent().x0
        assert ax.xaxis.label.get_window_extent().x1 <= end
        assert ax._left_title.get_window_extent().x1 <= end
        assert ax.xaxis.get_offset_text().get_text() == ""


def test_long_names_and_numbers_stay_inside_the_figure():
    giant = Explanation(["n" * 80], *np.array([[[1.2345678e-9]], [[3.0]], [[-9.8765432e12]]]), np.array([-5.0]))
    ax = plot_explanation(giant)
    canvas = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg(ax.figure)
    canvas.draw()
    for text in [*ax.texts, *ax.get_yticklabels()]:
        box = text.get_window_extent(canvas.get_renderer())
        assert box.x0 >= 0
        assert box.x1 <= ax.figure.bbox.x1


@pytest.mark.parametrize("row", [1, -2, 0.0, True, "0"])
def test_rows_that_are_not_there_are_refused(row):
    with pytest.raises(InputError, match="row = "):
        plot_explanation(explained([1.0, 2.0]), row)


def test_axes_that_are_given_are_drawn_on():
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    assert explained([1.0, 2.0]).plot(ax=ax) is ax
