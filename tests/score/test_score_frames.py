"""Scores in frames: pulled back values, divergences and log densities, equivariance, and the choice of a frame."""

from functools import partial

import numpy as np
import pytest

from isopleth import DataWarning, InputError, KernelScore, NystromKEF
from isopleth.core.budget import Budget
from isopleth.frames import Compose, Marginal, Scale, SinhArcsinh, Whiten
from isopleth.kernels import get_kernel
from isopleth.sampling import sample
from isopleth.score import KEF, SSGE, Landweber, NuMethod, Stein
from isopleth.score.field import GaussianBase, KernelTerm, ScoreField, ZetaTerm
from isopleth.score.pullback import hyvarinen_terms
from isopleth.score.selection import Candidates, Rows, choose_frame
from isopleth.score.spaces import SPACES
from isopleth.solvers.regularizers import Tikhonov

ROWS = np.random.default_rng(0).normal(size=(70, 3)) @ [[1.0, 0.9, 0.0], [0.0, 0.3, 0.5], [0.0, 0.0, 2.0]] + [
    3.0,
    -1.0,
    0.0,
]
SKEWED = np.exp(0.4 * ROWS)
NEW = SKEWED[:6] * 1.1 + 0.05
FRAMES = {
    "whiten": Whiten(),
    "smooth": "smooth",
    "smooth twice": Compose(SinhArcsinh(), Whiten(), SinhArcsinh()),
    "columns": SinhArcsinh(),
}


def differences(function, X, step=1e-5):
    """Return derivatives of a function of rows by central differences, with the column as the last axis."""
    steps = step * X.std() * np.eye(X.shape[1])
    return np.stack([(function(X + e) - function(X - e)) / (2.0 * e.sum()) for e in steps], axis=-1)


def models(frame):
    return {
        "truncated": KEF(frame=frame, length_scale=1.5, base="gaussian"),
        "full": KEF(frame=frame, length_scale=1.5, alpha=0.1, truncated=False),
        "diagonal": Stein(frame=frame, length_scale=1.5),
        "matern": KEF("matern72", frame=frame, length_scale=2.0, alpha=0.1, truncated=False),
        "landmarks": NystromKEF(frame=frame, landmarks=20, random_state=0, base="gaussian", regularizer=Tikhonov(0.1)),
    }


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("name", list(models("scale")))
def test_derivatives_agree_with_differences(frame, name):
    model = models(FRAMES[frame])[name].fit(SKEWED)
    jacobian = differences(model.grad_log_density, NEW)
    trace = np.trace(jacobian, axis1=1, axis2=2)
    size = np.abs(jacobian).max()
    np.testing.assert_allclose(model.divergence(NEW), trace, rtol=0, atol=1e-6 * size)
    unit, score = model.unit_, model.grad_log_density(NEW)
    np.testing.assert_allclose(unit, SKEWED.std(axis=0))
    terms = np.einsum("ijj,j->i", jacobian, unit**2) + 0.5 * np.sum((unit * score) ** 2, axis=1)
    assert model.hyvarinen_loss(NEW) == pytest.approx(terms.mean(), rel=1e-5, abs=1e-5 * size)
    if name != "diagonal":
        np.testing.assert_allclose(
            differences(model.log_density, NEW), score, rtol=1e-5, atol=1e-7 * np.abs(score).max()
        )
    near = model.grad_log_density(SKEWED)
    np.testing.assert_allclose(model.grad_log_density_, near, rtol=1e-5, atol=1e-5 * np.abs(near).max())
    np.testing.assert_allclose(model.centers_.min(axis=0) > 0.0, True)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kernel", ["imq", "gaussian", "matern72"])
def test_traces_along_directions_are_those_of_the_jacobian(space, kernel):
    rng = np.random.default_rng(1)
    inside, z, c = SPACES[space](get_kernel(kernel).bind(3)), rng.normal(size=(9, 3)), rng.normal(size=(9, 3))
    field = ScoreField(
        (KernelTerm(inside, z, c), ZetaTerm(inside, z, np.full(9, 1 / 9), 0.7), GaussianBase.fit(z, np.ones(9)))
    )
    x, v = rng.normal(size=(4, 3)), rng.normal(size=(2, 4, 3))
    want = np.einsum("knj,nji,kni->n", v, differences(field.value, x), v)
    for room in (2**30, 1):
        np.testing.assert_allclose(field.trace(x, v, Budget(room)), want, rtol=1e-6, atol=1e-6)
    eye = np.eye(3)[:, None, :]
    np.testing.assert_allclose(field.trace(z, eye, Budget()), field.divergence(z), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        Stein,
        KEF,
        partial(SSGE, energy=0.9),
        partial(NuMethod, steps=9),
        partial(Landweber, steps=9),
        partial(KernelScore, base="gaussian", regularizer=Tikhonov(0.1, truncated=False)),
        partial(NystromKEF, base="gaussian", landmarks=SKEWED[:20], regularizer=Tikhonov(0.1)),
    ],
    ids=["stein", "kef", "ssge", "nu", "landweber", "fixed", "landmarks"],
)
def test_whitened_scores_are_equivariant_under_affine_maps(make):
    rng = np.random.default_rng(2)
    A, b = rng.normal(size=(3, 3)) * [[1.0], [30.0], [1e-3]], np.array([5.0, 0.0, -1e3])
    weights = rng.integers(1, 3, size=70).astype(float)
    here = make(frame=Whiten(ridge=0.0)).fit(SKEWED, sample_weight=weights)
    there = make(frame=Whiten(ridge=0.0))
    if not isinstance(there, KernelScore):
        there.set_params(landmarks=SKEWED[:20] @ A + b)
    there.fit(SKEWED @ A + b, sample_weight=weights)
    want = here.grad_log_density(NEW)
    got = there.grad_log_density(NEW @ A + b) @ A.T
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


def test_streamed_scores_follow_shifts_and_units_of_the_columns():
    """The folds too, by which the ridge is chosen."""
    ways = ((np.ones(3), 0.0), (np.array([1e3, 1.0, 1e-2]), 0.5), (np.array([3.0, 0.7, 90.0]), 0.0))
    for seed in range(2):
        X, found = np.exp(0.4 * np.random.default_rng(seed).normal(size=(90, 3))), []
        for unit, shift in ways:
            model = NystromKEF(landmarks=10, random_state=0)
            for part in np.array_split(X * unit + shift, 3):
                model.partial_fit(part)
            found.append((model._sums_so_far().folds.mark, model.grad_log_density(X * unit + shift) * unit))
        for mark, score in found[1:]:
            assert mark == found[0][0]
            np.testing.assert_allclose(score, found[0][1], rtol=0, atol=1e-6 * np.abs(score).max())


def ill_conditioned(n, d, condition, rng):
    root = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0] * np.geomspace(1.0, condition**-0.5, d)
    return rng.normal(size=(n, d)) @ root.T, np.linalg.inv(root @ root.T)


@pytest.mark.parametrize(
    ("make", "samples", "most"),
    [
        (KernelScore, 1, 1.5),
        pytest.param(KernelScore, 4, 1.2, marks=pytest.mark.slow),
        pytest.param(partial(NystromKEF, random_state=0), 4, 1.2, marks=pytest.mark.slow),
    ],
)
def test_scores_of_ill_conditioned_normal_rows_are_nearly_those_of_a_fitted_normal(make, samples, most):
    """The error in 4 columns is at most 1.2 of that of the fitted normal, in the mean of four samples."""
    errors = []
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        X, precision = ill_conditioned(256, 4, 1e3, rng)
        new = rng.normal(size=(500, 4)) @ np.linalg.cholesky(np.linalg.inv(precision)).T
        truth = -new @ precision
        fitted = -(new - X.mean(axis=0)) @ np.linalg.inv(np.cov(X.T, bias=True))
        found = make().fit(X).grad_log_density(new)
        errors.append([np.sum((score - truth) ** 2) / np.sum(truth**2) for score in (found, fitted)])
    found, fitted = np.mean(errors, axis=0)
    assert found < most * fitted


def test_the_choice_is_the_first_frame_near_the_smallest_loss_of_refits_in_one_set_of_coordinates():
    X, unit = SKEWED[:40], SKEWED[:40].std(axis=0)
    space = SPACES["curl_free"](get_kernel("imq").bind(3))
    frames = [Rows(X, np.ones(40), frame, np.full(3, 1.5), 1.0, 2) for frame in (Scale(), Whiten(), FRAMES["columns"])]
    way = Tikhonov(0.1, truncated=False)
    place, rounds, losses = choose_frame(space, frames, Candidates((None,), (1.0,), way), unit)
    found = []
    for rows, loss in zip(frames, losses, strict=True):
        terms = []
        for fold in rows.held_out:
            model = KernelScore(frame=rows.frame, length_scale=1.5, base=None, regularizer=way).fit(X[~fold])
            terms.append(hyvarinen_terms(model._field(), model._frame, X[fold], unit, Budget(1e6)))
        found.append(np.concatenate(terms))
        assert loss == pytest.approx(found[-1].mean(), rel=1e-6)
    apart = np.array(found) - found[np.argmin(losses)]
    assert place == np.flatnonzero(apart.mean(axis=1) <= apart.std(axis=1, ddof=1) / np.sqrt(40))[0]
    assert [one.rows.frame for one in rounds] == [one.frame for one in frames]


def test_columns_may_be_constant_without_a_fold():
    X = SKEWED.copy()
    X[:, 0] = 3.0
    X[10, 0] = 4.0
    assert np.isfinite(KernelScore().fit(X).grad_log_density(SKEWED)).all()


def test_the_choice_is_shown_and_refitted():
    model = KernelScore().fit(SKEWED)
    path = model.search_path_
    assert model.frame_ is path.frame in path.frames
    assert repr(path.frames[0]) in repr(path)
    again = KernelScore(**model.chosen()).fit(SKEWED)
    np.testing.assert_allclose(again.grad_log_density_, model.grad_log_density_, rtol=1e-9)
    assert not hasattr(again, "search_path_")
    ridge = KernelScore(frame="whiten", length_scale=2.0).fit(SKEWED).search_path_
    assert np.isnan(ridge.frame_losses).all()


@pytest.mark.slow
def test_chains_follow_a_score_in_a_smooth_frame():
    X = np.exp(0.5 * np.random.default_rng(4).normal(size=(300, 2)))
    model = KernelScore(frame="smooth", base="gaussian", length_scale=3.0, regularizer=Tikhonov(1.0)).fit(X)
    for method in ("mala", "annealed"):
        rows = sample(model, 3000, method=method, random_state=0).rows
        np.testing.assert_allclose(np.median(rows, axis=0), np.median(X, axis=0), rtol=0.15)
        np.testing.assert_allclose(np.quantile(rows, 0.9, axis=0), np.quantile(X, 0.9, axis=0), rtol=0.2)


def test_one_frame_warns_of_units_and_others_need_not():
    X = SKEWED * [1.0, 100.0, 0.01]
    with pytest.warns(DataWarning, match="standardise"):
        KEF().fit(X)
    KEF(frame="whiten").fit(X)


@pytest.mark.parametrize("frame", ["gp1", Marginal(), "narrow", 3])
def test_frames_without_second_derivatives_are_refused(frame):
    with pytest.raises((InputError, ValueError), match="frame"):
        KEF(frame=frame).fit(SKEWED)


@pytest.mark.parametrize("make", [Stein, KernelScore, NystromKEF])
def test_a_frame_given_by_hand_warns_of_a_column_that_is_nearly_constant(make):
    X = np.random.default_rng(0).normal(size=(60, 2))
    make(frame="smooth").fit(X)
    X[:58, 1] = 3.0
    with pytest.warns(DataWarning, match=r"column 1: one value in 80% of the rows or more"):
        make(frame="smooth").fit(X)
