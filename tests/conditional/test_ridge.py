"""Ridge regression: residuals without the row itself are those of fits without it."""

import numpy as np

from isopleth.conditional import ridge
from isopleth.conditional.ridge import PENALTIES, Ridge

RNG = np.random.default_rng(0)
A = RNG.normal(size=(30, 4)) @ np.diag([1.0, 10.0, 0.1, 1.0])
Y = A @ [1.0, 0.2, 3.0, 0.0] + RNG.normal(size=30)


def direct(A, y, w, center, scale, penalty):
    """Return slopes and intercept of a weighted ridge regression with these units of the columns."""
    Z = np.column_stack([(A - center) / scale, np.ones(len(A))])
    G = Z.T @ (w[:, None] * Z)
    G[:4, :4] += penalty * np.eye(4)
    return np.linalg.solve(G, Z.T @ (w * y))


def test_residuals_are_those_of_fits_without_the_row():
    w = RNG.uniform(0.2, 1.0, size=30)
    line, residuals = Ridge.fit(A, Y, w)
    share = w / w.sum()
    losses = []
    for penalty in PENALTIES:
        found = []
        for i in range(30):
            rest = np.where(np.arange(30) == i, np.maximum(share - 1 / 30, 0.0), share)
            beta = direct(A, Y, rest, line.center, line.scale, penalty)
            found.append(Y[i] - np.append((A[i] - line.center) / line.scale, 1.0) @ beta)
        losses.append((share @ np.square(found), penalty, np.array(found)))
    # The mean of the columns is that of all rows in the closed form, so residuals agree up to a term of the order of the penalty.
    best = min(losses, key=lambda each: each[0])
    np.testing.assert_allclose(residuals, best[2], rtol=0.02, atol=0.02)
    np.testing.assert_allclose(line.predict(A), Y - (Y - line.predict(A)))


def test_a_line_is_found_to_the_last_digits():
    y = A @ [1.0, 0.2, 3.0, 0.0]
    line, residuals = Ridge.fit(A, y, np.ones(30))
    assert np.abs(residuals).max() < 1e-4 * y.std()
    np.testing.assert_allclose(line.predict(A), y, atol=1e-4 * y.std())


def test_the_median_is_not_moved_by_wrong_cells():
    rng = np.random.default_rng(2)
    wide = rng.normal(size=(60, 30))
    y = wide[:, 0] + 0.1 * rng.normal(size=60)
    wrong = y.copy()
    wrong[:3] += 100.0
    _, by_mean = Ridge.fit(wide, wrong, np.ones(60))
    _, by_median = Ridge.fit(wide, wrong, np.ones(60), by_median=True)
    assert np.median(np.abs(by_median)) <= np.median(np.abs(by_mean))


def test_wide_tables_have_the_same_line_by_divide_and_conquer(monkeypatch):
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(90, 60)), rng.normal(size=90)
    A[:, 1] = A[:, 0]
    few, left = Ridge.fit(A, y, np.ones(90))
    monkeypatch.setattr(ridge, "_WIDE", 10)
    many, again = Ridge.fit(A, y, np.ones(90))
    np.testing.assert_allclose(many.slopes, few.slopes, atol=1e-10)
    np.testing.assert_allclose(again, left, atol=1e-10)
