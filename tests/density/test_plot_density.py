"""Pictures of densities: each region holds the share of the mass that its label says."""

from __future__ import annotations

import sys

import numpy as np
import pandas
import pytest
from sklearn.exceptions import NotFittedError

from isopleth import KDE, SOSREP, InputError, MissingExtraError
from isopleth.density.figures import plot_density

matplotlib_path = pytest.importorskip("matplotlib.path")
contour = pytest.importorskip("matplotlib.contour")

MASSES = (0.5, 0.8, 0.95)


def two_modes(rng, n):
    rows = rng.normal(size=(n, 2)) * [1.0, 0.3]
    rows[::3] = rng.normal(size=rows[::3].shape) * [0.3, 1.0] + [4.0, 2.0]
    return rows


X = two_modes(np.random.default_rng(0), 600)
DENSITY = SOSREP(frame="scale").fit(X)


def lines_of(ax):
    """The isopleths that are drawn as lines."""
    return next(c for c in ax.collections if isinstance(c, contour.QuadContourSet) and not c.filled)


def percents(ax) -> set[str]:
    return {text.get_text() for text in ax.texts if text.get_text().endswith("%")}


def inside(path, rows) -> np.ndarray:
    """Rows within an odd number of the closed lines of one level."""
    parts = path.to_polygons(closed_only=False)
    return sum(matplotlib_path.Path(part).contains_points(rows).astype(int) for part in parts) % 2 == 1


class TestTwoColumns:
    def test_one_line_a_mass_with_its_label(self):
        ax = plot_density(DENSITY, masses=MASSES)
        assert len(lines_of(ax).levels) == len(MASSES)
        assert percents(ax) == {"50%", "80%", "95%"}

    @pytest.mark.parametrize("columns", [None, [1, 0]])
    def test_fresh_rows_fall_inside_as_often_as_is_written(self, columns):
        # One mass a picture: labels break lines, which must be closed to have an inside.
        fresh = two_modes(np.random.default_rng(1), 4000)[:, columns or [0, 1]]
        for mass in MASSES:
            ax = plot_density(DENSITY, columns, masses=[mass])
            filled = next(c for c in ax.collections if isinstance(c, contour.QuadContourSet) and c.filled)
            share = inside(filled.get_paths()[0], fresh).mean()
            assert share == pytest.approx(mass, abs=0.035)

    def test_masses_may_come_in_any_order_and_have_digits(self):
        assert percents(plot_density(DENSITY, masses=[0.995, 0.5])) == {"99.5%", "50%"}
        levels = lines_of(plot_density(DENSITY, masses=[0.2, 0.9, 0.5])).levels
        np.testing.assert_allclose(levels, DENSITY.level_set([0.9, 0.5, 0.2]))

    def test_the_outermost_line_closes_inside_the_frame(self):
        ax = plot_density(DENSITY, masses=[0.99])
        corner = np.array([ax.get_xlim(), ax.get_ylim()])
        edges = [np.linspace(*corner.T, 200) for _ in range(4)]
        for k, edge in enumerate(edges):
            edge[:, k // 2] = corner[k // 2, k % 2]
        assert (DENSITY.score_samples(np.concatenate(edges)) < DENSITY.level_set(0.99)).all()

    def test_the_axes_have_the_names_of_the_columns(self):
        pd = pytest.importorskip("pandas")
        density = SOSREP(frame="scale").fit(pd.DataFrame(X, columns=["width", "height"]))
        ax = plot_density(density, ["height", "width"])
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", "width")

    def test_repeated_rows_may_give_two_masses_one_level(self):
        corners = np.random.default_rng(0).integers(0, 2, size=(200, 2)).astype(float)
        levels = lines_of(plot_density(SOSREP(frame="scale").fit(corners), masses=[0.5, 0.51, 0.52])).levels
        assert 1 <= len(levels) <= 3
        assert (np.diff(levels) > 0).all()


class TestOneColumn:
    def test_the_curve_is_the_density(self):
        density = SOSREP(frame="scale").fit(X[:, :1])
        ax = plot_density(density, masses=MASSES)
        x, y = ax.lines[0].get_data()
        assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.01)
        np.testing.assert_allclose(np.log(y), density.score_samples(x[:, None]), atol=1e-9)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 0", "density")
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["95%", "80%", "50%"]

    def test_regions_are_where_the_density_is_above_their_level(self):
        density = SOSREP(frame="scale").fit(X[:, :1])
        ax = plot_density(density, masses=[0.8])
        x = np.concatenate([path.vertices[:, 0] for path in ax.collections[0].get_paths()])
        assert density.score_samples(x[:, None]).min() >= density.level_set(0.8) - 1e-9


class TestSomeColumnsOfMore:
    rows = np.column_stack([X, np.random.default_rng(2).exponential(size=len(X)), np.ones(len(X))])

    @pytest.mark.filterwarnings("ignore:constant columns")
    def test_a_density_of_the_same_kind_is_fitted_to_them(self):
        whole = KDE(length_scale=[1.0, 0.2, 0.1, 1.0], bounds={2: (0, None)}, frame="scale").fit(self.rows)
        own = KDE(length_scale=[0.1, 0.2], bounds={0: (0, None)}, frame="scale").fit(self.rows[:, [2, 1]])
        ax = plot_density(whole, [2, 1], masses=MASSES)
        np.testing.assert_allclose(lines_of(ax).levels, own.level_set(MASSES)[::-1])

    @pytest.mark.filterwarnings("ignore:constant columns")
    def test_weights_are_kept(self):
        weights = np.where(X[:, 0] > 2.5, 0.0, 1.0)
        whole = SOSREP(frame="scale").fit(self.rows, sample_weight=weights)
        x, y = plot_density(whole, 0).lines[0].get_data()
        assert x[np.argmax(y)] < 1.0
        assert y[x > 3.5].sum() < 0.01 * y.sum()

    @pytest.mark.filterwarnings("ignore:constant columns")
    def test_what_cannot_be_drawn(self):
        whole = SOSREP(frame="scale").fit(self.rows)
        for columns, message in [
            (None, "4 columns; name or number"),
            ([0, 3], "column 3 is constant"),
            ([0, 1, 2], "one or two columns, got 3"),
            ([], "got 0"),
            ([1, 1], "the same column twice"),
            (4, "no column 4; expected a number from 0 to 3"),
            (-1, "no column -1"),
            ("age", "no column 'age'"),
        ]:
            with pytest.raises(InputError, match=message):
                plot_density(whole, columns)


class TestBounds:
    def test_the_frame_ends_at_them(self):
        rng = np.random.default_rng(0)
        rows = np.column_stack([rng.exponential(size=300), rng.uniform(size=300)])
        density = SOSREP(bounds=[(0, None), (0, 1)], frame="scale").fit(rows)
        ax = plot_density(density)
        assert ax.get_xlim()[0] == 0.0
        assert ax.get_ylim()[0] >= 0.0
        assert ax.get_ylim()[1] <= 1.0
        x, y = plot_density(density, columns=0).lines[0].get_data()
        assert x[0] == 0.0
        assert np.isfinite(y).all()


class TestRows:
    def test_are_drawn_where_they_are(self):
        ax = plot_density(DENSITY, [1, 0], rows=X[:30])
        np.testing.assert_array_equal(ax.collections[-1].get_offsets(), X[:30, ::-1])

    def test_wild_ones_stand_at_the_edge_and_it_is_said(self):
        ax = plot_density(DENSITY, rows=np.vstack([X, [[1e6, 0.0]]]))
        assert ax.get_xlim()[1] < 50.0
        assert any("1 beyond the frame" in text.get_text() for text in ax.texts)

    def test_must_have_all_columns(self):
        with pytest.raises(ValueError, match="features"):
            plot_density(DENSITY, rows=X[:, :1])


class TestCall:
    def test_axes_that_are_given_are_drawn_on(self):
        ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
        assert plot_density(DENSITY, ax=ax) is ax
        assert DENSITY.plot(ax=ax, masses=[0.5]) is ax

    @pytest.mark.parametrize("masses", [[0.0], 1.0, [0.5, 1.5], [], ["most"]])
    def test_masses_are_between_0_and_1(self, masses):
        with pytest.raises(InputError, match="mass"):
            plot_density(DENSITY, masses=masses)

    def test_unfitted_is_refused(self):
        with pytest.raises(NotFittedError):
            SOSREP(frame="scale").plot()

    def test_without_matplotlib_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(MissingExtraError, match=r"pip install matplotlib \(extra 'plot'\)"):
            plot_density(DENSITY)


@pytest.mark.filterwarnings("ignore:column 'a' holds numbers with limits")
def test_a_density_of_a_table_with_limits_or_gaps_says_what_can_be_drawn():
    """Limits gave "X has no names of columns", where no X was passed."""
    numbers = np.random.default_rng(0).normal(size=(60, 2))
    limits = pandas.DataFrame(numbers, columns=["a", "b"]).astype(object)
    limits.loc[0, "a"] = "<-2"
    gaps = pandas.DataFrame(numbers, columns=["a", "b"]).mask(numbers < -1.5)
    for table in (limits, gaps):
        for density in (SOSREP(), KDE()):
            with pytest.raises(InputError, match="words, times, gaps or limits"):
                density.fit(table).plot()
