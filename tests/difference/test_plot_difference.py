"""Pictures of differences: colours are on the side of their sample, and words say what is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from isopleth import LSDD, InputError

contour = pytest.importorskip("matplotlib.contour")

SETTINGS = {"length_scale": 0.7, "alpha": 1.0, "centers": 60, "random_state": 0, "n_jobs": 1}


def two(dim, shift=1.5, n=120, m=90):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, dim)), rng.normal(size=(m, dim))
    y[:, 0] += shift
    return x, y


def filled(ax):
    return [c for c in ax.collections if isinstance(c, contour.QuadContourSet) and c.filled]


def words(ax):
    return " ".join(text.get_text() for text in ax.texts)


class TestOneColumn:
    x, y = two(1)
    difference = LSDD(**SETTINGS).fit(x, y)

    def test_curve_and_band_are_the_difference_and_its_deviation(self):
        ax = self.difference.plot(labels=("before", "after"))
        curve = next(line for line in ax.lines if len(line.get_xdata()) > 2)
        at, height = curve.get_data()
        np.testing.assert_allclose(height, self.difference.difference(at[:, None]))
        band = ax.collections[-1].get_paths()[0].vertices
        reach = 1.959964 * self.difference.difference_std(at[:, None])
        assert band[:, 1].max() == pytest.approx((height + reach).max())
        assert band[:, 1].min() == pytest.approx((height - reach).min())
        assert ax.get_ylabel() == "density of before - density of after"
        low, high = self.difference.squared_l2_interval()
        assert words(ax) == f"squared L2 distance {low:.3g} to {high:.3g} (95%)"

    def test_regions_end_at_their_thresholds(self):
        ax = self.difference.plot(masses=[0.6])
        low, high = self.difference.level_set(0.6)
        sides = [collection.get_paths()[0].vertices for collection in ax.collections[:2]]
        above, below = (np.abs(vertices[vertices[:, 1] != 0.0, 1]) for vertices in sides)
        assert above.min() == pytest.approx(high, rel=0.1)
        assert below.min() == pytest.approx(-low, rel=0.1)

    def test_rows_stand_on_the_edge_of_their_sample(self):
        ax = self.difference.plot(rows=(self.x, self.y))
        dots = ax.collections[-2:]
        assert [set(dot.get_offsets()[:, 1]) for dot in dots] == [{1.0}, {0.0}]
        assert [len(dot.get_offsets()) for dot in dots] == [120, 90]


class TestTwoColumns:
    x, y = two(2)
    difference = LSDD(**SETTINGS).fit(x, y)

    def test_regions_of_both_samples_with_their_shares(self):
        ax = self.difference.plot(masses=[0.5, 0.9])
        assert len(filled(ax)) == 2
        below, above = self.difference.level_set([0.9, 0.5])
        assert filled(ax)[0].levels[:-1] == pytest.approx(above)
        assert filled(ax)[1].levels[:-1] == pytest.approx(-below)
        assert {text.get_text() for text in ax.texts if text.get_text().endswith("%")} == {"50%", "90%"}

    def test_wild_rows_do_not_widen_the_frame(self):
        x, y = self.x.copy(), self.y.copy()
        x[0], y[0] = 1e9, -1e9
        ax = LSDD(**SETTINGS).fit(x, y).plot(rows=(x, y))
        assert np.ptp(ax.get_xlim()) < 12.0
        count = int(words(ax).split(" beyond the frame")[0].split()[-1])
        drawn = [c for c in ax.collections if not isinstance(c, contour.QuadContourSet)]
        assert sum(len(c.get_offsets()) for c in drawn if len(c.get_paths()[0].vertices) == 4) == count >= 2

    def test_constant_columns_do_not_count(self):
        with pytest.warns(match="constant"):
            wide = LSDD(**SETTINGS).fit(np.insert(self.x, 1, 5.0, axis=1), np.insert(self.y, 1, 5.0, axis=1))
        ax = wide.plot()
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 0", "column 2")
        assert len(filled(ax)) == 2


def test_equal_samples_are_said_to_be():
    x, _ = two(2)
    ax = LSDD(**SETTINGS).fit(x, x).plot()
    assert ax.get_title(loc="left").startswith("No region")
    assert "equal densities are not excluded" in words(ax)


@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning")
def test_names_of_data_frames():
    pandas = pytest.importorskip("pandas")
    x, y = (pandas.DataFrame(part, columns=["age", "cost in $"]) for part in two(2))
    ax = LSDD(**SETTINGS).fit(x, y).plot(rows=(x, y))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", r"cost in \$")


def test_many_rows_are_thinned():
    x, y = two(1)
    ax = LSDD(**SETTINGS).fit(x, y).plot(rows=(np.tile(x, (30, 1)), y))
    assert "2,500 of 3,600 rows of X shown" in words(ax)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masses": []}, "expected one to 4 numbers"),
        ({"masses": [1.0]}, "expected numbers between 0 and 1"),
        ({"rows": np.zeros((2, 1))}, "expected a tuple of two"),
        ({"labels": ["X"]}, "expected two names"),
        ({"masses": "half"}, "expected numbers between 0 and 1"),
        ({"labels": None}, "expected two names"),
    ],
)
def test_what_cannot_be_drawn_is_said(change, message):
    with pytest.raises(InputError, match=message):
        TestOneColumn.difference.plot(**change)


def test_three_columns_and_no_fit():
    with pytest.raises(InputError, match="has 3 columns; fit it to the one or two"):
        LSDD(**SETTINGS).fit(*two(3)).plot()
    with pytest.raises(NotFittedError):
        LSDD().plot()
