"""Probability of a box under a fitted density."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from isopleth import KDE, SOSREP, InputError

ROWS = np.random.default_rng(0).multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], size=600, method="cholesky")


@pytest.mark.parametrize("density", [SOSREP(), SOSREP(frame="scale"), KDE(), KDE(frame="scale")])
def test_a_box_has_the_share_of_draws_and_about_the_true_probability(density):
    density.fit(ROWS)
    box = {0: (-0.5, 1.0), 1: (0.0, 2.0)}
    found, error = density.probability(box)
    drawn = density.sample(20_000, random_state=0)
    share = ((drawn[:, 0] > -0.5) & (drawn[:, 0] < 1.0) & (drawn[:, 1] > 0.0) & (drawn[:, 1] < 2.0)).mean()
    law = multivariate_normal(cov=[[1.0, 0.6], [0.6, 1.0]])
    true = law.cdf([1.0, 2.0], lower_limit=[-0.5, 0.0])
    assert (error, found) == (0.0, pytest.approx(share, abs=0.013))
    assert found == pytest.approx(true, abs=0.04)
    # The parts of a box add up, and a box without limits has the probability 1.
    parts = [density.probability({0: (-0.5, 1.0), 1: ends})[0] for ends in ((None, 0.0), (0.0, 2.0), (2.0, None))]
    assert sum(parts) == pytest.approx(density.probability({0: (-0.5, 1.0), 1: (None, None)})[0], abs=2e-3)
    assert density.probability({0: (None, 0.3)})[0] == pytest.approx(norm.cdf(0.3), abs=0.05)
    assert density.probability({0: (None, None)}) == (1.0, 0.0)
    assert density.probability({0: (1.0, 1.0)}) == (0.0, 0.0)


def test_words_are_sets_and_given_columns_stay_given():
    rng = np.random.default_rng(1)
    plan = rng.choice(["basic", "plus", "gold"], 300, p=[0.5, 0.3, 0.2])
    table = pd.DataFrame({"age": rng.normal(40.0, 5.0, 300) + 10.0 * (plan == "gold"), "plan": plan, "one": 3.0})
    density = SOSREP(length_scale="leave_one_out", frame="scale").fit(table)
    both = density.probability({"plan": {"plus", "gold"}}).probability
    each = [density.probability({"plan": word}).probability for word in ("plus", "gold", "basic")]
    assert both == pytest.approx(sum(each[:2]))
    assert sum(each) == pytest.approx(1.0, abs=0.02)
    old = density.probability({"age": (45.0, None), "plan": ["gold"], "one": (0, 5)}).probability
    assert old / each[1] == pytest.approx(
        density.conditional({"plan": "gold"}).probability({"age": (45.0, None)})[0], abs=0.02
    )
    assert old == pytest.approx(((table["age"] > 45.0) & (plan == "gold")).mean(), abs=0.05)
    assert density.probability({"age": (45.0, None), "one": (0, 1)}) == (0.0, 0.0)
    for box, words in (
        ({}, "expected a dict"),
        ({"agee": (1, 2)}, "perhaps 'age' is meant"),
        ({"age": 3.0}, "no pair of limits"),
        ({"age": (1, np.nan)}, "None for no limit"),
        ({"plan": {"silver"}}, "no training row has; expected some of 'basic', 'plus', 'gold'"),
        ({"age": (1, 2), 0: (3, 4)}, "names a column twice"),
    ):
        with pytest.raises(InputError, match=words):
            density.probability(box)


def test_three_columns_are_drawn_and_have_an_error():
    rows = np.random.default_rng(2).normal(size=(200, 3))
    density = SOSREP(frame="scale").fit(rows)
    box = dict.fromkeys(range(3), (-1.0, 1.0))
    found, error = density.probability(box)
    assert 0.001 < error < 0.003
    assert found == pytest.approx(0.683**3, abs=0.06)
    assert density.probability(box) == (found, error)
