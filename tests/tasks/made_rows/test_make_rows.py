"""Rows that are drawn as their table records them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import cKDTree
from scipy.stats import ks_2samp

from isopleth import KDE, SOSREP, InputError, load, save
from isopleth.core.rows import systematic_sample
from isopleth.kernels import ProductLaplacian
from isopleth.tables.number_formats import NumberFormat
from isopleth.tasks import make_rows
from isopleth.tasks.made_rows.drawing import _Maker
from isopleth.tasks.made_rows.selection import Selection, _chances

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def shop(n=300, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["bike", "car", "bus"], n, p=[0.6, 0.35, 0.05])
    frame = pd.DataFrame(
        {
            "kind": kind,
            "speed": np.round(rng.normal(np.where(kind == "car", 60, 18), 4), 1),
            "count": rng.poisson(2, n),
            "paid": np.where(rng.uniform(size=n) < 0.4, 0.0, np.round(rng.lognormal(3, 1, n), 2)),
            "member": rng.uniform(size=n) < 0.3,
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
        }
    )
    frame.loc[(kind == "bike") & (rng.uniform(size=n) < 0.5), "paid"] = np.nan
    return frame


@pytest.fixture(scope="module")
def model():
    return SOSREP(frame="scale").fit(shop())


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (np.arange(30.0), 1.0),
        (5.0 * np.arange(30) + 100, 5.0),
        (np.arange(30) / 10, 0.1),
        (0.005 * np.arange(71, 100), 0.005),
        (100.0 * np.arange(30) ** 2, 100.0),
        (np.sqrt(np.arange(1.0, 60.0)), 0.0),
        (1e-8 * np.arange(30), 0.0),
    ],
)
def test_decimals_of_a_column(values, step):
    form = NumberFormat.of(values)
    assert form.step == pytest.approx(step)
    if step:
        found = form.at(np.random.default_rng(0).uniform(size=200))
        np.testing.assert_allclose(found / step, np.rint(found / step), atol=1e-6)
        assert values.min() <= found.min() <= found.max() <= values.max()


def test_repeated_values_are_those_that_their_neighbours_are_not():
    rng = np.random.default_rng(0)
    payments = np.where(rng.uniform(size=500) < 0.3, 0.0, rng.lognormal(size=500))
    assert NumberFormat.of(payments).repeated == (0.0,)
    ages = np.clip(np.rint(rng.normal(40, 12, size=2000)), 18, 90)
    assert not set(NumberFormat.of(ages).repeated) - {18.0}  # only the end, where they are cut off
    assert NumberFormat.of(rng.choice([4.0, 6.0, 8.0], 100)).few


def test_weights_are_repetitions():
    values, weights = np.array([1.0, 2.0, 3.0, 7.5]), np.array([6.0, 1.0, 1.0, 2.0])
    form, again = NumberFormat.of(values, weights), NumberFormat.of(np.repeat(values, weights.astype(int)))
    shares = np.linspace(0.01, 0.99, 50)
    assert np.mean(np.abs(form.at(shares) - again.at(shares))) < 0.4


@pytest.mark.parametrize(
    ("kind", "kernel"),
    [
        (SOSREP, ProductLaplacian()),
        (KDE, "gaussian"),
        pytest.param(SOSREP, "gaussian", marks=pytest.mark.slow),
        pytest.param(KDE, ProductLaplacian(), marks=pytest.mark.slow),
    ],
)
def test_every_column_keeps_its_distribution(kind, kernel):
    frame = shop()
    made = make_rows(kind(kernel, length_scale="leave_one_out", frame="scale").fit(frame), 4000, random_state=0)
    assert made.dtypes.equals(frame.dtypes)
    assert list(made) == list(frame)
    for name in ("speed", "count", "paid"):
        assert ks_2samp(made[name].dropna(), frame[name].dropna()).statistic < 0.08
        assert frame[name].min() <= made[name].min()
        assert made[name].max() <= frame[name].max()
    assert (made["paid"] == 0).mean() == pytest.approx((frame["paid"] == 0).mean(), abs=0.05)
    assert (made["when"] == made["when"].dt.normalize()).all()
    assert made["when"].between(frame["when"].min(), frame["when"].max()).all()
    shares = frame["kind"].value_counts(normalize=True)
    np.testing.assert_allclose(made["kind"].value_counts(normalize=True)[shares.index], shares, atol=0.06)
    assert made["paid"].isna().mean() == pytest.approx(frame["paid"].isna().mean(), abs=0.06)
    assert made["paid"].isna().groupby(made["kind"]).mean()["bike"] > 0.35


@pytest.mark.parametrize("frame", ["scale", "auto"])
def test_exact_relations_survive_and_rows_are_not_repeated(frame):
    rng = np.random.default_rng(0)
    smokes = rng.choice(["no", "yes"], size=300)
    age, x = rng.normal(50.0, 12.0, size=300).round(1), rng.normal(size=300)
    packs = np.where(smokes == "no", 0.0, rng.integers(1, 40, size=300))
    table = pd.DataFrame(
        {"smokes": smokes, "packs": packs, "age": age, "x": x, "y": x + rng.normal(0.0, 0.1, size=300)}
    )
    made = make_rows(SOSREP(length_scale="leave_one_out", frame=frame).fit(table), 300, random_state=0)
    assert ((made["smokes"] == "no") != (made["packs"] == 0)).mean() < 0.05
    unit = table.std(numeric_only=True)
    rows, new = ((part[unit.index] / unit).to_numpy() for part in (table, made))
    usual, found = cKDTree(rows).query(rows, k=2)[0][:, 1], cKDTree(rows).query(new)[0]
    assert 0.4 < (found < np.median(usual)).mean() < 0.6


@pytest.mark.parametrize("unit", ["D", "h", "min", "s"])
def test_times_are_drawn_at_the_step_of_the_table(unit):
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 999, 60), unit=unit)
    density = KDE(frame="scale").fit(pd.DataFrame({"when": when, "x": rng.normal(size=60)}))
    drawn = make_rows(density, 99, random_state=0)
    steps = (drawn["when"] - pd.Timestamp("2024-01-01")) / pd.Timedelta(1, unit)
    assert (steps % 1 == 0).all()
    assert (steps % 2 == 1).any()


def test_plain_draws_are_those_of_the_density(model):
    plain = model.sample(300, random_state=0)
    assert not plain.isna().any(axis=None)
    assert (plain["count"] % 1.0 != 0.0).any()
    full = make_rows(model, 300, random_state=0, complete=True)
    assert not full.isna().any(axis=None)
    assert full["count"].dtype == np.int64


def test_frames_of_all_libraries_and_model_files(model, tmp_path):
    frame = shop()
    expected = make_rows(model, 50, random_state=1)
    for X in (pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        other = SOSREP(frame="scale").fit(X)
        made = make_rows(other, 50, random_state=1)
        assert type(made) is type(X)
        rows = made.to_pandas()
        assert rows["count"].tolist() == expected["count"].tolist()
        assert rows["kind"].tolist() == expected["kind"].tolist()
        assert rows["paid"].isna().tolist() == expected["paid"].isna().tolist()
        save(other, tmp_path / "m")
        assert make_rows(load(tmp_path / "m"), 50, random_state=1).equals(made)
    assert made.schema.field("count").type == pa.int64()


def test_frames_and_arrays_of_complete_numbers():
    frame = shop()[["speed", "count"]]
    made = make_rows(KDE(frame="scale").fit(frame), 100, random_state=0)
    assert made.dtypes.equals(frame.dtypes)
    array = make_rows(KDE(frame="scale").fit(frame.to_numpy()), 100, random_state=0)
    assert isinstance(array, np.ndarray)
    np.testing.assert_allclose(array[:, 1], np.rint(array[:, 1]))


def test_given_values_and_marginals():
    model = SOSREP(length_scale="leave_one_out", frame="scale").fit(shop())
    cars = make_rows(model, 500, given={"kind": "car", "count": 3}, random_state=0)
    assert set(cars["kind"]) == {"car"}
    assert set(cars["count"]) == {3}
    assert cars["speed"].median() == pytest.approx(60, abs=6)
    some = make_rows(model.marginal(["paid", "kind"]), 500, random_state=0)
    assert list(some) == ["paid", "kind"]
    assert some["paid"].isna().groupby(some["kind"]).mean()["bike"] > 0.3
    one = make_rows(model.conditional({"kind": "car"}), 100, random_state=0)
    assert one["count"].dtype == np.int64


def test_seeds_and_kernels_that_are_no_product(model):
    one, other = (make_rows(model, 20, random_state=3) for _ in range(2))
    assert one.equals(other)
    radial = SOSREP("matern52", frame="scale").fit(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(InputError, match="no product over columns"):
        make_rows(radial, 5)


def test_marginals_remember_which_cells_were_filled():
    """A training row is not filled by the centre that was made of it, in marginals and conditionals too."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    rows = np.column_stack([x, x + 0.1 * rng.normal(size=60), rng.normal(size=60)])
    rows[::2, 1] = np.nan
    model = SOSREP(length_scale=0.05, frame="scale").fit(rows)
    asked = rows[::2].copy()
    part = model.marginal([0, 1])
    own = part.density.own_centers(part.coordinates.enter(asked[:, :2]))
    assert own is not None
    assert (own >= 0).any()
    given = model.conditional({2: 0.0})
    assert given.density.filled is not None
    assert given.density.filled.shape == given.density.centers.shape


def test_nullable_whole_numbers_and_tensors():
    frame = shop()
    frame["count"] = frame["count"].astype("Int64")
    frame.loc[::5, "count"] = pd.NA
    made = make_rows(SOSREP(frame="scale").fit(frame), 300, random_state=0)
    assert str(made["count"].dtype) == "Int64"
    assert made["count"].isna().mean() == pytest.approx(0.2, abs=0.08)
    torch = pytest.importorskip("torch")
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 2)).round(1))
    tensor = make_rows(KDE(frame="scale").fit(rows), 5, random_state=0)
    assert isinstance(tensor, torch.Tensor)
    assert torch.allclose(tensor, torch.round(tensor, decimals=1))


def test_category_scales_of_0_are_refused():
    with pytest.raises(InputError, match=r"category_scale = 0: expected 'frequency', a number between 0 and 1"):
        SOSREP(category_scale=0, frame="scale").fit(shop())


@pytest.mark.parametrize("options", [{"kernel": ProductLaplacian()}, {"frame": "whiten"}])
def test_made_rows_come_evenly_from_the_rows_of_the_fit(options):
    """Independent draws leave out a row in e, and repeat as many: trees tell them by the repetitions."""
    rng = np.random.default_rng(0)
    drawn = _Maker.of(KDE(**options).fit(rng.normal(size=(300, 2)))._table_density())._draws(3000, rng)
    counts = np.bincount(drawn.center, minlength=300)
    assert counts.std() < 2.0  # 3.2 of independent draws
    alike = SimpleNamespace(decision_function=lambda features: np.zeros(len(features)))
    selection = Selection((0, 0), np.ones(2), cKDTree(drawn.first), alike)
    kept = np.bincount(drawn.center[selection.kept(drawn.rows, drawn.center, 300, rng)], minlength=300)
    assert kept.std() < 0.6  # 1 of independent ones


def test_even_draws_have_the_shares_of_independent_ones():
    rng = np.random.default_rng(0)
    shares = np.array([0.0, 0.5, 0.3, 0.0, 0.17, 0.03, 0.0])
    counts = np.mean([np.bincount(systematic_sample(shares, 10, rng), minlength=7) for _ in range(2000)], axis=0)
    np.testing.assert_allclose(counts, 10 * shares, atol=0.05)
    once = np.bincount(systematic_sample(shares, 10, rng), minlength=7)
    assert (np.abs(once - 10 * shares) < 1.0).all()
    chances = _chances(np.array([1000.0, 500.0, 3.0, 2.0, 1.0]), 3)
    np.testing.assert_allclose(chances, [1.0, 1.0, 0.5, 1 / 3, 1 / 6])


@pytest.mark.parametrize("unit", ["ns", "ms"])
def test_made_times_have_the_resolution_of_the_table(unit):
    rng = np.random.default_rng(0)
    stamps = np.datetime64("2024-01-01") + rng.integers(0, 10**6, 60).astype("timedelta64[s]")
    table = pl.DataFrame({"at": stamps.astype(f"datetime64[{unit}]"), "x": rng.normal(size=60)})
    for frame in (table, table.to_pandas()):
        made = make_rows(KDE(ProductLaplacian(), length_scale="leave_one_out").fit(frame), 5, random_state=0)
        assert made["at"].dtype == frame["at"].dtype
