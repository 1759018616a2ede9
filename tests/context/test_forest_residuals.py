"""Residuals by forests where relations bend: what they see, and what they may not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f_oneway

from isopleth import two_sample_test
from isopleth.context import forest_residuals as bent
from isopleth.context.forest_residuals import bend, forest_residuals
from isopleth.context.residuals import RankRegression


def curved(n, seed=0, shift=0.0):
    x = np.random.default_rng(seed).normal(size=(n, 4))
    x[:, 0] = x[:, 1] ** 2 + 0.3 * x[:, 0] + shift
    return x


def parts(rows):
    found = RankRegression.of(rows)
    return found.scores(rows), found(rows), found.columns


def test_a_parabola_bends_and_a_line_does_not():
    assert bend(*parts(curved(200)))
    straight = np.random.default_rng(1).normal(size=(40, 200, 4))
    straight[:, :, 0] = straight[:, :, 1] + 0.3 * straight[:, :, 0]
    assert sum(bend(*parts(rows)) for rows in straight) <= 3
    assert forest_residuals(*parts(straight[0])) is None


def test_residuals_are_those_of_rows_that_the_trees_have_not_seen():
    rows = curved(400)
    scores, linear, columns = parts(rows)
    found = forest_residuals(scores, linear, columns)
    assert found[:, 0].std() < 0.6 * linear[:, 0].std()
    noise = rows[:, 0] - rows[:, 1] ** 2
    inner = np.abs(rows[:, 1]) < 1.5
    assert np.corrcoef(found[inner, 0], noise[inner])[0, 1] > 0.6


def test_neither_order_of_rows_nor_of_columns_matters():
    scores, linear, columns = parts(curved(120))
    found = forest_residuals(scores, linear, columns)
    rng = np.random.default_rng(0)
    rows, places = rng.permutation(120), rng.permutation(4)
    again = forest_residuals(scores[rows][:, places], linear[rows][:, places], columns[places])
    np.testing.assert_allclose(again, found[rows][:, places], atol=1e-9)


@pytest.mark.parametrize("rows", [30, 3000])
def test_few_rows_and_large_tables_are_left_out(rows):
    assert forest_residuals(*parts(curved(rows))) is None


def test_a_column_that_moved_about_a_curve_is_named():
    found = two_sample_test(curved(150, 1), curved(150, 2, 0.3), n_resamples=199, random_state=0)
    assert found.pvalue <= 0.05
    changes = found.changes()
    assert changes["column"][0] == "column 0"
    assert changes["given_others"][0].startswith("higher by")


def test_bent_residuals_are_those_that_an_analysis_of_variance_tells(monkeypatch):
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(400, 3))
    residuals = rng.normal(size=(400, 3))
    residuals[:, 0] += 0.3 * scores[:, 1] ** 2
    order = np.argsort(np.argsort(scores, axis=0), axis=0) * bent._PARTS // 400
    tests = [
        f_oneway(*(residuals[order[:, k] == part, j] for part in range(bent._PARTS))).pvalue
        for k in range(3)
        for j in range(3)
        if j != k
    ]
    for share, told in ((0.99, False), (1.01, True)):
        monkeypatch.setattr(bent, "_BENT", share * 6 * min(tests))
        assert bent.bend(scores, residuals, np.arange(3)) == told


def test_rounding_of_the_scores_does_not_matter():
    scores, linear, columns = parts(curved(120))
    rounded = scores * (1.0 + 1e-14 * np.random.default_rng(0).normal(size=scores.shape))
    np.testing.assert_allclose(
        forest_residuals(rounded, linear, columns), forest_residuals(scores, linear, columns), atol=1e-9
    )


def test_residuals_that_another_column_explains_in_full_bend():
    scores, linear, columns = parts(curved(160))
    linear[:, 0] = np.argsort(np.argsort(scores[:, 1])) * 8 // 160
    assert bend(scores, linear, columns)
