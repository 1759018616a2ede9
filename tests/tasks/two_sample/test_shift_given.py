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


@pytest.fixture(scope="module")
def comparison(sold):
    """The comparison whose shifts many tests ask for."""
    return compared(*sold)


def test_a_lower_price_of_larger_stones_is_found_with_its_size(comparison):
    found = comparison.shift("price", ["carat", "cut"])
    assert found.alone > 0.0
    assert found.by_ratio
    assert found.ratio_low < -0.1 < found.ratio_high < 0.0
    assert found.low < found.shift < found.high < 0.0
    assert found.pvalue < 1e-3
    assert found.rows == (150, 114)
    assert str(found).startswith("Given carat and cut, price is lower in Y by ")


def test_all_other_columns_are_given_by_default_in_any_order_of_rows_and_columns(sold, comparison):
    rng = np.random.default_rng(0)
    turned = [each.iloc[rng.permutation(len(each))][["price", "cut", "carat"]] for each in sold]
    one, other = (each.shift("price") for each in (comparison, compared(*turned)))
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
        (
            "cut",
            None,
            "column 'cut' holds words, which have no mean; its words are 'ideal', 'good', 'fair'; name the word",
        ),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(comparison, target, given, words):
    with pytest.raises(InputError, match=words):
        comparison.shift(target, given)


def test_few_known_targets_are_refused(sold):
    first, second = sold[0].copy(), sold[1]
    first.loc[5:, "price"] = np.nan
    with pytest.raises(InputError, match="column 'price' is known in 5 rows of the first sample"):
        compared(first, second).shift("price")


def test_a_shift_in_one_group_is_found_however_small_that_of_all_rows_is(sold):
    """A tenth less for fair stones only, a fifth of all: p-values and intervals allow for three groups."""
    first, second = stones(np.random.default_rng(3), 300, 0.8, 1.0), stones(np.random.default_rng(4), 300, 0.8, 1.0)
    second.loc[second["cut"] == "fair", "price"] *= 0.85
    found = compared(first, second).shifts("price", "cut", ["carat"])
    assert found.shifts[0].group == "cut fair"
    one, *others = found.shifts
    assert (one.groups, one.given, round(one.confidence_level, 6)) == (3, ("carat",), 0.983333)
    assert one.ratio_low < -0.15 < one.ratio_high < 0.0
    assert one.pvalue < 0.01 < min(each.pvalue for each in others)
    words = found.sentences("late.csv")
    assert words[0].startswith("In rows with cut fair, given carat, price is lower in late.csv by ")
    assert "(98.33 % interval: " in words[0]
    assert " for 3 groups; " in words[0]
    assert words[1:] == ["No difference is shown in any of the other 2 groups of cut."]


def test_groups_without_enough_rows_are_named_and_numbers_are_cut_at_their_median(sold):
    first, second = (each.assign(cut=each["cut"].where(each.index != 3, "rare")) for each in sold)
    result = compared(first, second)
    found = result.shifts("price", "cut", ["carat"])
    assert found.left_out == {"cut rare": "fewer than 10 rows of a sample"}
    assert found.sentences("B")[-1] == "Not compared: cut rare (fewer than 10 rows of a sample)."
    halves = result.shifts("price", "carat", ["cut"])
    assert {each.group.rsplit(" ", 1)[0] for each in halves.shifts} == {"carat up to", "carat above"}
    assert halves.left_out == {"carat missing": "21 rows"}
    with pytest.raises(InputError, match="names 'price', which is the target"):
        result.shifts("price", "price")


def test_the_share_of_a_word_is_compared_given_others():
    rng = np.random.default_rng(6)

    def paid(n, more):
        age = rng.normal(size=n)
        late = rng.random(n) < 1.0 / (1.0 + np.exp(1.0 - age - more))
        return pd.DataFrame({"age": age, "late": np.where(late, "yes", "no"), "plan": rng.choice(["a", "b", "c"], n)})

    result = compared(paid(250, 0.0), paid(250, 1.0))
    found = result.shift("late", ["age"])
    assert (found.word, np.isnan(found.ratio)) == ("yes", True)
    assert 0.0 < found.low < 0.18 < found.high < 0.4
    assert str(found).startswith("Given age, the share of 'yes' in late is higher in Y by ")
    assert result.shift("late", ["age"], word="no").shift == pytest.approx(-found.shift)
    assert result.shift("plan", ["age"], word="b").pvalue > 0.01
    with pytest.raises(InputError, match="does not hold 'bb', perhaps 'b' is meant"):
        result.shift("plan", word="bb")
    with pytest.raises(InputError, match="'age' holds no words"):
        result.shift("age", word="b")


def test_groups_that_are_asked_for_are_answered_whatever_the_whole_comparison_says():
    rng = np.random.default_rng(7)
    x, y = (pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(["u", "v"], 200)}) for _ in range(2))
    found = compared(x, y).in_groups("b")
    assert [each.column for each in found.found] == ["a"]
    (words,) = found.sentences()
    assert words.startswith("No column is shown to have changed more in some groups of b than in others")
    y.loc[y["b"] == "u", "a"] *= 4.0
    assert compared(x, y).in_groups("b").sentences()[0].startswith("a is more spread in rows with b u")
    with pytest.raises(InputError, match="by names 'c', which is not compared"):
        compared(x, y).in_groups("c")
