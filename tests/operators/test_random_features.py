"""Random features: what they approximate, and sums over rows by blocks."""

import array_api_strict
import numpy as np
import pytest

from isopleth.core.budget import Budget
from isopleth.kernels import KERNELS, SDO, Sobolev
from isopleth.operators.features import RandomFeatures

CASES = [*KERNELS.values(), SDO(order=4), Sobolev([0.5, 2.0, 1.0])]


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def draw(kernel, size, seed=1, **options):
    return RandomFeatures.draw(kernel, size // 2, np.random.default_rng(seed), **options)


@pytest.mark.parametrize("kernel", CASES, ids=repr)
def test_they_are_the_kernel_but_for_an_error_of_one_over_the_root_of_their_number(kernel):
    d = 3
    kernel = kernel.bind(d)
    x = rows(12, d)
    s = ((x[:, None] - x) ** 2).sum(axis=2)[np.triu_indices(12, 1)]
    variance = 0.5 + 0.5 * kernel(4.0 * s) - kernel(s) ** 2  # of the cosine of one wave vector
    for size in (200, 3200):
        errors = []
        for seed in range(40):
            phi = draw(kernel, size, seed)(x)
            errors.append((phi @ phi.T)[np.triu_indices(12, 1)] - kernel(s))
        ratio = np.mean(np.square(errors)) / (variance.mean() / (size / 2))
        assert 0.6 < ratio < 1.6


def test_every_row_has_norm_one_and_a_shift_changes_no_product():
    features = draw(KERNELS["matern32"].bind(2), 60)
    x = rows(9, 2)
    phi, shifted = features(x), features(x + [3.0, -1.0])
    np.testing.assert_allclose(np.sum(phi**2, axis=1), 1.0)
    np.testing.assert_allclose(shifted @ shifted.T, phi @ phi.T, atol=1e-12)


def test_value_gradient_and_laplacian():
    features = draw(KERNELS["gaussian"].bind(3), 40)
    w, x, h = rows(40, 1, 2)[:, 0], rows(7, 3, 3), 1e-4
    np.testing.assert_allclose(features.value(x, w), features(x) @ w)
    up = np.stack([features.value(x + h * e, w) for e in np.eye(3)])
    down = np.stack([features.value(x - h * e, w) for e in np.eye(3)])
    np.testing.assert_allclose(features.gradient(x, w), ((up - down) / (2 * h)).T, atol=1e-7)
    second = np.sum(up + down - 2.0 * features.value(x, w), axis=0) / h**2
    np.testing.assert_allclose(features.laplacian(x, w), second, atol=1e-5)


def test_far_from_everything_a_function_of_norm_one_is_noise_of_the_stated_size():
    features = draw(KERNELS["gaussian"].bind(2), 500)
    w = features(rows(400, 2)).mean(axis=0)
    far = 1e4 * rows(4000, 2, 5)
    size = np.sqrt(np.mean(features.value(far, w / np.linalg.norm(w)) ** 2))
    assert size == pytest.approx(features.noise, rel=0.1)


def test_blocks_and_threads_change_nothing():
    x, w = rows(500, 2), rows(20, 1, 2)[:, 0]
    kernel = KERNELS["laplacian"].bind(2)
    whole, small = draw(kernel, 20, budget=Budget(n_jobs=1)), draw(kernel, 20, budget=Budget(1.0, 2))
    assert len(whole.blocks(500, whole.budget.memory)) == 1
    assert [part.stop - part.start for part in small.blocks(500, 1.0)] == [16] * 31 + [4]
    for ask in ("value", "gradient", "laplacian"):
        np.testing.assert_allclose(getattr(small, ask)(x, w), getattr(whole, ask)(x, w), rtol=1e-12, atol=1e-12)
    assert small.value(x[:0], w).shape == (0,)
    assert small.gradient(x[:0], w).shape == (0, 2)


def test_memory_of_a_block_is_within_the_limit():
    features = RandomFeatures(np.zeros((500, 2)), Budget(n_jobs=2))
    longest = max(part.stop - part.start for part in features.blocks(10**6, 2**24))
    assert 2 * longest * 1000 * 8 * 4 <= 2**24


def test_another_array_library():
    xp = array_api_strict
    features = draw(KERNELS["gaussian"].bind(2), 10)
    x, w = rows(5, 2), rows(10, 1, 2)[:, 0]
    strict = RandomFeatures(xp.asarray(features.frequencies), Budget(n_jobs=1))
    for ask in ("value", "gradient", "laplacian"):
        got = getattr(strict, ask)(xp.asarray(x), xp.asarray(w))
        np.testing.assert_allclose(np.asarray(got), getattr(features, ask)(x, w), atol=1e-14)


def test_single_precision_stays():
    features = draw(KERNELS["gaussian"].bind(2), 10)
    single = RandomFeatures(features.frequencies.astype(np.float32))
    phi = single(rows(5, 2).astype(np.float32))
    assert phi.dtype == np.float32
    np.testing.assert_allclose(phi, features(rows(5, 2)), atol=1e-5)
