"""Length scales of columns by the leave-one-out likelihood."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from isopleth import KDE, SOSREP, InputError
from isopleth.density.column_scales import LeaveOneOut, leave_one_out_scales
from isopleth.density.hot_deck import filled_rows
from isopleth.kernels import ProductLaplacian
from isopleth.kernels.product import GAUSSIAN_FACTOR, LAPLACIAN_FACTOR, ColumnKernel

FACTORS = [GAUSSIAN_FACTOR, LAPLACIAN_FACTOR]


def problem(factor, n=25, gaps=0.2, seed=0):
    rng = np.random.default_rng(seed)
    Z = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, n), rng.integers(0, 4, n)]).astype(float)
    Z[rng.uniform(size=Z.shape) < gaps] = np.nan
    Z = Z[~np.isnan(Z).all(axis=1)]
    kernel = ColumnKernel(4, factor, (0.2, 0.3), (4, 5))
    weights = rng.uniform(0.5, 2.0, size=len(Z))
    return LeaveOneOut(kernel, Z, filled_rows(kernel, Z, Z, weights), weights)


def slow(problem, scales, rho, power):
    """The leave-one-out likelihood, row by row and column by column."""
    share = problem.weights / problem.weights.sum()
    total = 0.0
    for i, row in enumerate(problem.Z):
        p = 0.0
        for j, center in enumerate(problem.centers):
            if j == i:
                continue
            term = share[j]
            for k, (x, c) in enumerate(zip(row, center, strict=True)):
                if np.isnan(x):
                    continue
                if k < 2:
                    u = abs(x - c) / scales[k]
                    norm = scales[k] * (np.sqrt(2 * np.pi) if power == 2 else 2.0)
                    term *= np.exp(-u * u / 2 if power == 2 else -u) / norm
                else:
                    size = problem.kernel.sizes[k - 2]
                    term *= (1.0 if x == c else rho[k - 2]) / (1 + (size - 1) * rho[k - 2])
            p += term
        total += share[i] * np.log(p)
    return total


@pytest.mark.parametrize("factor", FACTORS)
def test_the_likelihood_and_its_gradient(factor):
    here = problem(factor)
    scales, rho = np.array([0.7, 1.6]), np.array([0.15, 0.4])
    theta = np.concatenate([np.log(scales), np.log(rho / (1 - rho))])
    value, slope = here(theta)
    assert -value == pytest.approx(slow(here, scales, rho, 2 if factor is GAUSSIAN_FACTOR else 1), abs=1e-12)
    step = 1e-6
    differences = [(here(theta + step * e)[0] - here(theta - step * e)[0]) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(slope, differences, atol=1e-8)


@pytest.mark.parametrize("factor", FACTORS)
def test_no_other_scales_near_by_are_better(factor):
    here = problem(factor, n=45, gaps=0.0)
    factors, rho = leave_one_out_scales(here.kernel, here.Z, here.weights)
    theta = np.concatenate([np.log(factors), np.log(rho / (1 - rho))])
    best = here(theta)[0]
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = np.clip(theta + 0.1 * rng.normal(size=4), np.log([0.1, 0.1, 1e-4, 1e-4]), None)
        assert here(other)[0] > best - 1e-6


def test_irrelevant_columns_are_wide_and_sharp_ones_narrow():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=300)
    rows = np.column_stack([x, x + 0.01 * rng.normal(size=300), rng.normal(size=300)])
    scale = KDE(length_scale="leave_one_out", frame="scale").fit(rows).length_scale_ / rows.std(axis=0)
    assert scale[:2].max() < 0.1
    assert scale[2] > 5 * scale[:2].max()


@pytest.mark.parametrize("kernel", ["gaussian", ProductLaplacian()])
def test_squares_have_the_kernel_that_was_chosen(kernel):
    rows = np.random.default_rng(0).normal(size=(100, 2))
    mixture = KDE(kernel, length_scale="leave_one_out", frame="scale").fit(rows)
    square = SOSREP(kernel, length_scale="leave_one_out", frame="scale").fit(rows)
    wider = np.sqrt(2.0) if kernel == "gaussian" else 2.0
    np.testing.assert_allclose(square.length_scale_, wider * mixture.length_scale_, rtol=1e-12)


def test_held_out_rows_are_likelier_than_by_the_rule():
    rng = np.random.default_rng(0)
    word = rng.choice(["a", "b", "c"], 400)
    x = rng.normal(size=400) + 3.0 * (word == "b")
    frame = pd.DataFrame({"word": word, "x": x, "y": x + 0.02 * rng.normal(size=400), "noise": rng.normal(size=400)})
    frame = frame.mask(rng.uniform(size=frame.shape) < 0.1).dropna(how="all")
    train, test = frame[:200], frame[200:]
    for kind in (KDE, SOSREP):
        plain, chosen = (
            kind(length_scale=rule, frame="scale").fit(train).score_samples(test).mean()
            for rule in ("scott", "leave_one_out")
        )
        assert chosen > plain + 0.3


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_orders_of_rows_and_columns_do_not_matter(gaps):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "b": rng.choice(["u", "v"], 60),
            "x": rng.normal(size=60),
            "a": rng.choice(["s", "t"], 60),
            "y": rng.normal(size=60),
        }
    )
    frame = frame.mask(rng.uniform(size=frame.shape) < gaps).dropna(how="all")
    one = KDE(length_scale="leave_one_out", frame="scale").fit(frame)
    other = KDE(length_scale="leave_one_out", frame="scale").fit(frame[["y", "a", "x", "b"]].iloc[::-1])
    back = [3, 2, 1, 0]
    np.testing.assert_allclose(other.length_scale_[back], one.length_scale_, rtol=1e-6)
    np.testing.assert_allclose(other.category_scale_[back], one.category_scale_, rtol=1e-6)


def test_one_mistyped_number_hardly_widens_a_scale():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3)) @ np.tril(np.ones((3, 3)))
    mistyped = rows.copy()
    mistyped[7, :2] *= 1000.0
    scales = [KDE(length_scale="leave_one_out", frame="scale").fit(table).length_scale_ for table in (rows, mistyped)]
    assert (scales[1] < 3.0 * scales[0]).all()  # 100 times as wide if the number is taken as it is
    turned = KDE(length_scale="leave_one_out", frame="scale").fit(-mistyped).length_scale_
    np.testing.assert_allclose(turned, scales[1], rtol=1e-6)


def test_long_tables_and_given_category_scales():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=1200), "word": rng.choice(["a", "b"], 1200)})
    found = KDE(length_scale="leave_one_out", category_scale=0.3, frame="scale").fit(frame)
    assert found.category_scale_[1] == 0.3
    # Of 500 rows, and narrower by the rate at which scales fall.
    few = KDE(length_scale="leave_one_out", category_scale=0.3, frame="scale").fit(frame[:500])
    assert found.length_scale_[0] < few.length_scale_[0] * 1.1


def test_kernels_that_are_no_product_do_not_have_it():
    with pytest.raises(InputError, match="expected a number, one a column, 'auto', 'scott' or 'median'"):
        SOSREP("laplacian", length_scale="leave_one_out", frame="scale").fit(
            np.random.default_rng(0).normal(size=(20, 2))
        )


def test_cells_that_filled_a_gap_do_not_speak_for_their_own_row():
    """Centres whose gaps were filled with the cells of a row are left out for that row, or scales would go to 0."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 3))
    gappy = np.where(rng.uniform(size=rows.shape) < 0.3, np.nan, rows)
    scales = [KDE(length_scale="leave_one_out", frame="scale").fit(table).length_scale_ for table in (rows, gappy)]
    assert (scales[1] > 0.5 * scales[0]).all()


def flags(n=759, words=True):
    """A table with a flag that one row has, in a place that draws of 500 rows leave out, and a column that two rows have."""
    rng = np.random.default_rng(0)
    rare = np.full(n, np.nan)
    rare[[5, 400]] = 1.0, 2.0
    table = pd.DataFrame({"flag": np.zeros(n), "rare": rare, "x": rng.normal(size=n), "y": rng.normal(size=n)})
    return table.assign(w=rng.choice(["a", "b"], n)) if words else table


@pytest.mark.parametrize(
    ("estimator", "place"),
    [(KDE(ProductLaplacian()), 11), (SOSREP(), 300), (KDE(frame="scale"), 11), (KDE(frame="scale"), 512)],
)
def test_a_rare_flag_and_a_column_of_two_cells_keep_the_scale_of_the_rule(estimator, place):
    table = flags()
    table.loc[place, "flag"] = 1.0
    model = clone(estimator).set_params(length_scale="leave_one_out").fit(table)
    scales = model.length_scale_[:4]
    assert np.isfinite(scales).all()
    assert (scales[:2] > 0.0).all()
    assert np.isfinite(model.score_samples(table)).all()
    # As far apart as other rows are likely to be, the flag is a word: 1e-12 changes nothing.
    moved = table.assign(flag=table["flag"] + 1e-12 * np.random.default_rng(1).normal(size=len(table)))
    np.testing.assert_allclose(clone(model).fit(moved).length_scale_, model.length_scale_, rtol=1e-6)


def test_a_rare_flag_of_many_rows_with_kernels():
    """The one row that has it is not among the 4,096 that have kernels."""
    rows = flags(6000, words=False)[["flag", "x"]].to_numpy().copy()
    rows[2999, 0] = 1.0
    model = KDE(length_scale="leave_one_out", frame="scale").fit(rows)
    assert np.isfinite(model.score_samples(rows[2990:3010])).all()
    model = KDE(length_scale="leave_one_out").fit(rows)
    assert np.isfinite(model.score_samples(rows[2990:3010])).all()
