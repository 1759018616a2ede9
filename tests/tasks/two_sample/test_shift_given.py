"""The shift of one column given chosen others."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from isopleth import InputError, two_sample_test


def stones(rng, n, carat, factor):
    weight = rng.gamma(9.0, carat / 9.0, n)
    cut = rng.choice(["fair", "good", "ideal"], n, p=[0.2, 0.3, 0.5])
    price = factor * 4000 * weight**1.7 * (1.0 + 0.2 * (cut == "ideal")) * rng.lognormal(0, 0.1, n)
    return pd.DataFrame({"carat": weight, "cut": cut, "price": price})


@pytest.fixture(scope="module")
def sold():
    rng = np.random.default_rng(1)
    first, second = stones(rng, 150, 0.8, 1.0), stones(rng, 120, 0.9, 0.9)
    first.loc[:20, "carat"] = np.nan
    second.loc[:5, "price"] = np.nan
    return first, second


def compared(first, second, **options):
    return two_sample_test(first, second, n_resamples=19, n_jobs=1, random_state=0, **options)


def test_a_lower_price_of_larger_stones_is_found_with_its_size(sold):
    found = compared(*sold).shift("price", ["carat", "cut"])
    assert found.alone > 0.0
    assert found.by_ratio
    assert found.ratio_low < -0.1 < found.ratio_high < 0.0
    assert found.low < found.shift < found.high < 0.0
    assert found.pvalue < 1e-3
    assert found.rows == (150, 114)
    assert str(found).startswith("Given carat and cut, price is lower in Y by ")


def test_all_other_columns_are_given_by_default_in_any_order_of_rows_and_columns(sold):
    first, second = sold
    rng = np.random.default_rng(0)
    turned = [each.iloc[rng.permutation(len(each))][["price", "cut", "carat"]] for each in sold]
    one, other = (compared(*pair).shift("price") for pair in ((first, second), turned))
    assert one.given == ("carat", "cut")
    assert replace(one, given=other.given) == other


def test_samples_that_change_places_have_the_opposite_shift():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 80, 2))
    one, other = (compared(*pair).shift("column 0") for pair in ((x, y), (y, x)))
    assert one.shift == pytest.approx(-other.shift, rel=1e-9)
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)


def test_rows_of_a_group_count_once():
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(20), 6)
    own = rng.normal(size=20)[group]
    frame = pd.DataFrame({"y": own + 0.1 * rng.normal(size=120), "z": rng.normal(size=120)})
    halves = frame[:60], frame[60:]
    alone = compared(*halves).shift("y")
    together = compared(*halves, groups=(group[:60], group[60:])).shift("y")
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


def test_samples_without_rows_alike_are_refused():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 60, 2))
    y[:, 1] += 100.0
    with pytest.raises(InputError, match="hardly any rows of the two samples are alike"):
        compared(x, y).shift("column 0")


def test_constant_given_columns_leave_the_difference_of_means():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 50, 2))
    x[:, 1] = y[:, 1] = 3.0
    found = compared(x, y).shift("column 0")
    assert found.shift == pytest.approx(y[:, 0].mean() - x[:, 0].mean())
    assert found.shift == pytest.approx(found.alone)


@pytest.mark.parametrize(
    ("target", "given", "words"),
    [
        ("prise", None, "target names 'prise', which is not compared, perhaps 'price' is meant"),
        ("price", ["carot"], "given names 'carot', which is not compared, perhaps 'carat' is meant"),
        ("price", ["price"], "given names column 'price' too"),
        ("price", [], "given names no column"),
        ("cut", None, "column 'cut' holds words, which have no mean"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(sold, target, given, words):
    with pytest.raises(InputError, match=words):
        compared(*sold).shift(target, given)


def test_few_known_targets_are_refused(sold):
    first, second = sold[0].copy(), sold[1]
    first.loc[5:, "price"] = np.nan
    with pytest.raises(InputError, match="column 'price' is known in 5 rows of the first sample"):
        compared(first, second).shift("price")
