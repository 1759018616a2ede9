"""Samplers: stationary distributions, detailed balance, gradients, diagnostics and refusals."""

from __future__ import annotations

import itertools
import os
import signal
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from isopleth import KDE, SOSREP, InputError, KernelScore, MissingExtraError
from isopleth.kernels import ProductLaplacian
from isopleth.sampling import Target, sample
from isopleth.sampling.steps import Hamiltonian, Jump, Langevin, StepSize, UnadjustedLangevin
from isopleth.sampling.target import Whitened, target_of
from isopleth.score import KEF, Stein, Tikhonov

BY_DEFAULT = [("gaussian", "hmc", False), ("laplacian", "mala", True)]
MEANS = np.array([[-1.5, 0.0], [1.5, 0.5]])


def two_modes(means=MEANS, scale=0.6, n=400, seed=0):
    """Return the target of two equal Gaussians, with start rows from it."""
    rng = np.random.default_rng(seed)
    start = means[rng.integers(2, size=n)] + scale * rng.normal(size=(n, means.shape[1]))

    def evaluate(x):
        steps = x[:, None, :] - means
        logs = -0.5 * np.sum(steps**2, axis=2) / scale**2
        share = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        return logsumexp(logs, axis=1), -np.einsum("ik,ikj->ij", share, steps) / scale**2

    def draw(n, rng):
        return means[rng.integers(2, size=n)] + scale * rng.normal(size=(n, means.shape[1]))

    return Target(evaluate, start), draw


def mixture(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 2.5 * rng.integers(2, size=(n, 1))


@pytest.mark.parametrize("step", [Langevin(0.7), Hamiltonian(0.5), Langevin(2.0), "jump"])
def test_moves_between_cells_of_a_grid_are_in_detailed_balance(step):
    """Chains that start at exact draws move as often from cell a to cell b as from b to a, and stay in the distribution."""
    target, draw = two_modes()
    whitened = Whitened.of(target)
    rng = np.random.default_rng(1)
    count, cells = 20_000 if step == "jump" else 100_000, 6
    start = np.linalg.solve(whitened.root, (draw(count, rng) - whitened.centre).T).T
    act = Jump(whitened, rng) if step == "jump" else lambda state, rng: step(whitened, state, rng)
    before = whitened.evaluate(start)
    after = act(before, rng).state
    edges = np.quantile(start[:, 0], np.linspace(0, 1, cells + 1)[1:-1])
    moves = np.zeros((cells, cells))
    np.add.at(moves, (np.searchsorted(edges, before.u[:, 0]), np.searchsorted(edges, after.u[:, 0])), 1)
    assert (moves - np.diag(np.diag(moves))).sum() > 0.02 * count  # it does move
    upper = np.triu_indices(cells, 1)
    z = (moves - moves.T)[upper] / np.sqrt(np.maximum(1.0, (moves + moves.T)[upper]))
    assert np.abs(z).max() < 4.5
    assert np.abs(moves.sum(axis=0) / count - 1 / cells).max() < 5 * np.sqrt(1 / cells / count)


def test_an_unadjusted_step_is_not_in_balance_and_the_test_above_sees_it():
    target, draw = two_modes()
    whitened = Whitened.of(target)
    rng = np.random.default_rng(1)
    start = np.linalg.solve(whitened.root, (draw(200_000, rng) - whitened.centre).T).T
    after = UnadjustedLangevin(0.7)(whitened, whitened.evaluate(start), rng).state
    edges = np.quantile(start[:, 0], np.linspace(0, 1, 7)[1:-1])
    shares = np.bincount(np.searchsorted(edges, after.u[:, 0]), minlength=6) / 200_000
    assert np.abs(shares - 1 / 6).max() > 10 * np.sqrt(1 / 6 / 200_000)


def energy_test(a, b, permutations=199, seed=0):
    """Return the p-value of the energy distance."""
    pooled = np.concatenate([a, b])
    distances = np.sqrt(((pooled[:, None] - pooled) ** 2).sum(axis=2))
    rng = np.random.default_rng(seed)

    def statistic(order):
        x, y = order[: len(a)], order[len(a) :]
        return 2 * distances[np.ix_(x, y)].mean() - distances[np.ix_(x, x)].mean() - distances[np.ix_(y, y)].mean()

    order = np.arange(len(pooled))
    observed = statistic(order)
    return (1 + sum(statistic(rng.permutation(order)) >= observed for _ in range(permutations))) / (1 + permutations)


@pytest.mark.parametrize(
    ("kernel", "method", "jumps"),
    [
        # By default each method, with and without jumps; the other combinations are slow.
        pytest.param(*case, marks=() if case in BY_DEFAULT else pytest.mark.slow)
        for case in itertools.product(["gaussian", "laplacian", "matern52"], ["mala", "hmc"], [True, False])
    ],
)
def test_adjusted_chains_agree_with_exact_draws(kernel, method, jumps):
    model = SOSREP(kernel=kernel, length_scale=1.0, frame="scale").fit(mixture(60, 2))
    exact = model.sample(20_000, random_state=0)
    chains = sample(model, 2000, method=method, jumps=jumps, random_state=1)
    assert chains.exact
    size = chains.effective_sample_size
    error = exact.std(axis=0) * np.sqrt(1 / size + 1 / 20_000)
    assert (np.abs(chains.rows.mean(axis=0) - exact.mean(axis=0)) < 4 * error).all()
    np.testing.assert_allclose(chains.rows.std(axis=0), exact.std(axis=0), rtol=4 / np.sqrt(size.min()))
    independent = chains.rows[:: int(np.ceil(2000 / size.min()))][:400]
    assert energy_test(independent, exact[:400]) > 0.002


def test_the_unadjusted_sampler_is_slightly_too_wide_and_says_so():
    rng = np.random.default_rng(0)
    target = Target(lambda x: (None, -x), rng.normal(size=(400, 2)))
    chains = sample(target, 20_000, random_state=0)
    assert chains.method == "ula"
    assert not chains.exact
    assert "approximate" in repr(chains)
    variance = chains.rows.var(axis=0)
    size = chains.effective_sample_size.min()
    assert (variance > 1.0).all()
    assert (variance < 1.03 + 4 * np.sqrt(2 / size)).all()


@pytest.mark.slow
def test_passes_over_length_scales_bring_chains_from_mode_to_mode():
    rows = np.concatenate([np.random.default_rng(0).normal(size=(150, 1)) * 0.3, 6.0 + np.zeros((50, 1))])
    rows[150:] += 0.3 * np.random.default_rng(1).normal(size=(50, 1))
    model = SOSREP(length_scale=0.3, frame="scale").fit(rows)
    with pytest.warns(ConvergenceWarning, match="annealed"):
        stuck = sample(model, 1600, jumps=False, random_state=0)
    passes = sample(model, 1600, method="annealed", widest=20.0, levels=10, random_state=0)
    assert stuck.r_hat[0] > 1.2 > passes.r_hat[0]
    switches = (np.diff(passes.draws[:, :, 0] > 3, axis=1) != 0).mean()
    assert (np.diff(stuck.draws[:, :, 0] > 3, axis=1) != 0).mean() == 0.0
    assert switches > 0.1
    exact = model.sample(20_000, random_state=0)
    assert (passes.rows > 3).mean() == pytest.approx((exact > 3).mean(), abs=0.12)  # approximate, as the page says
    jumping = sample(model, 1600, random_state=0)
    assert (jumping.rows > 3).mean() == pytest.approx((exact > 3).mean(), abs=0.05)
    assert jumping.jumps.mean() > 0.3


def gradients_agree(target, x, rtol=1e-5):
    gradient = target.evaluate(x)[1]
    h = 1e-5
    for j in range(x.shape[1]):
        step = np.zeros(x.shape[1])
        step[j] = h
        slope = (target.evaluate(x + step)[0] - target.evaluate(x - step)[0]) / (2 * h)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        SOSREP(length_scale=0.7, frame="scale"),
        SOSREP(kernel="matern52", bounds={1: (-9.0, None)}, frame="scale"),
        KDE(kernel="matern72", length_scale=[0.5, 0.9], frame="scale"),
        KernelScore(base="gaussian", regularizer=Tikhonov(alpha=0.01), length_scale=2.0),
        KernelScore(base=None, regularizer=Tikhonov(alpha=0.01), length_scale=[2.0, 3.0]),
        KEF(),
    ],
    ids=["sosrep", "bounds", "kde", "score", "score without base", "kef"],
)
def test_gradients_are_those_of_the_log_density_at_every_length_scale(model):
    rows = mixture(50, 2)
    target = target_of(model.fit(rows))
    x = target.start[:5] + 0.3
    gradients_agree(target, x)
    gradients_agree(target, 5.0 * target.start[:5])  # where a score without base is confined
    wide = target.wider(3.0)
    gradients_agree(wide, x)
    assert np.abs(wide.evaluate(x)[1] - target.evaluate(x)[1]).max() > 0.01


def test_wider_targets_are_fits_with_wider_kernels():
    rows = mixture(50, 2)
    model = SOSREP(length_scale=0.5, frame="scale").fit(rows)
    other = SOSREP(length_scale=1.5, frame="scale").fit(rows)
    target = target_of(model)
    x = target.start[:7]
    np.testing.assert_allclose(
        target.wider(3.0).evaluate(x)[1] / 0.5, other.grad_log_density(target.leave(x)), rtol=1e-6
    )
    settings = {"base": None, "frame": "scale", "regularizer": Tikhonov(alpha=0.01)}
    score = KernelScore(length_scale=1.0, **settings).fit(rows)
    other = KernelScore(length_scale=3.0, **settings).fit(rows)
    target = target_of(score)
    x = target.start[:7]
    np.testing.assert_allclose(target.wider(3.0).evaluate(x)[1], other.grad_log_density(target.leave(x)), rtol=1e-6)


@pytest.mark.parametrize("base", ["gaussian", pytest.param(None, marks=pytest.mark.slow)])
def test_scores_draw_rows_of_their_density(base):
    rows = mixture(200, 2)
    score = KernelScore(base=base, frame="scale", length_scale=2.0, regularizer=Tikhonov(alpha=0.01)).fit(rows)
    drawn = score.sample(2000, random_state=0)
    axis = np.linspace(-12.0, 14.0, 300)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    shares = softmax(target_of(score).evaluate(score._frame.forward(grid))[0])
    mean = shares @ grid
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.25)
    np.testing.assert_allclose(np.cov(drawn.T), ((grid - mean) * shares[:, None]).T @ (grid - mean), rtol=0.25)
    if base is None:
        np.testing.assert_array_equal(drawn, score.sample(2000, random_state=0))


def test_diagonal_scores_draw_without_a_log_density():
    rows = np.random.default_rng(0).normal(size=(150, 2))
    score = KernelScore(space="diagonal", base="gaussian", length_scale=2.0, regularizer=Tikhonov(alpha=1.0)).fit(rows)
    assert score.sample(500, random_state=0).std() == pytest.approx(rows.std(), rel=0.15)
    with pytest.raises(InputError, match="space='curl_free'"):
        score.sample(10, method="mala")


def test_rows_of_bounded_and_constant_columns_come_back_in_units_of_the_data():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.exponential(size=300), np.full(300, 7.0), rng.uniform(size=300)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SOSREP(kernel="matern52", bounds={0: (0, None), 2: (0, 1)}, frame="scale").fit(rows)
    chains = sample(model, 2000, random_state=0)
    assert (chains.rows[:, 1] == 7.0).all()
    assert (chains.rows[:, 0] > 0).all()
    assert ((chains.rows[:, 2] > 0) & (chains.rows[:, 2] < 1)).all()
    np.testing.assert_allclose(chains.rows.mean(axis=0), model.sample(20_000, random_state=0).mean(axis=0), rtol=0.1)


def test_poor_chains_warn_and_good_ones_do_not():
    far = two_modes(means=np.array([[-4.0, 0.0], [4.0, 0.0]]))[0]
    with pytest.warns(ConvergenceWarning, match=r"R-hat of column \d is .* above 1\.05"):
        sample(far, 500, jumps=False, random_state=0)
    with pytest.warns(ConvergenceWarning, match="of the steps are accepted"):
        sample(two_modes()[0], 200, method="mala", step_size=20.0, jumps=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(far, 500, random_state=0)  # jumps go from mode to mode
        sample(two_modes()[0], 500, method="hmc", random_state=0)


def test_the_result_has_the_rows_that_were_asked_for():
    target = two_modes()[0]
    chains = sample(target, 37, chains=5, random_state=0)
    assert chains.rows.shape == (37, 2)
    assert chains.draws.shape == (5, 100, 2)
    assert {tuple(row) for row in chains.rows} <= {tuple(row) for row in chains.draws.reshape(-1, 2)}
    assert "5 chains of 100 draws" in repr(chains)
    np.testing.assert_array_equal(chains.draws, sample(target, 37, chains=5, random_state=0).draws)
    assert not np.array_equal(chains.draws, sample(target, 37, chains=5, random_state=1).draws)


def test_draws_move_with_the_units_of_the_data():
    target, _ = two_modes()
    scale = np.array([1000.0, 0.01])

    def evaluate(x):
        value, gradient = target.evaluate((x - 5.0) / scale)
        return value, gradient / scale

    options = {"warm_up": 20, "thin": 1, "random_state": 0}
    moved, still = sample(Target(evaluate, target.start * scale + 5.0), **options), sample(target, **options)
    np.testing.assert_allclose(moved.draws[:, :20], still.draws[:, :20] * scale + 5.0, rtol=1e-6)


@pytest.mark.slow
def test_weights_are_repeated_rows():
    rows, weights = mixture(30, 2), np.arange(30) % 3 + 1
    a = sample(SOSREP(kernel="laplacian", frame="scale").fit(rows, sample_weight=weights), 200, random_state=0)
    b = sample(SOSREP(kernel="laplacian", frame="scale").fit(np.repeat(rows, weights, axis=0)), 200, random_state=0)
    np.testing.assert_allclose(a.rows, b.rows, rtol=1e-5)


def test_a_data_set_of_arviz_has_the_draws():
    pytest.importorskip("arviz")
    chains = sample(two_modes()[0], 200, random_state=0)
    data = chains.to_arviz()
    np.testing.assert_array_equal(data["posterior"]["x"].values, chains.draws)
    assert data["sample_stats"]["acceptance_rate"].shape == (16, 100)


def test_without_arviz_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    with pytest.raises(MissingExtraError, match=r"pip install arviz \(extra 'arviz'\)"):
        sample(two_modes()[0], 20, random_state=0).to_arviz()


def test_the_step_size_is_that_of_the_wanted_acceptance():
    target = Whitened.of(
        Target(lambda x: (-0.5 * np.sum(x**2, axis=1), -x), np.random.default_rng(0).normal(size=(500, 20)))
    )
    for kind in (Langevin, Hamiltonian):
        rng, size = np.random.default_rng(0), StepSize(0.3, kind.wanted, kind.largest)
        state = target.evaluate(target.starts(64, rng))
        for _ in range(300):
            state, acceptance = kind(size.now)(target, state, rng)
            size.adapt(acceptance)
        after = []
        for _ in range(200):
            state, acceptance = kind(size.final)(target, state, rng)
            after.append(acceptance.mean())
        assert np.mean(after) == pytest.approx(kind.wanted, abs=0.06)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "gibbs"}, "method = 'gibbs'"),
        ({"n_samples": 0}, "n_samples = 0"),
        ({"chains": 2.5}, "chains = 2.5"),
        ({"warm_up": -1}, "warm_up = -1"),
        ({"thin": True}, "thin = True"),
        ({"step_size": -1.0}, "step_size = -1.0"),
        ({"widest": 1.0}, "widest = 1.0"),
        ({"levels": 1}, "levels = 1"),
        ({"method": "annealed"}, "wider length scales"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        sample(two_modes()[0], **options)


def test_models_without_a_target_are_refused():
    with pytest.raises(InputError, match="int has nothing to draw from"):
        sample(3)
    with pytest.raises(InputError, match="draws exactly"):
        sample(SOSREP(kernel=ProductLaplacian(), frame="scale").fit(mixture(20, 2)))
    with pytest.raises(InputError, match="augmented"):
        sample(Stein(out_of_sample="augmented").fit(mixture(20, 2)))
    with pytest.raises(InputError, match="start has shape"):
        sample(Target(lambda x: (None, -x), np.zeros(3)))
    with pytest.raises(InputError, match="evaluate returned shapes"):
        sample(Target(lambda x: (x, -x), np.eye(3)))
    with pytest.raises(InputError, match="no chain can start"):
        sample(Target(lambda x: (np.full(len(x), -np.inf), -x), np.random.default_rng(0).normal(size=(9, 2))))


def test_chains_end_soon_after_an_interrupt():
    target, calls = target_of(SOSREP(kernel="matern52", frame="scale").fit(mixture(100, 3))), []

    def evaluate(x):
        calls.append(len(x))
        if len(calls) == 300:
            os.kill(os.getpid(), signal.SIGINT)
        return target.evaluate(x)

    with pytest.raises(KeyboardInterrupt):
        sample(Target(evaluate, target.start), 10**6, random_state=0)
    assert 300 <= len(calls) < 310


def test_progress_is_shown_only_when_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("isopleth.core.progress.PATIENCE", 0.0)
    monkeypatch.setattr("isopleth.core.progress.IN_LOG", 0.0)
    sample(two_modes()[0], 20, random_state=0)
    assert capsys.readouterr().err == ""
    sample(two_modes()[0], 20, random_state=0, verbose=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("draws by mala [---")
    assert "done in" in lines[-1]


def test_tensors_give_tensors():
    torch = pytest.importorskip("torch")
    rows = torch.asarray(mixture(20, 2))
    score = KernelScore(base="gaussian", length_scale=2.0, regularizer=Tikhonov(alpha=0.1)).fit(rows)
    assert isinstance(score.sample(20, random_state=0), torch.Tensor)
    assert isinstance(SOSREP(kernel="matern52", frame="scale").fit(rows).sample(20, random_state=0), torch.Tensor)


@pytest.mark.parametrize(("method", "warm_up", "thin"), [("mala", 200, 10), ("hmc", 200, 1), ("ula", 200, 20)])
def test_warm_up_and_thinning_are_by_default_as_the_docstring_says(method, warm_up, thin):
    target = Target(lambda x: (-0.5 * (x**2).sum(axis=1), -x), np.random.default_rng(0).normal(size=(20, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, second = (
            sample(target, 8, method=method, chains=2, random_state=0, **how)
            for how in ({}, {"warm_up": warm_up, "thin": thin})
        )
    np.testing.assert_array_equal(first.rows, second.rows)
