"""Fits to a sample of the rows: which rows are drawn, and what does not change their scores."""

import numpy as np
import pandas as pd
import pytest

from isopleth import AnomalyDetector, InputError
from isopleth.tasks.anomaly.fit_in_parts import fit_parts
from isopleth.tasks.anomaly.fit_sample import CodedRows, FirstLook, FitSample
from isopleth.tasks.anomaly.training_table import discounted

N, SIZE = 3000, 500


def rows_with_gaps(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 1] = np.round(np.exp(X[:, 1]))  # many zeros
    X[rng.uniform(size=n) < 0.02, 2] = np.nan
    return X


def sample_of(blocks, size=SIZE, every=True):
    look = FirstLook(blocks[0].shape[1], size // 4)
    for block in blocks:
        look = look.merge(FirstLook(block.shape[1], size // 4).add(block))
    found = FitSample(size, 0, look, every)
    for block in blocks:
        found = found.merge(FitSample(size, 0, look, every).add(block))
    return found.drawn


def test_rows_that_no_sample_has_are_left_out_early():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    for one, other in zip(sample_of([X], 200, every=False), sample_of([X], 200), strict=True):
        np.testing.assert_array_equal(one, other)
    look = FirstLook(3, 50).add(X)
    few, repeated = FitSample(200, 0, look).add(X[:1000]), FitSample(200, 0, look).add(np.repeat(X[:100], 50, axis=0))
    assert 100 < len(few.drawn[0]) < 400
    assert repeated.lacks_rows
    assert not FitSample(200, 0, look).add(X).lacks_rows


def in_order(drawn):
    rows = np.nan_to_num(drawn[0], nan=-1e9)
    order = np.lexsort(rows.T)
    return rows[order], drawn[1][order], drawn[2][order]


@pytest.mark.parametrize("size", [200, SIZE, 4 * N])
def test_neither_order_nor_blocks_of_the_rows_change_the_sample(size):
    X = rows_with_gaps()
    X[::7] = X[0]  # a common value
    expected = in_order(sample_of([X], size))
    shuffled = np.random.default_rng(1).permutation(X)
    for blocks in (np.array_split(shuffled, 7), [X[:1], X[1:4], X[4:]], [X[::-1]]):
        for one, other in zip(expected, in_order(sample_of(blocks, size)), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-12)


def test_rounding_errors_do_not_change_which_rows_are_drawn():
    X = rows_with_gaps()
    noise = 1.0 + 1e-12 * np.random.default_rng(2).uniform(-1, 1, X.shape)
    moved = X * noise + 1e-12 * np.random.default_rng(3).uniform(-1, 1, X.shape)
    one, other = in_order(sample_of([X])), in_order(sample_of([moved]))
    np.testing.assert_allclose(np.sort(other[0], axis=0), np.sort(one[0], axis=0), atol=1e-9)


def test_common_rows_are_never_left_out_and_sums_have_the_right_expectation():
    rng = np.random.default_rng(0)
    common = np.repeat(rng.normal(size=(5, 2)), 400, axis=0)
    estimates = []
    for seed in range(40):
        X = np.concatenate([common, np.random.default_rng(seed).normal(size=(4000, 2))])
        rows, copies, weights = sample_of([X], 400)
        assert set(map(tuple, common)) <= set(map(tuple, rows))
        assert len(rows) == 400
        estimates.append(weights[copies == 400].sum() / weights.sum())
    true = 5 * discounted(400) / (5 * discounted(400) + 4000)
    assert np.mean(estimates) == pytest.approx(true, abs=0.01)


def mixed(n=N, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.exponential(size=n).round(2), "town": rng.choice(["x", "y", "z"], n)}
    )
    frame.loc[rng.uniform(size=n) < 0.01, "b"] = np.nan
    frame.loc[5, ["a", "b"]] = [9.0, 80.0]
    return frame


@pytest.fixture(scope="module")
def fitted():
    return AnomalyDetector(max_fit_rows=SIZE, random_state=0).fit(mixed())


def test_scores_of_a_sampled_fit_depend_on_neither_order_nor_number_of_threads(fitted):
    frame = mixed()
    order = np.random.default_rng(1).permutation(N)
    other = AnomalyDetector(max_fit_rows=SIZE, random_state=0, n_jobs=1).fit(frame.iloc[order])
    np.testing.assert_allclose(other.training_scores_, fitted.training_scores_[order], rtol=1e-9)
    assert fitted.n_samples_fit_ == SIZE
    assert len(fitted.training_scores_) == len(fitted.p_values_) == N


def test_rows_of_a_sampled_fit_are_known_again_one_by_one_and_as_a_table(fitted):
    frame = mixed()
    np.testing.assert_allclose(fitted.score_samples(frame.iloc[:50]), fitted.training_scores_[:50], rtol=1e-9)
    np.testing.assert_array_equal(fitted.score_samples(frame), fitted.training_scores_)
    assert fitted.training_scores_.argmin() == 5
    assert fitted.predict(frame.iloc[[5]])[0] == -1


def test_a_sample_ranks_nearly_as_all_rows_do(fitted):
    every = AnomalyDetector(random_state=0).fit(mixed())
    least = np.argsort(every.training_scores_)[: N // 30]
    assert np.isin(np.argsort(fitted.training_scores_)[: N // 30], least).mean() > 0.75
    assert np.corrcoef(every.training_scores_, fitted.training_scores_)[0, 1] > 0.97


def test_what_a_sample_moves_is_said_with_its_standard_error(fitted):
    found = fitted.anomalies(mixed())
    facts = found.to_dict()
    assert facts["fit_rows"] == SIZE
    last = found.p_values[found.flagged].max()
    assert facts["flag_error"] == pytest.approx(np.sqrt(last * (1 - last) / SIZE))
    assert any("sample of 500 of the 3,000 rows" in sentence for sentence in facts["summary"])
    assert AnomalyDetector(random_state=0).fit(mixed(300)).anomalies(mixed(300)).to_dict()["fit_rows"] is None


def test_the_stated_standard_error_is_that_of_the_share_that_is_flagged():
    X = np.random.default_rng(5).normal(size=(4000, 3))
    shares = [
        (AnomalyDetector(max_fit_rows=400, n_estimators=10, random_state=seed).fit(X).p_values_ <= 1 / 30).mean()
        for seed in range(25)
    ]
    expected = np.sqrt(1 / 30 * 29 / 30 / 400)
    assert 0.65 * expected < np.std(shares, ddof=1) < 1.5 * expected
    assert np.mean(shares) == pytest.approx(1 / 30, abs=3 * expected / 5)


class Blocks(CodedRows):
    """Rows in blocks of a length, as from a file."""

    length = 700

    def sums(self, start, add):
        total = start()
        for first in range(0, len(self.rows), self.length):
            total = total.merge(add(start(), self.rows[first : first + self.length], None))
        return total


@pytest.mark.parametrize("most", [SIZE, 2 * N])
def test_a_fit_to_rows_in_parts_is_that_in_memory(most):
    X = np.nan_to_num(rows_with_gaps())
    parts = fit_parts(AnomalyDetector(max_fit_rows=most, random_state=0), Blocks(X))
    memory = AnomalyDetector(max_fit_rows=most, random_state=0).fit(X)
    np.testing.assert_allclose(parts.training_scores_, memory.training_scores_, rtol=1e-9)
    np.testing.assert_allclose(parts.p_values_, memory.p_values_, rtol=1e-9)
    assert parts.offset_ == pytest.approx(memory.offset_, rel=1e-9)
    np.testing.assert_allclose(parts.score_samples(X[:9]), memory.score_samples(X[:9]), rtol=1e-9)
    assert len(parts.anomalies(X).p_values) == N


def test_a_fit_to_parts_refuses_what_it_cannot_use():
    with pytest.raises(InputError, match="novelty=True is fitted to a reference in memory"):
        fit_parts(AnomalyDetector(novelty=True), Blocks(np.zeros((5, 2))))
    with pytest.raises(InputError, match="X has 1 rows"):
        fit_parts(AnomalyDetector(), Blocks(np.zeros((1, 2))))
