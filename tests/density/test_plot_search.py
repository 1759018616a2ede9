"""Pictures of searches show every scale, also those that failed."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import SOSREP, Search
from isopleth.density import Choices
from isopleth.density.search_figure import plot_search

pytest.importorskip("matplotlib")

FACTORS = np.geomspace(0.25, 4.0, 5)


def path(losses, criterion="hyvarinen", errors=0.1, shares=0.0):
    losses = np.asarray(losses, dtype=float)
    errors = np.where(np.isfinite(losses), errors, np.nan)
    shares = np.where(np.isposinf(losses), shares, 0.0)
    return Choices(criterion, FACTORS, FACTORS[:, None], losses, errors, shares, int(np.nanargmin(losses)))


def labelled(ax, words):
    """The line whose entry in the legend begins with these words."""
    return next(line for line in ax.lines if str(line.get_label()).startswith(words))


def entries(ax) -> str:
    return " ".join(text.get_text() for text in ax.get_legend().get_texts())


def test_losses_against_factors_with_their_errors():
    ax = plot_search(path([2.0, 1.0, 0.5, 0.8, 1.2], errors=0.25))
    bars = ax.containers[0]
    np.testing.assert_allclose(bars.lines[0].get_xydata(), np.column_stack([FACTORS, [2.0, 1.0, 0.5, 0.8, 1.2]]))
    np.testing.assert_allclose(bars.lines[2][0].get_segments()[2][:, 1], [0.25, 0.75])
    assert ax.get_xscale() == "log"
    assert "base scale" in ax.get_xlabel()
    assert ax.get_ylabel() == "held-out Hyvärinen loss"


def test_the_chosen_scale_is_marked():
    ax = plot_search(path([2.0, 0.4, 0.5, 0.8, 1.2]))
    np.testing.assert_allclose(labelled(ax, "chosen: 0.5").get_xydata(), [[0.5, 0.4]])
    assert "not computed" not in entries(ax)
    assert "infinite" not in entries(ax)


def test_infinite_losses_are_crosses_with_their_share():
    ax = plot_search(path([np.inf, np.inf, 0.5, np.inf, 1.2], shares=[0.25, 0.125, 0, 0.004, 0]))
    np.testing.assert_allclose(labelled(ax, "infinite").get_xdata(), FACTORS[[0, 1, 3]])
    assert [text.get_text() for text in ax.texts] == ["25.00%", "12.50%", "0.40%"]
    assert "f ≤ 0" in entries(ax)


def test_scales_left_out_are_ticks():
    ax = plot_search(path([np.nan, np.nan, 0.5, 0.8, 1.2], criterion="stable_minimum"))
    np.testing.assert_allclose(labelled(ax, "not computed").get_xdata(), FACTORS[:2])
    assert "stable minimum" in ax.get_title(loc="left")


def test_giant_losses_do_not_flatten_the_minimum():
    ax = plot_search(path([1e6, 1e3, -1.0, -0.5, 0.0], errors=[1e5, 10.0, 0.1, 0.1, 0.1]))
    low, high = ax.get_ylim()
    np.testing.assert_allclose(labelled(ax, "loss beyond").get_xdata(), FACTORS[:2])
    assert -2.0 < low < -1.0
    assert 0.0 < high < 2.0


def test_the_largest_scale_may_be_the_best():
    low, high = plot_search(path([1e6, 1e3, 2.0, 1.0, 0.5], errors=0.0)).get_ylim()
    assert low < 0.5
    assert 1.0 < high < 3.0


@pytest.mark.parametrize("losses", [[1.0] * 5, [np.nan, np.inf, 3.0, np.inf, np.nan]])
def test_flat_and_single_losses_have_a_frame(losses):
    low, high = plot_search(path(losses, errors=0.0)).get_ylim()
    assert low < losses[2] < high
    assert losses[2] == pytest.approx(0.5 * (low + high))


@pytest.mark.parametrize(
    "losses", [[2.0, 1.0, 0.5, 0.8, 1.2], [1e6, 1e3, 2.0, 1.0, 0.5], [np.inf, 0.3, 0.5, 9.0, np.nan]]
)
def test_the_frame_follows_the_unit_and_the_origin_of_the_losses(losses):
    """Both ends lie beyond the best loss by a share of what the losses differ."""
    here = plot_search(path(losses, errors=0.1)).get_ylim()
    there = plot_search(path(40.0 * np.array(losses) - 7.0, errors=4.0)).get_ylim()
    np.testing.assert_allclose(there, 40.0 * np.array(here) - 7.0, atol=1e-9)


def test_of_a_fit_and_on_given_axes():
    rows = np.random.default_rng(0).normal(size=(120, 2))
    search = Search(criterion="likelihood", grid=[0.3, 0.6, 1.2, 2.4, 4.8], cv=0.3)
    density = SOSREP(length_scale=search, frame="scale").fit(rows)
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    assert density.search_path_.plot(ax) is ax
    assert "log density" in ax.get_ylabel()
    assert ax.lines[0].get_ydata()[density.search_path_.best_index] == density.search_path_.losses.min()


def test_candidates_of_a_mixture_have_dots_of_the_size_of_their_weights():
    found = SOSREP().fit(np.random.default_rng(0).normal(size=(120, 2))).search_path_
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.best_index == found.weights.argmax()
    ax = found.plot()
    assert set(found.frames) <= set(entries(ax).split())
    areas = np.concatenate([dots.get_sizes() for dots in ax.collections])
    kernels = found.weights[~np.isnan(found.factors)]
    assert np.ptp((areas - areas.min()) / np.ptp(areas) - kernels / kernels.max()) < 1e-9
    assert sum("normal densities" in str(line.get_label()) for line in ax.lines) == np.isnan(found.factors).sum()
