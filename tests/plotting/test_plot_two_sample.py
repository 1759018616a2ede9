"""Pictures of two samples: columns by p-value, rows by sample."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import InputError, two_sample_test
from isopleth.plotting import plot_two_samples
from isopleth.plotting.style import BLUE, GREY

pytest.importorskip("matplotlib")
FEW = {"n_resamples": 99, "random_state": 0}


def drawn(d, shift=3.0, **options):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, d)), rng.normal(size=(40, d))
    Y[:, d - 1] += shift
    result = two_sample_test(X, Y, **FEW)
    return result, plot_two_samples(result, **options)


def test_the_clearest_column_is_on_top_and_coloured():
    from matplotlib.colors import to_hex

    result, figure = drawn(3)
    left, right = figure.axes[:2]
    assert left.get_yticklabels()[0].get_text() == "column 2"
    assert to_hex(left.patches[0].get_facecolor()).upper() == BLUE
    assert to_hex(left.patches[1].get_facecolor()).upper() == GREY
    assert left.texts[0].get_text() == f"p = {result.witness.p_values.min():.3g}"
    assert right.get_xlabel() == "column 2"
    assert right.get_title(loc="left").startswith("column 2: median ")
    assert left.get_title(loc="left") == "The samples differ: p = 0.01"


def test_all_rows_are_drawn_once_and_strong_where_their_sample_exceeds():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(40, 2))
    Y[:, 1] = Y[:, 0] + 0.1 * Y[:, 1]  # each column alone is as before
    result = two_sample_test(X, Y, **FEW)
    figure = plot_two_samples(result)
    assert "No column differs by itself" in figure.axes[1].get_title(loc="left")
    weak_x, strong_x, weak_y, strong_y = figure.axes[1].collections
    assert len(weak_x.get_offsets()) + len(strong_x.get_offsets()) == 60
    assert len(weak_y.get_offsets()) + len(strong_y.get_offsets()) == 40
    strong = result.witness.x >= 0.5 * result.witness.x.max()
    np.testing.assert_allclose(np.sort(strong_x.get_offsets()[:, 0]), np.sort(result.problem.given[0][strong, 0]))


def test_one_column_is_drawn_as_histograms_of_area_1():
    _, figure = drawn(1)
    from matplotlib.patches import StepPatch

    steps = [patch for patch in figure.axes[1].patches if isinstance(patch, StepPatch)]
    for step in steps:
        values, edges, _ = step.get_data()
        assert (values * np.diff(edges)).sum() == pytest.approx(1.0)
    assert len(steps) == 4


def test_names_and_labels_of_the_user():
    _, figure = drawn(2, names=["$ earned", "age"], labels=("before", "after"))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "before (60 rows)",
        "after (40 rows)",
    ]
    assert figure.axes[0].get_yticklabels()[0].get_text() == "age"


def test_one_name_a_column_is_needed():
    with pytest.raises(InputError, match="names has 1 entries"):
        drawn(2, names=["age"])


def test_the_columns_that_differ_most_are_drawn_before_and_after():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 6)), rng.normal(size=(200, 6))
    Y[:, 1:5] += [0.8, 3.0, 2.0, 1.5]
    Y[:, 2] = 40.0 * rng.normal(size=200)
    result = two_sample_test(X, Y, **FEW)
    _, *panels = plot_two_samples(result).axes
    shown = [panel.get_xlabel() for panel in panels]
    assert shown == [result.names[j] for j in result.witness.order[:3]]
    titles = [panel.get_title(loc="left") for panel in panels]
    assert all(f"{name}: " in title for name, title in zip(shown, titles, strict=True))
    assert all("spread " in title if "column 2" in title else "median " in title for title in titles)


def test_ten_columns_at_most():
    _, figure = drawn(15)
    assert len(figure.axes[0].patches) == 10
    assert "10 of 15 columns" in figure.axes[0].get_xlabel()


def test_equal_rows_cannot_be_drawn():
    with pytest.raises(InputError, match="all rows"):
        two_sample_test(np.ones((3, 2)), np.ones((4, 2)), **FEW).plot()


def test_the_method_draws_the_same():
    result, figure = drawn(2)
    assert len(result.plot().axes) == len(figure.axes)


def test_words_and_times_are_written_at_the_axes():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)

    def table(n, red, first):
        return pandas.DataFrame(
            {
                "colour": rng.choice(["red", "blue", None], n, p=[red, 0.9 - red, 0.1]),
                "day": pandas.Timestamp(first) + pandas.to_timedelta(rng.integers(0, 50, n), unit="D"),
                "size": rng.normal(size=n),
            }
        )

    result = two_sample_test(table(80, 0.2, "2024-01-01"), table(60, 0.8, "2024-02-01"), **FEW)
    panels = {axes.get_xlabel(): axes for axes in plot_two_samples(result).axes[1:]}
    colours, days = panels["share of the rows (colour)"], panels["day"]
    assert {text.get_text() for text in colours.get_yticklabels()} == {"red", "blue"}
    assert colours.get_title(loc="left").startswith("colour: red ")
    assert {"Feb", "Mar"} <= set(days.xaxis.get_major_formatter().format_ticks(days.get_xticks()))
    assert days.get_title(loc="left").startswith("day: median 2024-01-")
