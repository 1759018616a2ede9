"""Pictures of anomalies for tables of every shape."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.errors import InputError
from isopleth.plotting import plot_anomalies

PathCollection = pytest.importorskip("matplotlib.collections").PathCollection

RNG = np.random.default_rng(0)


def drawn(X, flagged=(), **how):
    """The figure of a table whose score is minus the distance from the middle."""
    scores = -np.linalg.norm(X - np.median(X, axis=0), axis=1)
    p_values = (1 + np.argsort(np.argsort(scores))) / len(X)
    labels = np.ones(len(X), dtype=int)
    labels[list(flagged)] = -1
    names = [f"c{j}" for j in range(X.shape[1])]
    return plot_anomalies(X, names, scores, p_values, labels, **how)


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def scattered(axes) -> list:
    return [collection for collection in axes.collections if isinstance(collection, PathCollection)]


def rings(axes) -> np.ndarray:
    """Positions of the ringed rows."""
    return next(dots.get_offsets().data for dots in scattered(axes) if dots.get_sizes().tolist() == [70.0])


class TestLeftPanel:
    def test_shows_the_two_columns_in_which_flagged_rows_deviate(self):
        X = RNG.normal(size=(200, 5))
        X[:3, 1], X[:3, 4] = 9.0, -7.0
        left, _ = drawn(X, [0, 1, 2]).axes
        assert (left.get_xlabel(), left.get_ylabel()) == ("c1", "c4")
        np.testing.assert_allclose(np.sort(rings(left), axis=0), np.tile([9.0, -7.0], (3, 1)))

    def test_without_flags_the_least_likely_rows_choose(self):
        X = RNG.normal(size=(200, 4))
        X[:12, 2:] += 30.0
        left, right = drawn(X).axes
        assert (left.get_xlabel(), left.get_ylabel()) == ("c2", "c3")
        assert len(rings(left)) == 10
        assert "no row is flagged" in right.get_title(loc="left")

    def test_known_anomalies_have_crosses_in_both_panels(self):
        X = RNG.normal(size=(100, 2))
        X[:3] = [9.0, 9.0]
        known = np.arange(100) < 4
        left, right = drawn(X, [0, 1, 2, 50], known=known).axes
        crosses = [
            dots for axes in (left, right) for dots in scattered(axes) if dots.get_label() == "known anomaly (4)"
        ]
        assert [len(dots.get_offsets()) for dots in crosses] == [4, 4]
        np.testing.assert_allclose(crosses[0].get_offsets(), X[:4])
        assert right.get_title(loc="left") == "3 of 4 known anomalies are flagged"

    def test_isopleths_carry_their_mass(self):
        left, _ = drawn(RNG.normal(size=(300, 2)), [0]).axes
        assert {"50%", "80%", "95%", "99%"} <= set(texts(left))

    def test_flagged_rows_are_numbered_from_the_least_likely_on(self):
        X = RNG.normal(size=(100, 2))
        X[7], X[3] = [20.0, 0.0], [10.0, 0.0]
        left, _ = drawn(X, [3, 7]).axes
        numbers = {text.get_text()[0]: text.xy[0] for text in left.texts if text.get_text()[:2] in ("1", "2", "1:")}
        assert numbers["1"] > numbers["2"] == 10.0

    def test_one_column_gets_a_curve(self):
        left, _ = drawn(RNG.normal(size=(100, 1)), [0]).axes
        assert (left.get_xlabel(), left.get_ylabel()) == ("c0", "density")
        assert [text.get_text() for text in left.get_legend().get_texts()] == ["99%", "95%", "80%", "50%"]

    def test_constant_columns_are_passed_over(self):
        X = np.column_stack([np.ones(50), RNG.normal(size=50)])
        left, _ = drawn(X, [0]).axes
        assert left.get_xlabel() == "c1"
        with pytest.raises(InputError, match="constant"):
            drawn(np.ones((5, 2)))

    def test_one_wild_value_does_not_shrink_the_others(self):
        X = RNG.normal(size=(300, 2))
        X[0] = [1e6, 0.0]
        left, right = drawn(X, [0]).axes
        assert left.get_xlim()[1] < 30
        assert rings(left)[0, 0] < 30
        assert right.get_ylim()[0] > -1000
        for axes in (left, right):
            assert any("1 beyond the frame" in text for text in texts(axes))

    def test_rows_beyond_the_frame_point_to_their_true_place(self):
        X = RNG.normal(size=(300, 2))
        X[0], X[1], X[2] = [3e6, 0.0], [0.0, -500.0], [80.0, 80.0]
        left, right = drawn(X, [0, 1, 2]).axes
        assert [text for text in texts(left) if ":" in text] == ["1: 3,000,000", "2: -500", "3: 80, 80"]
        size = next(dots for dots in scattered(left) if dots.get_sizes().tolist() == [34.0])
        # The first corner of a triangle is the one that points: to the right, down, and up to the right.
        corners = {}
        for dots in scattered(left):
            if dots.get_sizes().tolist() == [34.0]:
                corner = dots.get_paths()[0].vertices[0]
                corners[round(float(np.degrees(np.arctan2(corner[1], corner[0])))) % 360] = dots.get_offsets().data[0]
        assert size
        assert set(corners) == {0, 270, 45}
        assert corners[0][0] < 30
        assert corners[270][1] > -30
        assert any(text.startswith("-3e+06") for text in texts(right))

    def test_numbers_do_not_cover_each_other(self):
        X = RNG.normal(size=(300, 2))
        X[:15] = 12.0 + 0.01 * RNG.normal(size=(15, 2))
        left, _ = drawn(X, range(15)).axes
        assert [text for text in texts(left) if text.isdigit()] == ["1"]

    def test_known_anomalies_have_crosses_and_are_counted(self):
        X = RNG.normal(size=(100, 2))
        X[:4] += 9.0
        known = np.arange(100) < 6
        left, right = drawn(X, range(4), known=known).axes
        assert right.get_title(loc="left") == "4 of 6 known anomalies are flagged"
        for axes in (left, right):
            crosses = [dots for dots in scattered(axes) if "known" in dots.get_label()]
            assert len(crosses[0].get_offsets()) == 6
        np.testing.assert_allclose(crosses[0].get_offsets()[:, 0].max(), 100, atol=99)

    def test_many_rows_are_thinned_and_it_is_said(self):
        left, _ = drawn(RNG.normal(size=(6001, 2)), [0]).axes
        assert any("5,001 of 6,001 rows shown" in text for text in texts(left))
        assert max(len(dots.get_offsets()) for dots in scattered(left)) == 5000

    @pytest.mark.parametrize("X", [RNG.integers(0, 2, size=(60, 2)) * 1.0, np.arange(6.0).reshape(3, 2)])
    def test_few_distinct_values(self, X):
        assert len(drawn(X, [0]).axes) == 2

    def test_all_rows_flagged(self):
        assert len(rings(drawn(RNG.normal(size=(30, 2)), range(30)).axes[0])) == 30


class TestRightPanel:
    def test_scores_rise_and_the_last_flagged_pvalue_is_named(self):
        X = RNG.normal(size=(100, 2))
        worst = np.argsort(-np.linalg.norm(X - np.median(X, axis=0), axis=1))[:3]
        _, right = drawn(X, worst).axes
        assert right.get_title(loc="left").endswith("flagged up to p = 0.03")
        scores = right.lines[0].get_ydata()
        assert (np.diff(scores) >= 0).all()
        assert [text.get_text() for text in right.get_legend().get_texts()] == ["not flagged (97)", "flagged (3)"]
