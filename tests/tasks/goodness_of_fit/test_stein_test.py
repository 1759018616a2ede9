"""Stein test: literal statistics, level by simulation, power, and what it refuses."""

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest

from isopleth import DataWarning, InputError, stein_test
from isopleth.core.budget import Budget
from isopleth.frames import Scale, Whiten
from isopleth.frames.compose import stein_transforms
from isopleth.kernels import get_kernel
from isopleth.tasks.goodness_of_fit import _normal_scores, _signs, _sums

RNG = np.random.default_rng(0)


def normal_score(X):
    return -X


def literal(kernel, x, s, scale):
    """u for all pairs, by differences of the kernel in both arguments."""
    found = get_kernel(kernel).bind(x.shape[1])

    def k(a, b):
        return float(found(((a - b) ** 2).sum() / scale**2))

    steps = 1e-4 * np.eye(x.shape[1])
    out = np.empty((len(x), len(x)))
    for i, a in enumerate(x):
        for j, b in enumerate(x):
            of_a = np.array([(k(a + e, b) - k(a - e, b)) / 2e-4 for e in steps])
            of_b = np.array([(k(a, b + e) - k(a, b - e)) / 2e-4 for e in steps])
            mixed = sum(k(a + e, b + e) - k(a + e, b - e) - k(a - e, b + e) + k(a - e, b - e) for e in steps) / 4e-8
            out[i, j] = s[i] @ s[j] * k(a, b) + s[i] @ of_b + s[j] @ of_a + mixed
    return out


@pytest.mark.parametrize("kernel", ["imq", "gaussian", "matern52"])
@pytest.mark.parametrize("dim", [1, 3])
def test_sums_are_those_of_the_literal_form(kernel, dim):
    x, s = RNG.normal(size=(2, 7, dim))
    scales, signs = np.array([0.7, 1.9]), _signs(7, 4, 0.5, 0)
    for room in (2**30, 8 * 8 * 7 * 2):  # at once, and by two rows
        sums, diagonal = _sums(get_kernel(kernel).bind(dim), x, s, scales, signs, Budget(room, 1))
        for k, scale in enumerate(scales):
            u = literal(kernel, x, s, scale)
            np.testing.assert_allclose(sums[k], np.einsum("ib,ij,jb->b", signs, u, signs), rtol=1e-5, atol=1e-5)
            assert diagonal[k] == pytest.approx(np.trace(u), rel=1e-5)


def test_the_discrepancy_is_that_of_the_loss():
    torch = pytest.importorskip("torch")
    from isopleth.torch import ksd

    x = RNG.normal(size=(50, 2)) * [1.0, 3.0] + 1.0
    rows, score = torch.as_tensor(x), torch.as_tensor(-x / [1.0, 9.0])
    for frame in ("balanced", "whiten", Scale()):
        for scale in (0.7, 1.3):
            result = stein_test(x, -x / [1.0, 9.0], length_scale=scale, frame=frame, random_state=0)
            want = ksd(rows, score, length_scale=scale, frame=frame)
            assert result.discrepancies[0] == pytest.approx(float(want), rel=1e-10)
            assert result.length_scale == scale


def test_the_statistic_is_the_largest_normal_score_and_the_pvalue_its_rank():
    sums = np.array([[3.0, 1.0, 2.0, 5.0], [7.0, 1.0, 2.0, 3.0]])
    scores = _normal_scores(sums)
    assert np.argsort(scores[0]).tolist() == [1, 2, 0, 3]
    result = stein_test(RNG.normal(size=(40, 2)), normal_score, n_resamples=99, random_state=1)
    assert result.statistic == result.kernel_scores.max()
    assert result.pvalue * 100 == pytest.approx(round(result.pvalue * 100))
    assert "pvalue=" in repr(result)


def test_units_columns_and_kinds_of_input_do_not_matter():
    pd = pytest.importorskip("pandas")
    x = RNG.normal(size=(60, 2))
    want = stein_test(x, normal_score, random_state=0)
    moved = stein_test(x * [10.0, 0.1] + 5.0, -x / [10.0, 0.1], random_state=0)
    for got in (
        moved,
        stein_test(pd.DataFrame(x), -x, random_state=0),
        stein_test(x[:, ::-1], -x[:, ::-1], random_state=0),
    ):
        assert got.pvalue == want.pvalue
        np.testing.assert_allclose(got.discrepancies, want.discrepancies, rtol=1e-9)
    several = stein_test(x, normal_score, n_jobs=3, memory_limit=30_000, random_state=0)
    assert several.pvalue == want.pvalue


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_units_near_the_limits_of_numbers_do_not_matter(unit):
    x = np.random.default_rng(7).normal(size=(60, 2))
    want, got = stein_test(x, -x, random_state=0), stein_test(x * unit, -x / unit, random_state=0)
    assert got.pvalue == want.pvalue
    np.testing.assert_allclose(got.discrepancies, want.discrepancies, rtol=1e-9)


@pytest.mark.parametrize("frame", ["balanced", Whiten(ridge=0.0)], ids=["balanced", "whiten"])
def test_affine_maps_do_not_matter(frame):
    rng = np.random.default_rng(8)
    x, A = rng.standard_t(5, size=(90, 3)), rng.normal(size=(3, 3)) * [1.0, 100.0, 1e-3]
    score = -6.0 * x / (5.0 + x * x)
    want = stein_test(x, score, frame=frame, random_state=0)
    got = stein_test(x @ A + 5.0, score @ np.linalg.inv(A).T, frame=frame, random_state=0)
    assert got.pvalue == want.pvalue
    np.testing.assert_allclose(got.length_scales, want.length_scales, rtol=1e-9)
    np.testing.assert_allclose(
        got.discrepancies, want.discrepancies, rtol=0, atol=1e-9 * np.abs(want.discrepancies).max()
    )


def test_coordinates_in_which_rows_and_scores_have_one_covariance():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3))
    of_rows, of_scores = stein_transforms("balanced", x, np.tanh(-x))
    np.testing.assert_allclose(of_rows.T @ of_scores, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.cov((x @ of_rows).T), np.cov((np.tanh(-x) @ of_scores).T), rtol=1e-9, atol=1e-9)


def test_signs_flip_with_the_given_probability():
    signs = _signs(4000, 5, 0.1, 0)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert (signs[:, 0] == 1.0).all()
    assert (signs[1:, 1:] != signs[:-1, 1:]).mean() == pytest.approx(0.1, abs=0.01)


def chain(seed, n=400):
    """Return a chain of correlation 0.9 whose law is the standard normal one."""
    noise, x = np.random.default_rng(seed).normal(size=n), np.zeros((n, 1))
    x[0] = noise[0]
    for t in range(1, n):
        x[t] = 0.9 * x[t - 1] + np.sqrt(1.0 - 0.81) * noise[t]
    return x


def test_a_correct_chain_is_not_rejected_and_its_dependence_is_said():
    few = {"n_resamples": 99, "n_jobs": 1, "random_state": 0}
    with pytest.warns(
        DataWarning, match=r"400 of them say as much as about \d+ independent rows.*approximate with flip = 0\.0"
    ):
        found = [stein_test(chain(seed), normal_score, **few) for seed in range(12)]
    assert sum(one.pvalue <= 0.05 for one in found) <= 4
    assert 10 < np.median([one.independent_rows for one in found]) < 40  # 400 / 19
    assert all(one.flip == pytest.approx(one.independent_rows / 1600) for one in found)
    with pytest.warns(DataWarning, match=r"flip = 0\.5 rejects too often, about 0\.0"):
        as_if = [stein_test(chain(seed), normal_score, flip=0.5, **few) for seed in range(12)]
    assert sum(one.pvalue <= 0.05 for one in as_if) >= 7
    with pytest.warns(DataWarning):
        assert stein_test(1.8 * chain(0, 1500), normal_score, **few).pvalue <= 0.05  # still found to be too wide


def test_a_sorted_table_is_told_both_readings_of_its_order():
    """Rows of three groups, one behind the other, look like a chain: signs that change slowly do not find the groups."""
    x = np.sort(np.concatenate([np.random.default_rng(4).normal(m, 0.3, size=100) for m in (-1.5, 0.0, 1.5)]))[:, None]
    x /= x.std()
    both = r"in order of time, 300 of them say as much as about \d+ .*, and every \d+(st|nd|rd|th) row .*were sorted by a column"
    with pytest.warns(DataWarning, match=both + r", such as a group, shuffle them or give flip = 0\.5\.$"):
        assert stein_test(x, normal_score, random_state=0).pvalue > 0.3
    with pytest.warns(DataWarning, match=both + r", such as a group, flip = 0\.5 is right\.$"):
        given = stein_test(x, normal_score, flip=0.5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shuffled = stein_test(np.random.default_rng(0).permutation(x), normal_score, random_state=0)
    assert max(given.pvalue, shuffled.pvalue) < 0.01
    with pytest.warns(DataWarning, match=both + r", such as a group, p-values are right\.$"):
        stein_test(x, "normal", n_resamples=19, random_state=0)


def test_independent_rows_have_signs_of_their_own_and_no_warning():
    x = np.random.default_rng(5).normal(size=(300, 2)) * [1.0, 1e6]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = stein_test(x, lambda X: -X / [1.0, 1e12], n_resamples=99, random_state=0)
    assert (found.flip, found.independent_rows) == (0.5, 300.0)
    assert found.to_dict()["independent_rows"] == 300.0


def test_samples_from_other_densities_are_found():
    rng = np.random.default_rng(3)
    others = {
        "mean": rng.normal(size=(200, 3)) + [0.5, 0.0, 0.0],
        "spread": rng.normal(size=(200, 3)) * [1.6, 1.0, 1.0],
        "tails": rng.standard_t(3, size=(200, 3)),
    }
    for name, x in others.items():
        assert stein_test(x, normal_score, random_state=0).pvalue < 0.01, name
    assert stein_test(rng.normal(size=(200, 3)), normal_score, random_state=0).pvalue > 0.05


@pytest.mark.slow
def test_the_level_is_kept():
    """A binomial test at 1e-3; the test may be conservative for few rows, so only too many rejections fail."""
    for rows, columns in ((100, 1), (100, 4)):
        found = []
        for run in range(1000):
            x = np.random.default_rng([run, columns]).normal(size=(rows, columns))
            found.append(stein_test(x, normal_score, n_resamples=99, n_jobs=1, random_state=run).pvalue)
        for level in (0.05, 0.1):
            count = int((np.array(found) <= level + 1e-9).sum())
            assert binomtest(count, 1000, level, "greater").pvalue > 1e-3
            assert count > 0.5 * level * 1000


def test_constant_columns_and_equal_rows_have_an_answer():
    x = np.column_stack([RNG.normal(size=50), np.full(50, 3.0)])
    assert 0.0 < stein_test(x, lambda X: np.column_stack([-X[:, 0], np.zeros(50)]), random_state=0).pvalue <= 1.0
    assert 0.0 < stein_test(np.ones((5, 2)), normal_score, random_state=0).pvalue <= 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": lambda X: -X[:, :1]}, r"score has shape \(6, 1\); expected \(6, 2\)"),
        ({"score": "skewed"}, "expected an array, a function"),
        ({"score": np.full((6, 2), np.nan)}, "score is not finite in row 0"),
        ({"kernel": "laplacian"}, "too rough for the Stein test"),
        ({"frame": "smooth"}, "frame = 'smooth' is not affine"),
        ({"length_scale": -1.0}, "length_scale = -1.0: expected 'auto' or a positive number"),
        ({"length_scale": "median"}, "length_scale = 'median': expected"),
        ({"n_resamples": 0}, "n_resamples = 0: expected a whole number"),
        ({"flip": 1.0}, "flip = 1.0: expected a number"),
        ({"flip": "slow"}, "flip = 'slow': expected a number"),
        ({"X": np.zeros((1, 2))}, "only 1 sample; expected at least 2"),
        ({"X": [["a"], ["b"]]}, "something other than numbers"),
        ({"memory_limit": -1}, "memory_limit"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(change, words):
    given = {"X": np.arange(12.0).reshape(6, 2), "score": normal_score, **change}
    with pytest.raises(ValueError, match=words) as caught:
        stein_test(given.pop("X"), given.pop("score"), **given)
    assert isinstance(caught.value, InputError) or "minimum" in words
