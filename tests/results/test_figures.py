"""Pictures: what is drawn by matplotlib is what pages draw, and each task draws its finding."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from isopleth import (
    KDE,
    LSDD,
    AnomalyDetector,
    ChangePointDetector,
    DataWarning,
    InputError,
    MissingExtraError,
    two_sample_test,
)
from isopleth.density import Search
from isopleth.results import Chart, Contours, Result, Series, check_figure_target, save_figure
from isopleth.results.charts import bin_edges, outlines
from isopleth.results.figures import draw
from isopleth.results.page import _chart_data
from isopleth.tasks import Anomalies, ChangePoints, Explanation
from results.result_cases import CASES, result_of

pytest.importorskip("matplotlib")
RNG = np.random.default_rng(0)


def points_of(ax) -> np.ndarray:
    """All points, curves and ends of bars on axes, sorted."""
    found = [np.column_stack(line.get_data()).astype(float) for line in ax.lines]
    found += [np.asarray(dots.get_offsets(), dtype=float) for dots in ax.collections if len(dots.get_offsets())]
    found += [[[bar.get_x() + bar.get_width(), 0.0]] for bar in ax.patches if hasattr(bar, "get_width")]
    return np.concatenate(found) if found else np.empty((0, 2))


@pytest.mark.parametrize("name", CASES)
def test_matplotlib_draws_every_number_that_a_page_draws(name):
    for chart in result_of(name)._charts():
        ax = draw([chart])
        drawn = points_of(ax)
        drawn = drawn[np.isfinite(drawn).all(axis=1)]
        for series in _chart_data(replace(chart, contours=None), 1.0)["series"]:
            values = series["y"] if chart.names else series["x"]
            unit = 86_400.0 if "x" in chart.times else 1.0
            expected = np.array(
                [x for x, y in zip(values, series["y"], strict=True) if x is not None and y is not None]
            )
            expected = expected / unit
            gap = np.abs(expected[:, None] - drawn[:, 0]).min(axis=1, initial=np.inf) if len(expected) else np.zeros(0)
            assert (gap <= 1e-5 * np.maximum(1.0, np.abs(expected))).all(), (chart.title, series["name"])
        assert chart.title.split()[0] in ax.get_title(loc="left")


def test_given_axes_hold_the_first_picture_and_a_new_figure_all():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert result_of("two samples").plot(ax=ax) is ax
    assert len(ax.figure.axes) == 1
    assert len(result_of("two samples").plot().figure.axes) == len(result_of("two samples")._charts())


def anomalies(X, flagged=(), **how) -> Anomalies:
    """A result whose score is minus the distance from the middle."""
    scores = -np.linalg.norm(X - np.median(X, axis=0), axis=1)
    p_values = (1 + np.argsort(np.argsort(scores))) / len(X)
    labels = np.ones(len(X), dtype=int)
    labels[list(flagged)] = -1
    names = [f"c{j}" for j in range(X.shape[1])]
    return Anomalies(names, X, scores, p_values, labels, labels < 0, 0.1, "worth a look", **how)


DRAWN = {
    **{name: (lambda name=name: result_of(name)) for name in CASES},
    "density": lambda: KDE(frame="scale").fit(RNG.normal(size=(50, 2))),
    "search": lambda: KDE(length_scale=Search(cv=2), frame="scale").fit(RNG.normal(size=(50, 1))).search_path_,
    "conditional": lambda: (
        KDE(frame="scale").fit(pd.DataFrame(RNG.normal(size=(50, 2)), columns=["a", "b"])).conditional({"a": 0.0})
    ),
    "difference": lambda: LSDD(length_scale=1.0).fit(RNG.normal(size=(50, 2)), RNG.normal(3.0, size=(50, 2))),
    "change points": lambda: ChangePointDetector(random_state=0).fit(RNG.normal(size=(60, 1))),
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_plot_takes_axes_and_returns_them(name):
    from matplotlib.figure import Figure

    drawn = DRAWN[name]()
    if isinstance(drawn, Result) and not drawn._charts():
        return
    ax = Figure().subplots()
    assert drawn.plot(ax=ax) is ax
    assert ax.figure.axes[0] is ax
    assert ax.has_data()


class TestAnomalies:
    def test_the_two_columns_in_which_flagged_rows_deviate(self):
        X = RNG.normal(size=(200, 5))
        X[:3, 1], X[:3, 4] = 9.0, -7.0
        rows, scores = anomalies(X, [0, 1, 2])._charts()
        assert (rows.x_label, rows.y_label, rows.title) == ("c1", "c4", "3 flagged rows in c1 and c4")
        flagged = rows.series[1]
        assert sorted(zip(flagged.x, flagged.y, strict=True)) == [(9.0, -7.0)] * 3
        assert (flagged.colour, list(flagged.labels)) == ("vermillion", ["1", "2", "3"])
        assert rows.contours.labels == ["99%", "95%", "80%", "50%"]
        assert scores.title == f"Rows are flagged up to p = {anomalies(X, [0, 1, 2]).p_values[:3].max():.3g}"
        assert [series.name for series in scores.series] == ["not flagged (197)", "flagged (3)"]

    def test_columns_that_explain_the_first_rows_come_before_those_that_deviate(self):
        X = np.random.default_rng(0).normal(size=(200, 4))
        X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
        X[3, :2] = [2.0, -2.0]  # within the range of either
        X[5:8, 3] = 7.0
        detector = AnomalyDetector(random_state=0).fit(X)
        titles = [detector.anomalies(X, explain=rows)._charts()[0].title for rows in (0, 1)]
        assert [title.partition(" in ")[2] for title in titles] == ["column 0 and column 3", "column 0 and column 1"]

    def test_without_flags_the_least_likely_rows_choose(self):
        X = RNG.normal(size=(200, 4))
        X[:12, 2:] += 30.0
        rows, scores = anomalies(X)._charts()
        assert (rows.x_label, rows.y_label, len(rows.series[1].x)) == ("c2", "c3", 10)
        assert "No row is flagged" in rows.title
        assert scores.title == "No row is flagged"

    def test_known_anomalies_have_crosses_and_are_counted(self):
        X = RNG.normal(size=(100, 2))
        X[:3] = [9.0, 9.0]
        rows, scores = anomalies(X, [0, 1, 2, 50], known=np.arange(100) < 4)._charts()
        for chart in (rows, scores):
            assert (chart.series[-1].style, len(chart.series[-1].x)) == ("crosses", 4)
        np.testing.assert_allclose(rows.series[-1].x, X[:4, 0])
        assert scores.title == "3 of 4 known anomalies are flagged"

    def test_one_column_is_a_curve_and_constant_columns_are_passed_over(self):
        rows, _ = anomalies(np.column_stack([np.ones(50), RNG.normal(size=50)]), [0])._charts()
        assert (rows.x_label, rows.y_label, rows.series[0].style) == ("c1", "density", "line")
        assert np.trapezoid(rows.series[0].y, rows.series[0].x) == pytest.approx(1.0, abs=0.1)
        assert len(anomalies(np.ones((5, 2)))._charts()) == 1

    def test_one_wild_value_does_not_shrink_the_others(self):
        X = RNG.normal(size=(300, 2))
        X[0], X[1], X[2] = [3e6, 0.0], [0.0, -500.0], [80.0, 80.0]
        result = anomalies(X, [0, 1, 2])
        rows, scores = result._charts()
        assert [45 * round(angle / 45) for angle in rows.series[1].beyond] == [90, 180, 45]
        assert np.abs(rows.series[1].x).max() < 30
        assert min(scores.series[1].y) > -1000
        assert "3 rows beyond the frame" in rows.about
        ax = draw([rows])
        corners = {}
        for dots in ax.collections:
            paths = dots.get_paths()
            if len(paths) == 1 and len(paths[0].vertices) == 4 and len(dots.get_offsets()) == 1:
                x, y = paths[0].vertices[0]
                corners[round(float(np.degrees(np.arctan2(y, x)))) % 360] = dots.get_offsets()[0]
        assert set(corners) == {0, 270, 45}  # the first corner of a triangle points: right, down, up to the right
        assert corners[0][0] > 5
        assert corners[270][1] < -5

    def test_numbers_do_not_cover_each_other(self):
        X = RNG.normal(size=(300, 2))
        X[:15] = 12.0 + 0.01 * RNG.normal(size=(15, 2))
        texts = [text.get_text() for text in anomalies(X, range(15)).plot().texts]
        assert [text for text in texts if text.isdigit()] == ["1"]

    def test_many_rows_are_thinned_and_it_is_said(self):
        rows, scores = anomalies(RNG.normal(size=(6001, 2)), [0])._charts()
        assert (len(rows.series[0].x), rows.series[0].name) == (2000, "not flagged (2,000 of 6,000 shown)")
        assert len(scores.series[0].x) < 700
        assert (np.diff(scores.series[0].y) >= 0).all()

    @pytest.mark.parametrize("X", [RNG.integers(0, 2, size=(60, 2)) * 1.0, np.arange(6.0).reshape(3, 2)])
    def test_few_distinct_values_and_all_rows_flagged(self, X):
        assert len(anomalies(X, [0]).plot().figure.axes) == 2
        assert len(anomalies(X, range(len(X)))._charts()[0].series[1].x) == len(X)


def changes(kinds, length=60, dim=1, **more) -> ChangePoints:
    places = np.arange(1, len(kinds) + 1) * (length // (len(kinds) + 1))
    series = np.arange(length * dim, dtype=float).reshape(-1, dim)
    intervals = np.column_stack([places - 1, places + 2])
    p_values, columns = np.full(len(kinds), 0.01), [(0,)] * len(kinds)
    return ChangePoints(places, np.array(kinds, dtype="<U7"), series, p_values, columns, intervals, **more)


class TestChanges:
    def test_every_change_and_its_interval_are_marked_in_every_panel(self):
        found = changes(["level", "scatter", "level"], dim=2)
        axes = found.plot().figure.axes
        assert len(axes) == 2
        for ax in axes:
            marks = [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2]
            assert marks == [place - 0.5 for place in found.change_points]
            inside = [band.get_extents().transformed(ax.transData.inverted()).intervalx for band in ax.patches]
            np.testing.assert_allclose(inside, [(place - 1.5, place + 1.5) for place in found.change_points])
        assert axes[0].get_title(loc="left") == "column 0: 3 changes"

    def test_segments_between_levels_carry_their_lines(self):
        rising, sloped, none = (changes(kinds)._charts()[0].series for kinds in (["level"], ["slope"], []))
        assert [y for y in rising[1].y if y == y] == pytest.approx([0.0, 29.0, 30.0, 59.0])
        assert [x for x, y in zip(rising[1].x, rising[1].y, strict=True) if y == y] == [0.0, 29.5, 29.5, 59.0]
        assert len(sloped) == len(none) == 1

    def test_many_columns_are_shown_in_part_and_long_series_keep_their_extremes(self):
        charts = changes(["level"], dim=9)._charts()
        assert len(charts) == 6
        assert "6 of 9 columns are shown" in charts[0].about
        long = changes(["level"], length=50_000)
        long.series[12_345] = 1e9
        (curve, *_) = long._charts()[0].series
        assert len(curve.x) <= 2100
        assert max(curve.y) == 1e9

    def test_times_or_lines_of_a_file_stand_at_the_axis(self):
        days = np.datetime64("2024-01-01") + np.arange(60)
        ax = changes(["level"], times=days).plot()
        assert ax.get_xlabel() == "time"
        assert {"Jan", "Feb"} <= set(ax.xaxis.get_major_formatter().format_ticks(ax.get_xticks()))
        assert ax.lines[0].get_xdata()[0] == (days[0] - np.datetime64("1970-01-01")).astype(float)
        (chart,) = changes(["level"], where={"line": np.arange(60) + 2})._charts()
        assert (chart.x_label, chart.lines) == ("line", [(31.5, "line 32, level")])


class TestTwoSamples:
    FEW = {"n_resamples": 99, "random_state": 0}  # noqa: RUF012

    def test_the_column_that_differs_is_on_top_and_drawn_for_both_samples(self):
        X, Y = RNG.normal(size=(200, 3)), RNG.normal(size=(150, 3)) * [1.0, 1.0, 5.0] + [0.0, 3.0, 0.0]
        result = replace(two_sample_test(X, Y, **self.FEW), labels=("before", "after"))
        bars, *panels = result._charts()
        assert bars.names[0] == "column 1"
        assert (bars.series[0].y > 0).tolist() == [True, True, False]
        titles = [panel.title for panel in panels]
        assert "median from" in titles[0]
        assert "spread from" in titles[1]
        assert [series.name[:7] for series in panels[0].series] == ["before:", "after: "]

    def test_rows_are_drawn_where_no_column_differs_and_strong_where_their_sample_exceeds(self):
        X, Y = RNG.normal(size=(60, 2)), RNG.normal(size=(40, 2))
        Y[:, 1] = Y[:, 0] + 0.1 * Y[:, 1]  # each column alone is as before
        result = two_sample_test(X, Y, **self.FEW)
        chart = result._charts()[1]
        assert chart.title == "No column is shown to differ by itself"
        assert [sum(len(series.x) for series in chart.series[k : k + 2]) for k in (0, 2)] == [60, 40]
        strong = result.witness.x >= 0.5 * result.witness.x.max()
        np.testing.assert_allclose(np.sort(chart.series[1].x), np.sort(result.problem.given[0][strong, 0]))

    def test_words_and_times_are_written_at_the_axes(self):
        pandas = pytest.importorskip("pandas")

        def table(n, red, first):
            days = pandas.Timestamp(first) + pandas.to_timedelta(RNG.integers(0, 50, n), unit="D")
            colours = RNG.choice(["red", "blue", None], n, p=[red, 0.9 - red, 0.1])
            return pandas.DataFrame({"colour": colours, "day": days, "size": RNG.normal(size=n)})

        charts = two_sample_test(table(80, 0.2, "2024-01-01"), table(60, 0.8, "2024-02-01"), **self.FEW)._charts()
        words = next(chart for chart in charts[1:] if chart.names)
        assert (set(words.names), words.series[0].style) == ({"red", "blue"}, "pairs")
        days = next(chart for chart in charts if chart.x_label == "day")
        ax = draw([days])
        assert {"Feb", "Mar"} <= set(ax.xaxis.get_major_formatter().format_ticks(ax.get_xticks()))
        assert days.title.startswith("day: median from 2024-01-")


def explained(excess, values=None, usual=None) -> Explanation:
    excess = np.atleast_2d(np.asarray(excess, dtype=float))
    values = np.zeros(excess.shape) if values is None else np.atleast_2d(values)
    usual = np.ones(excess.shape) if usual is None else np.atleast_2d(usual)
    names, none = [f"c{j}" for j in range(excess.shape[1])], np.zeros(excess.shape)
    return Explanation(names, values, excess, none, usual, usual, usual, -1.0 - np.arange(len(excess)))


class TestExplanations:
    def test_bars_fall_and_carry_both_values(self):
        ax = explained([[1.0, 3.0, 2.0], [0.0, 0.0, 4.0]], [[5.0, 17.99, 7.0]] * 2, [[4.0, 12.1, 6.0]] * 2).plot()
        assert [label.get_text() for label in ax.get_yticklabels()] == ["c1", "c2", "c0"]
        assert [bar.get_width() for bar in ax.patches] == [3.0, 2.0, 1.0]
        assert ax.texts[0].get_text() == "17.99 → 12.1"
        assert ax.yaxis.get_inverted()

    def test_only_columns_that_explain_of_the_row_that_is_asked_for(self):
        two = explained([[0.0, 0.0, 0.0], [*np.zeros(2), 1.0]])
        assert "No column alone" in " ".join(text.get_text() for text in two.plot().texts)
        assert two._charts()[1].names == ["c2"]
        assert two.plot(row=-1).get_title(loc="left") == "Row 1, score -2"
        assert len(explained(np.arange(30))._charts()[0].names) == 12
        for row in (2, -3, 0.0, True, "0"):
            with pytest.raises(InputError, match="row = "):
                two.plot(row=row)

    def test_long_names_and_numbers_stay_inside_the_figure(self):
        giant = Explanation(
            ["n" * 80], *np.array([[[1.2345678e-9]], [[3.0]], [[0.0]], *[[[-9.8765432e12]]] * 3]), np.array([-5.0])
        )
        ax = giant.plot()
        canvas = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg(ax.figure)
        canvas.draw()
        for text in [*ax.texts, *ax.get_yticklabels()]:
            box = text.get_window_extent(canvas.get_renderer())
            assert box.x0 >= 0
            assert box.x1 <= ax.figure.bbox.x1


def test_outlines_lie_on_their_levels():
    side = np.linspace(-2.0, 2.0, 81)
    x, y = np.meshgrid(side, side)
    (ring,) = outlines(Contours(side, side, -np.hypot(x, y), [-1.0], ["half"]))
    places = np.column_stack([ring.x, ring.y])
    assert np.isnan(places[2::3]).all()
    places = places[np.isfinite(places).all(axis=1)]
    np.testing.assert_allclose(np.hypot(*places.T), 1.0, atol=0.002)
    assert (
        np.unique(places.round(9), axis=0, return_counts=True)[1].min() == 2
    )  # each segment ends where another begins
    lengths = np.hypot(*(places[::2] - places[1::2]).T)
    assert lengths.sum() == pytest.approx(2.0 * np.pi, rel=1e-3)  # all the way round, once


X = np.random.default_rng(0).normal(size=(50, 2))


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".PDF", b"%PDF"), (".svg", b"<?xml")])
def test_the_suffix_decides_the_format(tmp_path, suffix, magic):
    save_figure(anomalies(X).plot(), tmp_path / f"picture{suffix}")
    assert (tmp_path / f"picture{suffix}").read_bytes().startswith(magic)
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        check_figure_target(tmp_path / "picture.jpeg")


def test_dollars_are_letters_and_no_formulas(tmp_path):
    names = ["price ($)", "$x_{$"]
    for ax in (replace(anomalies(X), names=names).plot(), replace(explained(np.abs(X)), names=names).plot()):
        save_figure(ax, tmp_path / "picture.svg")
        text = (tmp_path / "picture.svg").read_text()
        assert all(f"<!-- {name} -->" in text for name in names)


def test_letters_that_the_font_lacks_are_one_warning(tmp_path):
    chart = Chart("温度", "温度", "湿度\x1b", [Series("s", [0.0, 1.0], [1.0, 2.0])])
    with pytest.warns(DataWarning, match="drawn as boxes") as caught:
        save_figure(draw([chart]), tmp_path / "picture.png")
    assert len(caught) == 1


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install matplotlib"):
        check_figure_target(tmp_path / "picture.png")


def test_a_histogram_has_so_many_bins_and_few_whole_numbers_have_one_each():
    np.testing.assert_allclose(bin_edges(np.array([0.5]), 4, 0.0, 2.0), [0.0, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(bin_edges(np.array([2.5]), 4, 2.5, 2.5), [2.5, 2.75, 3.0, 3.25, 3.5])
    np.testing.assert_allclose(bin_edges(np.array([1.0, 3.0, 99.0]), 4, 1.0, 3.0), [0.5, 1.5, 2.5, 3.5])
