"""KernelScore and its named relatives: what the mathematics says of every fit."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from oracle import Dense
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from isopleth import DataWarning, InputError, KernelScore, NystromKEF
from isopleth.kernels import KERNELS, SDO, Kernel, Matern
from isopleth.score import (
    KEF,
    SSGE,
    Landweber,
    LandweberIteration,
    NuIteration,
    NuMethod,
    SpectralCutoff,
    Stein,
    Tikhonov,
    system,
)

# The frame of the papers, in which length scales have the units of the columns.
scale_score = partial(KernelScore, frame="scale")

REGULARIZERS = [
    Tikhonov(0.01),
    Tikhonov(0.01, truncated=False),
    LandweberIteration(steps=20),
    NuIteration(steps=10),
    SpectralCutoff(count=0.4),
]
NAMED = [Stein(), Stein(out_of_sample="augmented"), SSGE(), SSGE(space="curl_free"), KEF(), KEF(truncated=False)]
NAMED += [NuMethod(), Landweber(), KEF(base="gaussian"), scale_score()]
SMOOTH = {"curl_free": ["gaussian", "imq", "matern52", "matern72"]}
SMOOTH["diagonal"] = [*SMOOTH["curl_free"], "matern32"]


def rows(n=40, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) + 2.0 * rng.integers(0, 2, size=(n, 1))


def gradient(function, x, step=2e-2):
    """Differences of order 8."""
    weights = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280]) / step
    out = np.zeros(np.broadcast_shapes(x.shape))
    for j, e in enumerate(np.eye(x.shape[1])):
        for k, weight in enumerate(weights, start=1):
            out[:, j] += weight * (function(x + k * step * e) - function(x - k * step * e))
    return out


def jacobian(model, x):
    return np.stack(
        [gradient(lambda q, j=j: model.grad_log_density(q)[:, j], x, 1e-3) for j in range(x.shape[1])], axis=1
    )


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
@pytest.mark.parametrize("base", [None, "gaussian"])
def test_the_gradient_of_the_log_density_is_the_score(regularizer, base):
    if isinstance(regularizer, SpectralCutoff):
        regularizer = SpectralCutoff(
            threshold=1e-4
        )  # smaller eigenvalues give coefficients larger than the differences
    for name in SMOOTH["curl_free"]:
        analytic = np.isinf(KERNELS[name].smoothness)
        scale = [3.0, 4.0, 5.0] if analytic else 4.0
        model = scale_score(name, regularizer=regularizer, length_scale=scale, base=base).fit(rows())
        x = rows(6, seed=1) + (0.0 if analytic else 0.35)
        got, want = gradient(model.log_density, x), model.grad_log_density(x)
        # Kernels that are not analytic have jumps in higher derivatives, across which differences are less accurate.
        tol = 1e-10 if analytic else 1e-4
        np.testing.assert_allclose(got, want, rtol=0, atol=tol * np.abs(want).max(), err_msg=name)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
@pytest.mark.parametrize("space", SMOOTH)
def test_the_divergence_by_differences(regularizer, space):
    for name in SMOOTH[space] if regularizer is REGULARIZERS[0] else SMOOTH[space][:1]:
        model = scale_score(name, space, regularizer, length_scale=3.0, base=None).fit(rows())
        x = rows(6, seed=1)
        want = np.trace(jacobian(model, x), axis1=1, axis2=2)
        np.testing.assert_allclose(model.divergence(x), want, rtol=0, atol=1e-6 * np.abs(want).max(), err_msg=name)


@pytest.mark.parametrize("name", SMOOTH["curl_free"])
def test_curl_free_scores_have_no_curl(name):
    model = scale_score(name, regularizer=Tikhonov(), length_scale=3.0, base=None).fit(rows())
    x = rows(6, seed=1)
    slope = jacobian(model, x)
    np.testing.assert_allclose(slope, slope.transpose(0, 2, 1), rtol=0, atol=1e-7 * np.abs(slope).max())


@pytest.mark.parametrize("space", SMOOTH)
@pytest.mark.parametrize("base", [None, "gaussian"])
def test_tikhonov_solves_its_equation_everywhere(space, base):
    """(1/M) K_xX s(X) + alpha (s(x) - s_0(x)) = -zeta(x) + alpha-free parts of the base, at any x."""
    X, x, alpha = rows(), rows(9, seed=1), 0.02
    model = scale_score("imq", space, Tikhonov(alpha, truncated=False), length_scale=3.0, base=base).fit(X)
    z, q = model._frame.forward(X), model._frame.forward(x)
    w = np.full(len(X), 1 / len(X))
    rest = model.grad_log_density(x) * 3.0
    if base:
        rest = rest - model.base_.value(q)
    left = model._space.operator(q, z).matvec(w[:, None] * model.grad_log_density(X) * 3.0) + alpha * rest
    np.testing.assert_allclose(left, -model._space.zeta(q, z, w), rtol=0, atol=1e-11)


@pytest.mark.parametrize("solver", ["eigen", "direct", "cg", "lanczos"])
@pytest.mark.parametrize("space", SMOOTH)
def test_both_forms_of_tikhonov_have_the_values_of_stein_at_the_samples(solver, space):
    X = rows()
    forms = [Tikhonov(0.01), Tikhonov(0.01, truncated=False)]
    models = [scale_score("matern52", space, form, "median", None, solver=solver, tol=1e-12).fit(X) for form in forms]
    scale = np.abs(models[0].grad_log_density_).max()
    for model in models:
        np.testing.assert_allclose(model.grad_log_density_, models[0].grad_log_density_, rtol=0, atol=1e-9 * scale)
        tol = 1e-5 if solver in ("cg", "lanczos") else 1e-7  # ten times the root of 1e-12
        np.testing.assert_allclose(model.grad_log_density(X), model.grad_log_density_, rtol=0, atol=tol * scale)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_values_at_the_samples_are_those_of_the_field(regularizer):
    X = rows()
    for space in SMOOTH:
        for base in (None, "gaussian"):
            model = scale_score("matern72", space, regularizer, "median", base).fit(X)
            np.testing.assert_allclose(model.grad_log_density(X), model.grad_log_density_, rtol=0, atol=1e-6)


def test_weights_of_repeated_rows_against_the_literal_form():
    """Repeated rows are not merged in the oracle: its matrix is singular and its ridge takes care."""
    X = np.repeat(rows(12), np.arange(12) % 3 + 1, axis=0)
    for space, name in (("diagonal", "diagonal"), ("curl_free", "curlfree")):
        ell2 = 4.0 if space == "curl_free" else 1.0
        want = Dense(X, "imq", 2.0, name).in_sample(0.01)
        got = scale_score("imq", space, Tikhonov(0.01 * ell2), length_scale=2.0, base=None).fit(X).grad_log_density_
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * np.abs(want).max())


@pytest.mark.parametrize("kernel", ["gaussian", "imq", "matern52"])
def test_the_augmented_rule_is_the_refit_with_each_row(kernel):
    X, x = rows(20), rows(5, seed=1)
    got = Stein(kernel, 0.01, length_scale=2.0, out_of_sample="augmented").fit(X).grad_log_density(x)
    want = Dense(X, kernel, 2.0, "diagonal").augmented(0.01, x)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-11 * np.abs(want).max())
    tight = Stein(kernel, 0.01, length_scale=2.0, out_of_sample="augmented", memory_limit=2e3).fit(X)
    np.testing.assert_allclose(tight.grad_log_density(x), got, rtol=1e-10)
    for method in (tight.divergence, tight.hyvarinen_loss):
        with pytest.raises(InputError, match="use 'principled'"):
            method(x)


def test_weights_are_repeated_rows_where_each_new_row_joins_the_samples_and_smaller_ones_are_shares():
    X, x = rows(40), rows(9, seed=1)
    counts = np.random.default_rng(2).integers(1, 4, 40)
    how = {"alpha": 0.01, "length_scale": 2.0, "out_of_sample": "augmented"}
    repeated = Stein("gaussian", **how).fit(np.repeat(X, counts, axis=0)).grad_log_density(x)
    weighted = Stein("gaussian", **how).fit(X, sample_weight=counts.astype(float)).grad_log_density(x)
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)
    plain, halved = (
        Stein("gaussian", **how).fit(X, sample_weight=np.full(40, w)).grad_log_density(x) for w in (1.0, 0.5)
    )
    np.testing.assert_allclose(halved, plain, atol=1e-12)


def presets():
    """Pairs of a preset and of KernelScore with the arguments that the preset fixes."""
    plain = partial(KernelScore, length_scale="median", base=None, frame="scale")
    return [
        (Stein(alpha=0.1), plain(space="diagonal", regularizer=Tikhonov(0.1))),
        (KEF(alpha=0.1, truncated=False), plain(regularizer=Tikhonov(0.1, truncated=False))),
        (SSGE(), plain(space="diagonal", regularizer=SpectralCutoff(energy=0.95))),
        (SSGE(space="curl_free"), plain(regularizer=SpectralCutoff(energy=0.8))),
        (SSGE(threshold=0.01), plain(space="diagonal", regularizer=SpectralCutoff(threshold=0.01))),
        (SSGE(space="curl_free", count=9), plain(regularizer=SpectralCutoff(count=9))),
        (NuMethod(alpha=0.1, nu=2.0), plain(regularizer=NuIteration(0.1, nu=2.0))),
        (NuMethod(steps=7), plain(regularizer=NuIteration(steps=7))),
        (Landweber(steps=7, step_size=0.5), plain(regularizer=LandweberIteration(steps=7, step_size=0.5))),
        (Landweber(), plain(regularizer=LandweberIteration(0.03))),
        (Landweber(steps=1), plain(regularizer=LandweberIteration(steps=1))),
        (NuMethod(steps=1, space="diagonal"), plain(space="diagonal", regularizer=NuIteration(steps=1))),
        (KEF(base="gaussian"), plain(base="gaussian", regularizer=Tikhonov())),
        (KEF(base="auto"), scale_score(length_scale="median", regularizer=Tikhonov())),
    ]


@pytest.mark.parametrize(("preset", "same"), presets(), ids=repr)
def test_a_preset_is_kernel_score_with_arguments_fixed(preset, same):
    X, x = rows(), rows(9, seed=1)
    copy = clone(preset)
    assert copy.get_params() == preset.get_params()
    assert not {"regularizer", "cv"} & set(preset.get_params())
    preset.fit(X)
    same.fit(X)
    for name in (
        "grad_log_density_",
        "dual_coef_",
        "length_scale_",
        "unit_",
        "zeta_factor_",
        "regularizer_",
        "n_iter_",
    ):
        np.testing.assert_array_equal(getattr(preset, name), getattr(same, name), name)
    assert hasattr(preset, "search_path_") == hasattr(same, "search_path_")
    np.testing.assert_array_equal(preset.grad_log_density(x), same.grad_log_density(x))
    np.testing.assert_array_equal(preset.divergence(x), same.divergence(x))
    assert preset.hyvarinen_loss(x) == same.hyvarinen_loss(x)


@pytest.mark.parametrize("space", SMOOTH)
@pytest.mark.parametrize("base", [None, "gaussian"])
def test_large_systems_are_solved_by_products_to_the_same_answer(monkeypatch, space, base):
    X, x = rows(60), rows(9, seed=1)
    for r in (Tikhonov(0.01), Tikhonov(0.01, truncated=False), NuIteration(steps=10), SpectralCutoff(threshold=0.05)):
        want = scale_score("matern52", space, r, "median", base).fit(X).grad_log_density(x)
        with monkeypatch.context() as patch:
            patch.setattr(system, "DENSE", 0)
            model = scale_score("matern52", space, r, "median", base, tol=1e-11).fit(X)
            got = model.grad_log_density(x)
        assert model.n_iter_ > 0
        tol = 3e-5 if r in (Tikhonov(0.01), SpectralCutoff(threshold=0.05)) else 1e-8  # ten times the root of 1e-11
        np.testing.assert_allclose(got, want, rtol=0, atol=tol * np.abs(want).max(), err_msg=repr(r))


@pytest.mark.parametrize("shape", [(8, 20), (2, 3), (3, 3), pytest.param((30, 20), marks=pytest.mark.slow)])
@pytest.mark.parametrize("regularizer", REGULARIZERS[:4], ids=repr)
def test_rows_that_are_no_more_than_their_columns(shape, regularizer):
    """Solved in their span, and the same as a fit in all columns, which the literal form is."""
    X = rows(*shape)
    model = scale_score("imq", regularizer=regularizer, length_scale=3.0, base=None, solver="eigen").fit(X)
    dense = Dense(X, "imq", 3.0, "curlfree")
    largest = 9.0 * dense.w[-1]
    at = {
        Tikhonov: lambda: dense.in_sample(0.01 / 9),
        LandweberIteration: lambda: dense.field(X, *dense.landweber(0.9 / largest * 9, 20)),
        NuIteration: lambda: dense.field(X, *dense.nu(1.0, 10, largest / 9)),
    }[type(regularizer)]()
    np.testing.assert_allclose(model.grad_log_density_, at, rtol=0, atol=1e-9 * np.abs(at).max())
    assert np.isfinite(model.grad_log_density(rows(5, shape[1], seed=1))).all()
    assert np.isfinite(model.hyvarinen_loss(rows(5, shape[1], seed=1)))


def test_columns_that_depend_on_others_work():
    X = rows(50, 2)
    X = np.c_[X, X[:, :1], X.sum(axis=1)]
    for model in NAMED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            fitted = clone(model).fit(X)
        assert np.isfinite(fitted.grad_log_density_).all()
        assert np.isfinite(fitted.grad_log_density(X + 0.1)).all()


@pytest.mark.parametrize("make", [KernelScore, NystromKEF])
def test_columns_without_a_joint_density_have_scores_of_ordinary_size(make):
    """Across a plane in which all rows lie, or a value that most rows have, the score of whitened columns has no bound."""
    X = rows(60, 2)
    share = np.eye(3)[np.arange(60) % 3]
    few = np.where(np.arange(60) < 3, 2.0 + np.arange(60), 1.5)
    for more, named in ((share, "column 2, column 3, column 4"), (few[:, None], "column 2")):
        with pytest.warns(DataWarning, match=named + r" (is|are) .*the fit takes frame='scale' and no base"):
            model = make().fit(np.c_[X, more])
        assert (model.frame_, model.base_) == ("scale", None)
        assert np.abs(model.grad_log_density_ * np.c_[X, more].std(axis=0)).max() < 100.0


def test_a_normal_density_is_found_and_the_loss_knows_its_fisher_divergence():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 2)), rng.normal(size=(4000, 2))
    losses = {}
    for alpha in (1e-5, 1e-2, 10.0):
        model = KEF(alpha=alpha, length_scale=4.0).fit(X)
        error = np.mean(np.sum((model.grad_log_density(Y) + Y) ** 2, axis=1)) / 2
        losses[alpha] = model.hyvarinen_loss(Y) * (4.0 / model.unit_[0]) ** 2 / 16.0, error
        assert model.score(Y) == -model.hyvarinen_loss(Y)
    for loss, error in losses.values():
        assert loss + 1.0 == pytest.approx(error, abs=0.15)  # up to half of E |grad log q|^2, which is 1
    assert min(losses, key=lambda a: losses[a][0]) == 1e-2


def test_grid_search():
    X = np.random.default_rng(0).normal(size=(90, 2))
    search = GridSearchCV(KEF(), {"alpha": [1e-8, 0.1, 1e3]}, cv=3).fit(X)
    assert search.best_params_ == {"alpha": 0.1}


def test_a_base_gives_tails_and_a_normaliser():
    X = rows(60, 1)
    model = KEF(kernel="gaussian", alpha=0.01, base="gaussian", length_scale=1.0).fit(X)
    total = quad(lambda x: np.exp(model.log_density([[x]])[0]), -15, 15, limit=200, epsabs=1e-10)[0]
    found = model.log_normalizer(200_000, random_state=0)
    assert found.log_value == pytest.approx(np.log(total), abs=0.02)
    assert 1e4 < found.effective_sample_size <= 200_000
    assert found.n_samples == 200_000
    far = model.grad_log_density([[1e3]])[0, 0]
    np.testing.assert_allclose(far, model.base_.value(np.array([[1e3]]) - model._frame.shift)[0, 0], rtol=1e-6)
    assert model.log_normalizer(10, random_state=1) == model.log_normalizer(10, random_state=1)


def test_a_matrix_beyond_the_memory_limit_is_not_made():
    X = rows(60)
    with pytest.raises(InputError, match="the whole matrix and its decomposition need 1 MiB, more than memory_limit"):
        SSGE(space="curl_free", memory_limit=3e5).fit(X)
    model = SSGE(space="curl_free", threshold=0.05, memory_limit=3e5).fit(X)
    want = SSGE(space="curl_free", threshold=0.05).fit(X)
    assert model.n_iter_ > 0 == want.n_iter_
    np.testing.assert_allclose(model.grad_log_density_, want.grad_log_density_, rtol=0, atol=1e-5)


def test_without_a_base_the_score_falls_to_zero_far_away():
    model = KEF().fit(rows())
    far = model.grad_log_density(np.full((1, 3), 1e5))
    assert np.abs(far).max() < 1e-3
    assert np.isfinite(model.grad_log_density(np.full((1, 3), 1e300))).all()


def test_coefficients_are_solved_for_when_they_are_needed():
    X = rows(30)
    model = KEF().fit(X)
    assert model._dual_coef is None
    again = pickle.loads(pickle.dumps(model))
    x = rows(5, seed=1)
    first = model.grad_log_density(x)
    assert model._dual_coef.shape == (30, 3)
    np.testing.assert_array_equal(again.grad_log_density(x), first)
    np.testing.assert_allclose(np.sort(model.centers_, axis=0), np.sort(X, axis=0), rtol=0, atol=1e-14)


def test_a_tolerance_not_reached_is_a_warning(monkeypatch):
    monkeypatch.setattr(KEF, "_max_iter", 3)
    with pytest.warns(ConvergenceWarning, match=r"residual .* above tol = 1e-08 after 3 products"):
        KEF(solver="cg", alpha=1e-6).fit(rows())


X3 = rows(20)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: KEF().fit(X3[:1]), "only 1 sample; expected at least 2"),
        (lambda: KEF().fit(np.repeat(X3[:1], 5, axis=0)), "1 distinct row"),
        (lambda: KEF().fit(np.c_[X3, np.ones(20)]), "constant columns have no score: column 3"),
        (lambda: KEF().fit(X3, sample_weight=np.eye(20)[0]), "1 distinct row"),
        (lambda: scale_score().fit(1e-310 * X3), r"column 0 spans twice \d.\de-310, .*; rescale it"),
        (
            lambda: scale_score().fit(3e307 * X3 / np.abs(X3).max()),
            "column 0 is of a size that leaves no length scale; rescale it",
        ),
        (lambda: KEF(length_scale=0.0).fit(X3), "length_scale"),
        (lambda: KEF(length_scale=[1.0, -1.0, 1.0]).fit(X3), "length_scale"),
        (lambda: KEF(alpha=0.0).fit(X3), "alpha"),
        (lambda: KEF(alpha=-1.0).fit(X3), "alpha"),
        (lambda: Stein(alpha=0.0).fit(X3), "alpha"),
        (lambda: KEF(kernel="matern32").fit(X3), r"use Matern\(nu=2.5\)"),
        (lambda: Stein(kernel="laplacian").fit(X3), r"use Matern\(nu=1.5\)"),
        (lambda: KEF(kernel=SDO()).fit(X3), r"use SDO\(order=4\)"),
        (lambda: KEF(kernel="cubic").fit(X3), "kernel = 'cubic'"),
        (lambda: scale_score(space="flat").fit(X3), "space"),
        (lambda: scale_score(regularizer="ridge").fit(X3), "regularizer"),
        (lambda: KEF(base="cauchy").fit(X3), "base"),
        (lambda: NuMethod(steps=0).fit(X3), "steps"),
        (lambda: SSGE(threshold=0.1, count=3).fit(X3), "exactly one"),
        (lambda: SSGE(solver="cg").fit(X3), "solves Tikhonov systems"),
        (lambda: Stein().fit(X3).log_density(X3), "space='curl_free'"),
        (lambda: KEF().fit(X3).log_normalizer(), "base='gaussian'"),
        (lambda: KEF(base="gaussian").fit(X3).log_normalizer(0), "n_samples = 0"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_user_kernels_in_the_frame():
    X = rows(20)
    one = KEF(kernel=Matern(nu=2.5), alpha=0.1).fit(X)
    two = KEF(kernel="matern52", alpha=0.1).fit(X)
    np.testing.assert_array_equal(one.grad_log_density_, two.grad_log_density_)


@pytest.mark.parametrize("make", [scale_score, KEF, partial(NystromKEF, frame="scale")])
def test_columns_of_different_units_give_a_warning_where_they_share_a_length_scale(make):
    X = rows(60)
    with pytest.warns(DataWarning, match=r"column 1 spreads [\d.]+ times as far as column 2, .*; standardise"):
        make().fit(X * [1.0, 3.0, 0.1])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".* spreads ")
        make().fit(X)
        make(length_scale=[1.0, 3.0, 0.1]).fit(X * [1.0, 3.0, 0.1])
        make(length_scale="scott").fit(X * [1.0, 3.0, 0.1])
        make().fit(X[:9] * [1.0, 100.0, 0.1])  # of few rows it may be chance
    with warnings.catch_warnings(record=True) as caught:
        make().fit(np.c_[X, np.arange(60) < 9])  # what is mostly one value has no spread to compare
    assert not [one for one in caught if "spreads" in str(one.message)]


@pytest.mark.parametrize("solver", ["eigen", "lanczos"])
def test_a_threshold_above_all_eigenvalues_gives_a_warning(solver):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(DataWarning, match=r"threshold = 50 is above the largest eigenvalue, .*: nothing is fitted"):
        model = SSGE(threshold=50.0, solver=solver).fit(X)
    assert not model.grad_log_density_.any()


def test_numbers_beyond_all_scales_make_no_noise():
    """Neither an outlier whose square overflows nor kernels without a neighbour warn or fail."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    far = X.copy()
    far[0, 0] = 1e160
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (scale_score(), KEF(), Stein()):
            assert np.isfinite(model.fit(far).grad_log_density_).all()
            assert not np.isnan(model.hyvarinen_loss(X))
        warnings.filterwarnings("ignore", "kernels did not decrease")  # that they have no effect here is told
        for model in (KEF(length_scale=1e-300), scale_score(length_scale=1e-300)):
            assert not np.isnan(model.fit(X).hyvarinen_loss(X + 0.1))
        whole = KEF().fit(X)
        for size in (1e-300, 1e300):  # of these units the divergence is beyond all numbers
            model = KEF().fit(size * X)
            np.testing.assert_allclose(size * model.grad_log_density_, whole.grad_log_density_, rtol=1e-9, atol=1e-12)
            assert model.divergence(size * X[:1]) == whole.divergence(X[:1]) * (0.0 if size > 1.0 else np.inf)


def test_a_wrong_formula_of_an_own_kernel_is_named_and_not_the_regularizer():
    class Wrong(Kernel):
        smoothness = float("inf")

        def _product(self, s, order, work):
            return np.exp(-s / 2)

    rows = np.random.default_rng(0).normal(size=(80, 2))
    with pytest.raises(InputError, match=r"Wrong\(dim=2\): phi' at s = 0.05 .* by finite differences"):
        KernelScore(kernel=Wrong()).fit(rows)
