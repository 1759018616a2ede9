"""What a density says of each column: against its own draws, its integrals, and each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isopleth import KDE, SOSREP, InputError


def rides() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["bike", "car"], 200)
    speed = rng.normal(np.where(kind == "car", 60.0, 18.0), 4.0)
    return pd.DataFrame(
        {
            "kind": kind,
            "speed": speed,
            "wet": rng.random(200) < 0.3,
            "when": pd.date_range("2024-01-01", periods=200, freq="D"),
        }
    )


@pytest.fixture(scope="module", params=[SOSREP, KDE])
def cars(request):
    return request.param().fit(rides()).conditional({"kind": "car"})


def test_answers_agree_with_draws(cars):
    drawn = cars.sample(4000, random_state=0)
    error = 4.0 * drawn["speed"].std() / np.sqrt(4000)
    assert cars.mean()["speed"] == pytest.approx(drawn["speed"].mean(), abs=error)
    for q in (0.05, 0.5, 0.9):
        value = cars.quantile(q)["speed"]
        assert cars.cdf({"speed": value})["speed"] == pytest.approx(q, abs=1e-5)
        assert (drawn["speed"] <= value).mean() == pytest.approx(q, abs=4.0 * np.sqrt(q * (1.0 - q) / 4000))
        assert cars.cdf({"when": cars.quantile(q)["when"]})["when"] == pytest.approx(q, abs=1e-5)
    low, high = cars.interval(0.8)["speed"]
    assert (low, high) == pytest.approx((cars.quantile(0.1)["speed"], cars.quantile(0.9)["speed"]), rel=1e-5)
    assert cars.median()["when"] == cars.quantile(0.5)["when"]
    wet = cars.probabilities()["wet"]
    assert wet[True] == pytest.approx(drawn["wet"].mean(), abs=0.03)


def test_probabilities_add_up_to_one_and_name_what_was_not_seen():
    model = SOSREP().fit(rides())
    found = model.marginal(["kind", "wet"]).probabilities()
    assert {name: set(shares) for name, shares in found.items()} == {
        "kind": {"bike", "car", "any other word"},
        "wet": {False, True},
    }
    assert [sum(shares.values()) for shares in found.values()] == pytest.approx([1.0, 1.0], abs=1e-12)
    fast = model.conditional({"speed": 60.0})
    assert fast.probabilities()["kind"]["car"] > 0.95
    assert fast.mode()["kind"] == "car"


def test_the_mode_is_the_top_of_the_curve(cars):
    mode = cars.mode()["speed"]
    grid = pd.DataFrame({"speed": np.linspace(mode - 20.0, mode + 20.0, 401)})
    heights = cars.marginal(["speed"]).score_samples(grid)
    assert grid["speed"][int(heights.argmax())] == pytest.approx(mode, abs=0.5)


def test_one_line_a_column(cars):
    lines = repr(cars).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["speed", "wet", "when"]
    middle, low, high = cars.median()["speed"], *cars.interval()["speed"]
    assert lines[0] == f"speed: {middle:.4g}, {low:.4g} to {high:.4g} with 90 %"
    assert lines[1].startswith("wet: False ")
    assert lines[2].startswith("when: 2024-0")
    assert pytest.importorskip("matplotlib")
    axes = cars.plot()
    assert axes.get_title(loc="left").replace("\u00a0", " ") == lines[0]
    assert sum(bool(each.get_title(loc="left")) for each in axes.figure.axes) == 3


def test_arrays_and_frames_of_the_default():
    X = np.random.default_rng(0).normal(size=(300, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    given = SOSREP().fit(X).conditional({0: 1.0})
    (middle,) = given.median().values()
    assert middle == pytest.approx(0.8, abs=0.3)
    assert given.cdf({0: middle})[0] == pytest.approx(0.5, abs=0.02)  # of 1,000 draws


def test_refusals(cars):
    for call, words in (
        (lambda: cars.quantile(1.0), "q = 1.0: expected a number between 0 and 1"),
        (lambda: cars.cdf({"wet": True}), "'wet' holds words; ask for probabilities"),
        (lambda: cars.cdf({"nose": 1.0}), "which does not exist"),
    ):
        with pytest.raises(InputError, match=words):
            call()


@pytest.mark.parametrize("kind", [SOSREP, KDE])
def test_truth_values_are_drawn_and_filled_as_both(kind):
    frame = rides()
    frame["wet"] = frame["kind"] == "car"
    model = kind().fit(frame)
    assert model.sample(300, random_state=0)["wet"].mean() == pytest.approx(frame["wet"].mean(), abs=0.12)
    asked = frame.assign(wet=pd.Series([None] * len(frame), dtype="boolean"))
    assert (model.impute(asked)["wet"].astype(bool) == frame["wet"]).mean() > 0.95
