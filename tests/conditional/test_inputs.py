"""Inputs of trees and lines: ranks, words, and gaps on lines from the known inputs."""

import numpy as np

from isopleth.conditional.inputs import GapLines, Inputs, Sample


def test_gaps_are_at_the_mean_given_the_known_inputs():
    rng = np.random.default_rng(0)
    covariance = np.array([[1.0, 0.8, 0.5], [0.8, 1.0, 0.6], [0.5, 0.6, 1.0]])
    rows = rng.multivariate_normal([1.0, -2.0, 0.0], covariance, size=3000) * [1.0, 10.0, 0.1]
    gaps = rng.random(rows.shape) < 0.25
    A = np.where(gaps, np.nan, rows)
    filled = GapLines.of(A, np.ones(3000)).fill(A)
    unit, mean = np.array([1.0, 10.0, 0.1]), np.array([1.0, -20.0, 0.0])
    S = covariance * np.outer(unit, unit)
    for i in range(50):
        lost, known = np.flatnonzero(gaps[i]), np.flatnonzero(~gaps[i])
        expected = mean[lost] + S[np.ix_(lost, known)] @ np.linalg.solve(
            S[np.ix_(known, known)], A[i, known] - mean[known]
        )
        np.testing.assert_allclose((filled[i, lost] - expected) / unit[lost], 0.0, atol=0.15)
    np.testing.assert_array_equal(filled[~gaps], A[~gaps])


def test_gaps_of_a_single_row_are_at_the_mean_given_its_known_inputs():
    """No other row says what is usual where such cells are missing; the marks of the gaps took them to the mean of all rows."""
    rng = np.random.default_rng(2)
    size = rng.normal(size=500)
    rows = size[:, None] + 0.2 * rng.normal(size=(500, 4))
    rows[7] = [np.nan, np.nan, np.nan, 3.0]
    inputs = Inputs.of(rows, np.ones(500), 4, np.arange(4))
    np.testing.assert_allclose(inputs.of_lines(rows)[7, [0, 2, 4]], 3.0, atol=0.3)


def test_inputs_do_not_depend_on_units_or_order():
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.normal(size=40), rng.integers(0, 3, 40)])
    rows[::5, 0] = np.nan
    order = rng.permutation(40)
    one, two = (
        Sample.of(table, np.arange(40.0)[o], np.ones(40)) for table, o in ((rows, slice(None)), (rows[order], order))
    )
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_array_equal(one.rows[one.place], rows)
    inputs = [Inputs.of(s.rows * u, s.weights, 1, s.order) for s, u in ((one, 1.0), (one, [1e3, 1.0]))]
    np.testing.assert_allclose(inputs[0].of_trees(rows), inputs[1].of_trees(rows * [1e3, 1.0]), atol=1e-4)
    words = inputs[0].of_lines(rows)[:, -3:]
    np.testing.assert_array_equal(words.sum(axis=1), 1.0)


def test_a_table_without_varying_columns_has_one_empty_input():
    rows = np.full((10, 2), 3.0)
    inputs = Inputs.of(rows, np.ones(10), 2, np.arange(2))
    assert inputs.of_trees(rows).shape == inputs.of_lines(rows).shape == (10, 1)
