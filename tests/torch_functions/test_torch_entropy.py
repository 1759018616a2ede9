"""Gradients of entropy and mutual information: literal leave-one-out fits, closed forms, and errors against true scores."""

import pickle

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.special import softmax

from isopleth import KDE, InputError, KernelScore, Search
from isopleth.core.budget import Budget
from isopleth.kernels import IMQ
from isopleth.score import Stein, Tikhonov
from isopleth.score.spaces import CurlFree

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from isopleth.torch import (  # noqa: E402
    EntropyGradient,
    entropy_surrogate,
    landmark_models,
    mutual_information_surrogate,
)
from isopleth.torch import stacked_score as stacking  # noqa: E402

BUDGET = Budget(2**30, 1)
RNG = np.random.default_rng(7)


def samples(n, d, seed=0, dtype=torch.float64):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def rows_of(n, d, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(1.0, 2.0, d)
    return rows - rows.mean(axis=0)


def score_of(rows, **given):
    return stacking.stacked_score(rows, None, BUDGET, **given)[0]


def separated(n, d, seed):
    """Rows of the mixture of d normal densities at vertices of a cube of side 4, and their true scores."""
    rng = np.random.default_rng(seed)
    modes = 4.0 * np.random.default_rng(100).integers(0, 2, size=(d, d))
    x = modes[rng.integers(0, d, size=n)] + rng.normal(size=(n, d))
    shares = softmax(x @ modes.T - 0.5 * (modes**2).sum(axis=1), axis=1)
    return x, shares @ modes - x


def relative_error(score, truth):
    return float(((score - truth) ** 2).sum() / (truth**2).sum())


# Literal forms: one model, fitted to the rows without one, at one point.


def literal_elliptical(rows, i, shrinkage, degrees):
    d = rows.shape[1]
    others = np.delete(rows, i, axis=0)
    covariance = (1.0 - shrinkage) * np.cov(others.T, ddof=0).reshape(d, d)
    covariance += shrinkage * np.mean(np.var(rows, axis=0)) * np.eye(d)

    def score(x):
        solved = np.linalg.solve(covariance, x - others.mean(axis=0))
        if degrees is None:
            return -solved
        return -(degrees + d) * solved / (degrees + (x - others.mean(axis=0)) @ solved)

    return score


def literal_kde(rows, i, halvings):
    distances = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    pairs = np.sort(distances[~np.eye(len(rows), dtype=bool)])
    scale = pairs[(len(pairs) - 1) // 2] / 2.0**halvings
    others = np.delete(rows, i, axis=0)

    def score(x):
        weights = softmax(-((others - x) ** 2).sum(axis=1) / (2.0 * scale))
        return (weights @ others - x) / scale

    return score


def divergence(score, x, step=1e-5):
    steps = step * np.eye(len(x))
    return sum((score(x + e)[j] - score(x - e)[j]) / (2.0 * step) for j, e in enumerate(steps))


def shapes_of(rho):
    """Shrinkages and degrees of freedom of the elliptical models."""
    found = [(factor * rho, None) for factor in stacking._SHRINKAGES] + [(1.0, None)]
    return found + [(found[k][0], 2.0) for k in stacking._WITH_TAILS]


@pytest.mark.parametrize(("n", "dim"), [(12, 3), (7, 1), (5, 8)])
def test_each_model_is_that_of_the_other_rows(n, dim):
    rows, share = rows_of(n, dim), np.full(n, 1.0 / n)
    covariance = rows.T @ rows / n
    rho = float(stacking._shrinkage(rows, share, covariance, np.trace(covariance) / dim, dim))
    varying = np.ones(dim, dtype=bool)
    values, divergences = stacking._elliptical(rows, varying, share)
    kernels = stacking._kernel_estimates(rows, varying, tuple(range(1, 7)), BUDGET)
    fitted = [*zip(values, divergences, strict=True), *zip(*kernels, strict=True)]
    for i in range(n):
        literal = [literal_elliptical(rows, i, *shape) for shape in shapes_of(rho)]
        literal += [literal_kde(rows, i, halvings) for halvings in range(1, 7)]
        for score, (value, of) in zip(literal, fitted, strict=True):
            size = np.abs(score(rows[i])).max()
            exact = 1e-6 if n > dim else 0.02  # with fewer rows than columns a model is nearly singular
            np.testing.assert_allclose(value[i], score(rows[i]), rtol=exact, atol=1e-8 * size)
            want = divergence(score, rows[i])
            assert of[i] == pytest.approx(want, rel=max(1e-4, exact), abs=1e-4 * max(1.0, size))


def test_models_in_the_smooth_frame_are_pulled_back():
    """Values and divergences of the models in x, with the map fixed, by differences."""
    rows = np.exp(0.5 * np.random.default_rng(0).normal(size=(9, 2)) @ [[1.0, 0.5], [0.0, 1.0]])
    rows -= rows.mean(axis=0)
    share, varying, quantiles = np.full(9, 1.0 / 9.0), np.ones(2, dtype=bool), stacking._quantiles(rows)
    shift, scale, tail, skew = stacking._smooth_map(rows, quantiles, varying)

    def forward(x):
        return np.sinh(tail * np.arcsinh((x - shift) / scale) - skew)

    def slope(x, h=1e-6):
        return (forward(x + h) - forward(x - h)) / (2.0 * h)

    t = forward(rows)
    covariance, size = np.cov(t.T, ddof=0), np.mean(np.var(t, axis=0))
    rho = float(stacking._shrinkage(t - t.mean(axis=0), share, covariance, size, 2))
    share_of_size = min(1.0, rho + stacking._WHITENING * 2 / 9)
    root = np.linalg.cholesky(np.linalg.inv((1.0 - share_of_size) * covariance + share_of_size * size * np.eye(2)))
    elliptical, kernels = stacking._in_smooth_frame(rows, varying, share, quantiles, (1, 3), BUDGET)
    fitted = [*zip(*elliptical, strict=True), *zip(*kernels, strict=True)]
    for i in (0, 4):
        inside = [literal_elliptical(t, i, *shape) for shape in shapes_of(rho)]
        white = [literal_kde(t @ root, i, halvings) for halvings in (1, 3)]
        inside += [lambda x, model=model: root @ model(x @ root) for model in white]
        for model, (value, of) in zip(inside, fitted, strict=True):

            def score(x, model=model, h=1e-4):
                return slope(x) * model(forward(x)) + (np.log(slope(x + h)) - np.log(slope(x - h))) / (2.0 * h)

            np.testing.assert_allclose(value[i], score(rows[i]), rtol=1e-4, atol=1e-4)
            assert of[i] == pytest.approx(divergence(score, rows[i], 1e-3), rel=1e-3, abs=1e-3)


def test_smooth_maps_take_quantiles_to_normal_ones():
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=3000), rng.standard_t(3, size=3000), np.exp(0.5 * rng.normal(size=3000))]
    rows = np.column_stack([*columns, np.repeat([0.0, 1.0], 1500), np.r_[np.zeros(2990), np.ones(10)], np.ones(3000)])
    varying = np.array([True] * 5 + [False])
    shift, scale, tail, skew = stacking._smooth_map(rows, stacking._quantiles(rows), varying)
    t = np.sinh(tail * np.arcsinh((rows - shift) / scale) - skew)
    assert np.isfinite(t).all()
    np.testing.assert_allclose(np.quantile(t[:, :3], [0.25, 0.75], axis=0).T, [[-0.674, 0.674]] * 3, atol=0.05)
    np.testing.assert_allclose(np.quantile(t[:, :3], [0.052, 0.948], axis=0).T, [[-1.627, 1.627]] * 3, atol=0.1)


@pytest.mark.parametrize(("n", "dim"), [(60, 2), (50, 4)])
def test_a_fit_at_landmarks_is_that_of_the_other_rows(n, dim):
    rows = rows_of(n, dim)
    points, base = landmark_models.landmarks_of(rows), RNG.normal(size=(n, dim))
    # Features by the spaces of the score estimators, at unit length scale.
    space = CurlFree(IMQ(dim=dim))
    units = [np.eye(points.size)[j].reshape(points.shape) for j in range(points.size)]
    psi = np.stack([space.operator(rows / 1.3, points / 1.3).matvec(unit) for unit in units], axis=2)
    delta = np.stack([space.divergence(rows / 1.3, points / 1.3, unit) / 1.3 for unit in units], axis=1)
    penalty = np.stack([space.operator(points / 1.3).matvec(unit).ravel() for unit in units], axis=1)
    penalty += 1e-6 * np.eye(points.size)
    for room in (BUDGET, Budget(8 * 8 * points.size * dim * 7)):  # at once, and by seven rows
        fits = landmark_models.landmark_scores(
            rows, (base, np.arange(n)), np.asarray(1.3), (0.1, 0.01), np.asarray(dim), room
        )
        for alpha, (value, divergence) in zip((0.1, 0.01), fits, strict=True):
            for i in (0, 3, n - 1):
                others = np.arange(n) != i
                gram = np.einsum("iaf,iag->fg", psi[others], psi[others]) + n * alpha * penalty
                right = delta[others].sum(axis=0) + np.einsum("iaf,ia->f", psi[others], base[others])
                coefficients = -np.linalg.solve(gram, right)
                np.testing.assert_allclose(value[i], base[i] + psi[i] @ coefficients, rtol=1e-6, atol=1e-8)
                assert divergence[i] == pytest.approx(i + delta[i] @ coefficients, rel=1e-6, abs=1e-8)


def test_there_are_landmarks_for_few_columns_and_many_rows():
    assert landmark_models.landmarks_of(rows_of(100, 4)).shape == (24, 4)
    assert landmark_models.landmarks_of(rows_of(100, 5)) is None
    assert landmark_models.landmarks_of(rows_of(47, 2)) is None
    assert landmark_models.landmarks_of(rows_of(200, 1)).shape == (96, 1)


def test_the_shrinkage_is_that_of_ledoit_and_wolf():
    from sklearn.covariance import ledoit_wolf_shrinkage

    rows = rows_of(40, 6)
    covariance = rows.T @ rows / 40
    got = stacking._shrinkage(rows, np.full(40, 1 / 40), covariance, np.trace(covariance) / 6, 6)
    assert float(got) == pytest.approx(ledoit_wolf_shrinkage(rows), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_weights_minimise_the_loss_over_nonnegative_ones(seed):
    rng = np.random.default_rng(seed)
    root, slope = rng.normal(size=(12, 10)), rng.normal(size=10)
    matrix = root.T @ root + 1e-6 * np.eye(10)
    lower = np.linalg.cholesky(matrix)
    want = nnls(lower.T, np.linalg.solve(lower, -slope))[0]
    got = stacking._nonnegative_minimum(matrix, slope)
    assert np.all(got >= 0.0)
    np.testing.assert_allclose(got, want, atol=1e-6 * max(1.0, want.max()))


def test_models_that_do_not_help_have_no_weight():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    _, stack, models = stacking.stacked_score(x, None, BUDGET)
    shares = stack.weights * models.sizes(np.full(500, 1 / 500))
    first = stacking._ELLIPTICAL + len(stack.kernels)
    elliptical = np.r_[: stacking._ELLIPTICAL, first : first + stacking._ELLIPTICAL]
    assert shares[elliptical].sum() > 0.9 * shares.sum()
    kept = stack.without_negligible(models)
    assert len(kept.kernels) + len(kept.smooth or ()) < 6
    again = stacking.stacked_score(x, kept, BUDGET)[0]
    np.testing.assert_allclose(again, score_of(x), rtol=1e-3, atol=1e-3)


# Properties.


def test_shifts_scales_and_orders_of_rows():
    x = rows_of(80, 4)
    want = score_of(x)
    order = np.random.default_rng(2).permutation(80)
    for there, back in (
        (x + 1e3, lambda s: s),
        (1e-7 * x, lambda s: 1e-7 * s),
        (1e150 * x, lambda s: 1e150 * s),
        (x[order], lambda s: s[np.argsort(order)]),
    ):
        np.testing.assert_allclose(back(score_of(there)), want, rtol=1e-5, atol=1e-6)


def test_columns_of_very_different_scales_and_constant_ones():
    x = rows_of(300, 3) / np.linspace(1.0, 2.0, 3)
    scales = np.array([1e-3, 1.0, 1e3])
    for factors in (scales, 1e5 * scales):
        assert relative_error(score_of(x * factors) * factors, -x) < 0.05
    np.testing.assert_allclose(score_of(x * [3.0, 1.0, 1.0])[:, 1:], score_of(x)[:, 1:], atol=0.2)
    widened = score_of(np.column_stack([x, np.full(300, 0.1)]))
    np.testing.assert_allclose(widened[:, :3], score_of(x), rtol=1e-8, atol=1e-10)
    assert np.all(widened[:, 3] == 0.0)


def test_directions_without_extent_and_columns_of_nearly_one_value_leave_the_others_alone():
    x = rows_of(300, 3)
    copied = score_of(np.column_stack([x, x[:, 0]]))
    whole = score_of(x @ np.diag([2.0**0.5, 1.0, 1.0]))  # the same rows in orthogonal coordinates of their plane
    np.testing.assert_allclose(copied[:, 0], copied[:, 3], rtol=1e-6, atol=1e-8)
    assert relative_error(copied[:, :3] * [2.0**0.5, 1.0, 1.0], whole) < 0.01
    active = np.column_stack([x, np.arange(300) == 7])  # a unit that one sample activates
    np.testing.assert_allclose(score_of(active), np.column_stack([score_of(x), np.zeros(300)]), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("far", [10.0, 30.0, 1e3, 1e4, 1e6, 1e60])
@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning")
def test_one_far_row_gives_no_warning_and_changes_the_others_little(far):
    x = rows_of(200, 4) @ np.diag([1.0, 1.0, 1.0, 0.2]) @ np.linalg.qr(rows_of(4, 4))[0]  # far in a narrow direction
    want, x[0] = score_of(x[1:]), far * np.array([1.0, -1.0, 1.0, 1.0])
    got = score_of(x)
    assert np.isfinite(got).all()
    assert relative_error(got[1:], want) < 0.03


@pytest.mark.parametrize("condition", [10.0, 1e4])
@pytest.mark.parametrize(("d", "draws"), [(4, 8), (16, 3)])
def test_correlated_normal_rows_have_nearly_the_error_of_a_fitted_normal(d, draws, condition):
    errors = []
    for seed in range(draws):
        root = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0] * np.geomspace(1.0, condition**-0.5, d)
        x = np.random.default_rng(seed).normal(size=(256, d)) @ root.T
        truth = -x @ np.linalg.inv(root @ root.T)
        fitted = -(x - x.mean(axis=0)) @ np.linalg.inv(np.cov(x.T, bias=True))
        errors.append([relative_error(score_of(x), truth), relative_error(fitted, truth)])
    found, fitted = np.mean(errors, axis=0)
    assert found < 1.2 * fitted


def test_little_memory_and_several_threads_change_nothing():
    x = rows_of(90, 3)
    want = score_of(x)
    np.testing.assert_allclose(
        stacking.stacked_score(x, None, Budget(8 * 90 * 4 * 7, 3))[0], want, rtol=1e-9, atol=1e-11
    )


def test_equal_rows_are_no_evidence_for_narrow_kernels():
    x = rows_of(60, 3)
    got = score_of(np.concatenate([x, x]))
    assert relative_error(got[:60], score_of(x)) < 0.2
    assert landmark_models.many_copies(np.concatenate([x, x]))
    assert landmark_models.many_copies(RNG.integers(0, 3, size=(100, 2)).astype(float))
    assert not landmark_models.many_copies(x)


class Waits(TorchDispatchMode):
    """Refuse what waits for a device: values that Python reads, and shapes that depend on values."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function)
        if any(word in name for word in ("_local_scalar_dense", "nonzero", "is_nonzero", "masked_select", "unique")):
            raise AssertionError(f"{name} waits for the device")
        return function(*args, **(kwargs or {}))


def test_torch_has_the_same_scores_and_never_waits_for_a_device():
    x = rows_of(70, 5)
    with Waits():
        got, stack, _ = stacking.stacked_score(torch.as_tensor(x), None, BUDGET)
        kept, _, _ = stacking.stacked_score(torch.as_tensor(x), stack, BUDGET)
    np.testing.assert_allclose(got.numpy(), score_of(x), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(kept.numpy(), got.numpy(), rtol=1e-12)
    with pytest.raises(AssertionError, match="waits"), Waits():
        float(torch.as_tensor(x).sum())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("estimator", [None, Stein(alpha=0.01)], ids=["default", "stein"])
def test_on_a_gpu_the_same_gradients_come_back_to_the_gpu(estimator):
    here = samples(300, 6).requires_grad_()
    there = here.detach().cuda().requires_grad_()
    for x in (here, there):
        entropy_surrogate(x, estimator).backward()
    assert there.grad.device == there.device
    torch.testing.assert_close(there.grad.cpu(), here.grad, rtol=1e-7, atol=1e-9)
    if estimator is None:
        torch.cuda.set_sync_debug_mode("error")
        try:
            entropy_surrogate(there).backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")


# Accuracy.


def test_the_error_of_the_default_on_normal_rows_and_on_separated_modes():
    """The limits are twice the .005 of KernelScore on normal rows, and 1.2 times its .45 on separated modes."""
    normal = [rows_of(256, 64, seed) / np.linspace(1.0, 2.0, 64) for seed in range(3)]
    assert np.mean([relative_error(score_of(x), -x) for x in normal]) < 0.01
    assert np.mean([relative_error(score_of(x), s) for x, s in (separated(256, 64, seed) for seed in range(3))]) < 0.54


def test_curved_densities_in_few_columns():
    """Without landmarks the error is 0.7."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 2))
    x[:, 1] = 0.5 * x[:, 1] + x[:, 0] ** 2 - 1.0
    pull = -4.0 * (x[:, 1] - x[:, 0] ** 2 + 1.0)
    assert relative_error(score_of(x), np.column_stack([-x[:, 0] - 2.0 * x[:, 0] * pull, pull])) < 0.55


def test_heavy_tails():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 8)) / np.sqrt(rng.chisquare(5, size=(256, 1)) / 5)
    truth = -13.0 * x / (5.0 + (x**2).sum(axis=1, keepdims=True))
    assert relative_error(score_of(x), truth) < 0.05


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "estimator",
    [
        None,
        KernelScore(regularizer=Tikhonov(alpha=0.01), length_scale=2.0, base=None),
        KDE(length_scale=0.5, frame="scale"),
        Stein(alpha=0.01),
    ],
    ids=["default", "score", "kde", "stein"],
)
def test_the_gradient_of_the_entropy_of_a_normal_sample_in_its_scale(estimator, dtype):
    z = samples(400 if estimator is None else 200, 2, dtype=dtype)
    scale = torch.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    out = entropy_surrogate(scale * z, estimator)
    out.backward()
    assert out.dtype == dtype
    np.testing.assert_allclose(scale.grad.numpy(), [1.0, 0.5], rtol=0.12 if estimator is None else 0.4)  # of log scale


@pytest.mark.parametrize(
    ("estimator", "n"),
    [
        (None, 1500),
        pytest.param(KernelScore(), 500, marks=pytest.mark.slow),
        pytest.param(KernelScore(), 1500, marks=pytest.mark.slow),
    ],
    ids=["default", "score", "score of many rows"],
)
def test_the_gradient_of_mutual_information_of_normal_samples(estimator, n):
    x, noise = samples(n, 2), samples(n, 2, seed=1)
    s = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    mutual_information_surrogate(x, x + s * noise, estimator).backward()
    want = -2.0 / (s * (s**2 + 1.0))  # of log(1 + 1/s^2), two columns
    assert float(s.grad) == pytest.approx(float(want.detach()), rel=0.1)


def test_the_surrogate_moves_each_sample_by_its_own_score():
    x = samples(50, 2).requires_grad_()
    estimator = Stein(alpha=0.05)
    entropy_surrogate(x, estimator).backward()
    score = Stein(alpha=0.05).fit(x.detach().numpy()).grad_log_density_
    np.testing.assert_allclose(x.grad.numpy(), -score / 50, rtol=1e-10, atol=1e-13)
    assert not hasattr(estimator, "grad_log_density_")


# Types, transforms, state.


def test_forward_mode_derivatives_are_refused():
    z = samples(100, 2)

    def surrogate(scale):
        return entropy_surrogate(scale * z)

    scale = torch.tensor(2.0, dtype=torch.float64)
    with pytest.raises(InputError, match="no forward-mode derivatives"):
        torch.func.jvp(surrogate, (scale,), (torch.ones_like(scale),))


def test_a_second_derivative_is_refused():
    x = samples(30, 2).requires_grad_()
    (slope,) = torch.autograd.grad(entropy_surrogate(x), x, create_graph=True)
    with pytest.raises(InputError, match="estimated score, which has no derivative"):
        slope.square().sum().backward()


def test_a_training_loop_keeps_weights_and_renews_them(monkeypatch):
    chosen = []
    weights = stacking._weights
    monkeypatch.setattr(stacking, "_weights", lambda *given: chosen.append(1) or weights(*given))
    entropy = EntropyGradient(renew_every=3)
    x = samples(60, 3)
    want = torch.func.grad(entropy_surrogate)(x)
    for _ in range(7):
        torch.testing.assert_close(torch.func.grad(entropy)(x), want, rtol=1e-3, atol=1e-5)
    assert entropy.n_calls_ == 7
    assert len(chosen) == 1 + 3
    entropy(samples(60, 4))  # another number of columns
    assert len(chosen) == 5
    moved = pickle.loads(pickle.dumps(entropy))
    assert moved.n_calls_ == 8
    torch.testing.assert_close(moved(samples(60, 4)), entropy(samples(60, 4)))


def test_batches_of_other_sizes_in_a_training_loop():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    x[:, 1] = 0.5 * x[:, 1] + x[:, 0] ** 2
    x = torch.as_tensor(x)
    entropy = EntropyGradient()
    for size in (300, 20, 300, 2, 100):  # there are landmarks for 48 rows or more
        got = torch.func.grad(entropy)(x[:size])
        assert bool(torch.isfinite(got).all())
    assert entropy._kept.landmarks
    small = EntropyGradient()
    for size in (20, 300):
        assert bool(torch.isfinite(torch.func.grad(small)(x[:size])).all())


@pytest.mark.parametrize("estimator", [KernelScore(), KDE(length_scale=Search(), frame="scale")], ids=["score", "kde"])
def test_a_training_loop_keeps_what_a_search_has_found(estimator, monkeypatch):
    x, entropy = samples(60, 2), EntropyGradient(estimator, renew_every=2)
    fits = []
    fit = type(estimator).fit
    monkeypatch.setattr(type(estimator), "fit", lambda self, rows: fits.append(self) or fit(self, rows))
    first, second = torch.func.grad(entropy)(x), torch.func.grad(entropy)(x)
    torch.testing.assert_close(first, second, rtol=1e-6, atol=1e-9)
    searched, kept = fits
    assert isinstance(searched.length_scale, (str, Search))
    assert not isinstance(kept.length_scale, (str, Search))
    entropy(x)
    assert isinstance(fits[2].length_scale, (str, Search))


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_a_number_of_calls_that_is_none_is_refused(value):
    with pytest.raises(InputError, match="renew_every = "):
        EntropyGradient(renew_every=value)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (torch.ones(5, 2), "fewer than two distinct rows"),
        (torch.zeros(1, 2), "fewer than two distinct rows"),
        (torch.tensor([[0.0], [float("nan")], [1.0]]), "entries that are not finite"),
        (torch.zeros(3), r"x has shape \(3,\)"),
        (np.zeros((3, 2)), "x is of type ndarray"),
    ],
    ids=["equal", "one", "nan", "flat", "numpy"],
)
def test_rows_without_a_score_are_refused(rows, words):
    for function in (entropy_surrogate, EntropyGradient()):
        with pytest.raises(InputError, match=words):
            function(rows)


def test_pairs_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="x has 3 rows and z has 4"):
        mutual_information_surrogate(torch.zeros(3, 2), torch.zeros(4, 1))
    with pytest.raises(InputError, match=r"z is of type torch\.float64"):
        mutual_information_surrogate(torch.zeros(3, 2), torch.zeros(3, 1, dtype=torch.float64))
    with pytest.raises(InputError, match="z is of type int"):
        mutual_information_surrogate(torch.zeros(3, 2), 1)
