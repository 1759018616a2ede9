"""Densities in frames and their mixtures: everything that a density answers, in every frame."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import KDE, SOSREP, InputError, RandomFeatureSOSREP, Search
from isopleth.frames import Compose, Marginal, Scale, Whiten

CLOSED = ["whiten", "marginal", "gp1", "auto"]
WORDS = ["whiten", "gp2", "deep"]


def skewed(n: int = 120, d: int = 2, seed: int = 0) -> np.ndarray:
    """Correlated rows, of which the first column is skewed and the last has groups."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.7 * np.triu(np.ones((d, d)), 1))
    X[:, -1] += 4.0 * (rng.uniform(size=n) < 0.4)
    X[:, 0] = np.exp(0.5 * X[:, 0])
    return X


def by_differences(function, X: np.ndarray, step: float = 1e-5) -> np.ndarray:
    shifts = step * np.eye(X.shape[1])
    return np.stack([(function(X + h) - function(X - h)) / (2.0 * step) for h in shifts], axis=1)


@pytest.mark.parametrize(("kind", "frame"), [*((SOSREP, frame) for frame in WORDS), (KDE, "whiten")])
def test_the_mass_is_one(kind, frame) -> None:
    one = kind(frame=frame).fit(skewed(60, d=1))
    grid = np.sinh(np.linspace(-9.0, 9.0, 10_001))[:, None]
    assert np.trapezoid(np.exp(one.score_samples(grid)), grid[:, 0]) == pytest.approx(1.0, abs=1e-4)
    two = kind(frame=frame).fit(skewed(60))
    u = np.linspace(-6.0, 6.0, 201)
    x = np.sinh(u) / np.sinh(6.0) * 150.0
    points = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    cells = np.exp(two.score_samples(points)).reshape(201, 201)
    assert np.trapezoid(np.trapezoid(cells, x), x) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("kind", [SOSREP, KDE])
@pytest.mark.parametrize("frame", WORDS)
def test_gradients_match_differences(kind, frame) -> None:
    X = skewed(d=3)
    model = kind(frame=frame, bounds={0: (0.0, None)}).fit(X)
    found = model.grad_log_density(X[:20] * 1.01)
    np.testing.assert_allclose(found, by_differences(model.score_samples, X[:20] * 1.01), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("kind", [SOSREP, pytest.param(KDE, marks=pytest.mark.slow)])
def test_draws_have_the_density(kind) -> None:
    model = kind(frame="deep").fit(skewed(150))
    drawn = model.sample(20_000, random_state=0)
    # Of draws, exactly a share q lies in the region whose threshold is a quantile of the log density of other draws.
    logs, others = model.score_samples(drawn[:10_000]), model.score_samples(drawn[10_000:])
    for q in (0.1, 0.5, 0.9):
        assert abs((logs < np.quantile(others, q)).mean() - q) < 0.02
    grid = np.linspace(*np.quantile(drawn[:, 1], [0.001, 0.999]), 200)
    stack = kind(frame="auto").fit(skewed(150))
    column = stack.marginal([1])
    cumulative = np.cumsum(np.exp(column.score_samples(grid[:, None]))) * (grid[1] - grid[0])
    of_draws = (stack.sample(20_000, random_state=1)[:, 1][:, None] < grid).mean(axis=0)
    assert np.abs(cumulative - of_draws).max() < 0.02


@pytest.mark.parametrize(("kind", "frame"), [*((SOSREP, frame) for frame in CLOSED), (KDE, "auto")])
def test_marginals_and_conditionals(kind, frame) -> None:
    X = skewed(100, 3)
    model = kind(frame=frame).fit(X)
    pair = model.marginal([2, 0])
    x = np.sinh(np.linspace(-8.0, 8.0, 4001))
    for row in X[:2]:
        line = np.column_stack([np.full(len(x), row[0]), x, np.full(len(x), row[2])])
        total = np.trapezoid(np.exp(model.score_samples(line)), x)
        np.testing.assert_allclose(np.exp(pair.score_samples(row[None, [2, 0]])), total, rtol=2e-3)
        given = model.conditional({0: row[0]})
        joint = model.score_samples(row[None]) - model.marginal([0]).score_samples(row[None, :1])
        np.testing.assert_allclose(given.score_samples(row[None, 1:]), joint, rtol=1e-9)
        # The marginal of a conditional is a conditional of a marginal.
        one, other = given.marginal([1]), pair.conditional({1: row[0]})
        np.testing.assert_allclose(one.score_samples(row[None, 2:]), other.score_samples(row[None, 2:]), rtol=1e-9)
    np.testing.assert_allclose(
        pair.grad_log_density(X[:5][:, [2, 0]]),
        by_differences(pair.score_samples, X[:5][:, [2, 0]]),
        rtol=2e-4,
        atol=2e-4,
    )
    gaps = X[:5].copy()
    gaps[:, 1] = np.nan
    np.testing.assert_allclose(model.score_samples(gaps), pair.score_samples(X[:5][:, [2, 0]]), rtol=1e-9)


def test_gaps_are_filled_by_the_conditional() -> None:
    X = skewed(150)
    model = SOSREP(frame="auto").fit(X)
    asked = np.array([[X[7, 0], np.nan], [np.nan, X[3, 1]]])
    given = model.conditional({0: X[7, 0]})
    x = np.linspace(-20.0, 25.0, 20_001)
    p = np.exp(given.score_samples(x[:, None]))
    cumulative = np.cumsum(p) * (x[1] - x[0])
    filled = model.impute(asked)
    spread = np.sqrt(np.trapezoid((x - np.trapezoid(x * p, x)) ** 2 * p, x))
    assert abs(filled[0, 1] - np.trapezoid(x * p, x)) < 0.15 * spread
    assert filled[0, 0] == X[7, 0]
    np.testing.assert_allclose(np.interp(*given.interval(0.8).values(), x, cumulative), [0.1, 0.9], atol=0.04)


def test_deep_frames_name_what_answers() -> None:
    model = SOSREP(frame="deep").fit(skewed(80))
    model.components_ = tuple(c for c in SOSREP(frame="gp2").fit(skewed(80)).components_)
    for ask in (
        lambda: model.marginal([0]),
        lambda: model.conditional({0: 1.0}),
        lambda: model.impute([[np.nan, 1.0]]),
    ):
        with pytest.raises(InputError, match="frame='auto'"):
            ask()
    for frame in ("auto", "marginal", "gp1"):
        with pytest.raises(InputError, match="'scale'"):
            SOSREP(frame=frame).fit(skewed(80)).hyvarinen_loss(skewed(10))


@pytest.mark.parametrize("kind", [SOSREP, KDE])
@pytest.mark.parametrize("frame", ["scale", "whiten", "smooth"])
def test_hyvarinen_losses_match_differences(kind, frame) -> None:
    X, new = skewed(80, 3), skewed(20, 3, seed=4)
    model = kind(frame=frame).fit(X)
    unit, step = model.unit_, 1e-4
    gradient = model.grad_log_density(new) * unit
    trace = sum(
        (model.grad_log_density(new + step * h) - model.grad_log_density(new - step * h))[:, j] * unit[j] / (2.0 * step)
        for j, h in enumerate(np.diag(unit))
    )
    wanted = np.mean(trace + 0.5 * (gradient**2).sum(axis=1))
    assert model.hyvarinen_loss(new) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("frame", WORDS)
def test_levels_hold_their_mass(frame) -> None:
    X, new = skewed(150), skewed(1000, seed=5)
    model = SOSREP(frame=frame).fit(X)
    levels = model.level_set([0.5, 0.9])
    inside = (model.score_samples(new)[:, None] >= levels).mean(axis=0)
    np.testing.assert_allclose(inside, [0.5, 0.9], atol=0.12)


def test_a_search_takes_one_factor() -> None:
    X = skewed(150)
    for frame in ("gp1", "auto"):
        model = SOSREP(frame=frame, length_scale=Search(grid=[0.3, 0.7, 1.5, 4.0], cv=3)).fit(X)
        assert {one.factor for one in model.components_} == {model.search_path_.best_factor}
        assert model.search_path_.best_factor in (0.7, 1.5)
    with pytest.raises(InputError, match="criterion"):
        SOSREP(frame="auto", length_scale=Search("hyvarinen")).fit(X)


def test_numbers_are_factors_in_other_frames() -> None:
    X = skewed(80)
    model = KDE(frame="whiten", length_scale=0.5).fit(X)
    half = KDE(frame="whiten").fit(X).components_[0].scale / 2.0
    np.testing.assert_allclose(model.components_[0].scale, half)
    np.testing.assert_allclose(
        KDE(frame=Scale(), length_scale=0.5).fit(X).score_samples(X),
        KDE(frame="scale", length_scale=0.5).fit(X).score_samples(X),
    )
    with pytest.raises(InputError, match="frame='scale'"):
        KDE(frame="whiten", length_scale=[0.5, 0.5]).fit(X)


@pytest.mark.parametrize("kind", [SOSREP, KDE])
def test_columns_of_tables_with_gaps_are_made_normal(kind: type) -> None:
    X = skewed(200)
    rows = X.copy()
    rows[::7, 1] = np.nan
    known = ~np.isnan(rows[:, 1])
    maps = [Marginal().fit(rows[:, [0]], np.ones(200)), Marginal().fit(rows[known][:, [1]], np.ones(known.sum()))]
    mapped, volume = np.full(rows.shape, np.nan), np.zeros(200)
    for j, (one, some) in enumerate(zip(maps, (known | True, known), strict=True)):
        mapped[some, j] = one.forward(rows[some][:, [j]])[:, 0]
        volume[some] += one.log_volume(rows[some][:, [j]])
    model, plain = kind().fit(rows), kind(length_scale="leave_one_out", frame="scale").fit(mapped)
    np.testing.assert_allclose(model.score_samples(rows), plain.score_samples(mapped) + volume, atol=1e-6)
    by_rule = [kind(length_scale=scale).fit(rows).score_samples(rows) for scale in (1.0, "scott")]
    np.testing.assert_allclose(*by_rule)
    filled = model.impute(rows)
    drawn = np.mean([model.impute(rows, "draw", random_state=seed)[~known, 1] for seed in range(50)], axis=0)
    assert np.abs(filled[~known, 1] - drawn).max() < 0.5 * rows[known, 1].std()
    np.testing.assert_allclose(model.impute(rows[~known][::-1])[::-1], filled[~known])
    with pytest.raises(InputError, match="frame='auto'"):
        SOSREP(frame="deep").fit(rows)
    with pytest.raises(InputError, match="frame='auto'"):
        kind(frame="marginal", length_scale=[0.5, 0.5]).fit(rows)


def test_frames_of_a_user() -> None:
    X = skewed(150)
    own = SOSREP(frame=Compose(Marginal(), Whiten(components=True))).fit(X)
    np.testing.assert_allclose(own.score_samples(X), SOSREP(frame="gp1").fit(X).score_samples(X), rtol=1e-6)
    with pytest.raises(InputError, match="'auto', 'deep', 'scale'"):
        SOSREP(frame="wide").fit(X)


def test_the_stack_describes_skewed_groups_better() -> None:
    X, new = skewed(300, 4), skewed(2000, 4, seed=9)
    scaled, stacked, deep = (SOSREP(frame=frame).fit(X).score(new) / 2000 for frame in ("scale", "auto", "deep"))
    assert stacked > scaled + 0.15
    assert deep > scaled + 0.15


def test_many_rows_have_bounded_kernels(monkeypatch) -> None:
    monkeypatch.setattr("isopleth.density.candidates.MOST_JUDGED", 100)
    monkeypatch.setattr(type(SOSREP()._solver()), "most_kernels", 150)
    X, new = skewed(800), skewed(1000, seed=9)
    few = SOSREP(frame="auto").fit(X)
    assert few.centers_.shape == (150, 2)
    assert few.weights_.sum() == pytest.approx(150.0)
    monkeypatch.undo()
    assert few.score(new) / 1000 > SOSREP(frame="auto").fit(X).score(new) / 1000 - 0.2


def test_few_and_nearly_constant_rows() -> None:
    for n in (2, 3, 5, 8):
        X = skewed(n)
        assert np.isfinite(SOSREP(frame="auto").fit(X).score_samples(X)).all()
    rare = np.column_stack([skewed(60)[:, 0], np.zeros(60)])
    rare[0, 1] = 1.0  # constant in the folds without this row
    assert np.isfinite(KDE(frame="deep").fit(rare).score_samples(rare)).all()


def test_columns_that_depend_on_each_other_to_single_precision() -> None:
    """A direction of deviation 1e-6 is described as well as one of deviation 1, also where eigenvalues are rounding."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(300, 2)), rng.normal(size=(300, 1))
    found = {}
    for size in (1.0, 1e-6):
        rows = np.hstack([X, X @ [[1.0], [2.0]] + size * noise])
        found[size] = SOSREP(frame="whiten").fit(rows[:200]).score_samples(rows[200:]).mean() + np.log(size)
    assert abs(found[1e-6] - found[1.0]) < 0.05  # at most .003 in four samples; 1.1 to 1.7 with a ridge of 1e-10


def test_random_features_in_a_frame() -> None:
    X = skewed(1500)
    model = RandomFeatureSOSREP(n_frequencies=400, frame="whiten", random_state=0).fit(X)
    exact = SOSREP(frame="whiten").fit(X)
    known = np.isfinite(model.score_samples(X[:200]))
    assert known.mean() > 0.95
    assert np.abs(model.score_samples(X[:200]) - exact.score_samples(X[:200]))[known].mean() < 0.5
    with pytest.raises(InputError, match="random features"):
        RandomFeatureSOSREP(frame="auto").fit(X)
