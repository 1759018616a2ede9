"""Sums stay within the memory that they are given."""

import tracemalloc

import numpy as np
import pytest

from isopleth import SOSREP
from isopleth.core.budget import Budget
from isopleth.kernels import SDO, Gaussian, Laplacian
from isopleth.operators import GRADIENT, LAPLACIAN, VALUE, Operator
from isopleth.operators.tiles import HOST_TILE, SCRATCH_TILES, scratch, tile_within


def peak(run):
    """Most bytes held at once by `run`, beside what was there before."""
    run()  # caches and thread pools are not what is measured
    tracemalloc.start()
    run()
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return top


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), SDO()], ids=repr)
@pytest.mark.parametrize("block", [VALUE, GRADIENT, LAPLACIAN], ids=repr)
def test_a_streamed_product_takes_little_beside_its_inputs(kernel, block):
    x, v = np.random.default_rng(0).normal(size=(3000, 16)), np.ones(3000)
    assert (
        peak(lambda: Operator(kernel, x, block=block, budget=Budget(n_jobs=2)).matvec(v)) < 64 * 2**20
    )  # the matrix would be 69 MiB


@pytest.mark.parametrize("limit", [1e6, 4e6, 16e6])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), SDO()], ids=repr)
def test_scratch_follows_the_limit(kernel, limit):
    x, v = np.random.default_rng(0).normal(size=(1500, 5)), np.ones(1500)
    inputs = 1500 * 8 * 40  # points with both factors of their distances, one of them on its way, and a few vectors
    assert peak(lambda: Operator(kernel, x, budget=Budget(limit, 2)).store().matvec(v)) < limit + inputs


@pytest.mark.parametrize("numbers", [0, 100, 2000, 1e5])
def test_a_tile_has_one_pair_at_least_and_otherwise_fits(numbers):
    tile = tile_within(numbers, 3, HOST_TILE, SCRATCH_TILES)
    assert tile == (1, 1) or scratch(tile, 3, SCRATCH_TILES) <= numbers


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_matrix_is_kept_if_it_fits_beside_the_scratch_of_every_thread(n_jobs):
    x = np.random.default_rng(0).normal(size=(1500, 5))
    needed = 8 * (1500**2 + n_jobs * scratch(HOST_TILE, 5, SCRATCH_TILES))
    for limit, stored in [(needed, True), (needed - 1, False)]:
        assert Operator(Gaussian(), x, budget=Budget(limit, n_jobs)).store().stored is stored


@pytest.mark.parametrize("block", [VALUE, GRADIENT], ids=repr)
def test_clusters_of_near_pairs_take_no_more(block):
    x = np.random.default_rng(0).normal(size=(1000, 100)) / 10
    x[500:] += 1e4
    v = np.ones(1000)
    assert peak(lambda: Operator(Gaussian(), x, block=block, budget=Budget(2e7, 2)).matvec(v)) < 2e7 + 1000 * 8 * 600


def test_a_fit_keeps_the_matrix_only_if_it_fits():
    X = np.random.default_rng(0).normal(size=(2000, 4))
    roomy, tight = (
        peak(lambda: SOSREP(frame="scale").fit(X)),
        peak(lambda: SOSREP(memory_limit=8e6, frame="scale").fit(X)),
    )
    assert roomy > 2000**2 * 8
    assert tight < 8e6 + 2e6
