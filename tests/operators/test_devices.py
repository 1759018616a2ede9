"""Operators of tensors: NumPy's own bits on the processor, and the way of other devices, taken there for the test."""

from contextlib import ExitStack

import array_api_strict
import numpy as np
import pytest

from few_cases import pairs
from isopleth import InputError
from isopleth.core import arrays
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.kernels import KERNELS, SDO, Gaussian, Laplacian, radial_table
from isopleth.operators import (
    BILAPLACIAN,
    CURL_FREE,
    FLUX,
    FLUX_OF_LAPLACIAN,
    GRADIENT,
    GRADIENT_OF_LAPLACIAN,
    LAPLACIAN,
    LOG_GRADIENT,
    LOG_LAPLACIAN,
    LOG_SUM,
    SLOPE,
    VALUE,
    Operator,
    tiles,
)
from isopleth.operators.tiles import _one_ahead
from isopleth.operators.vector_blocks import PairedGradient, PairedHessian, PairedLogGradient

torch = pytest.importorskip("torch")

OF_NUMBERS = [VALUE, LAPLACIAN, SLOPE, GRADIENT, GRADIENT_OF_LAPLACIAN, BILAPLACIAN]
OF_VECTORS = [FLUX, FLUX_OF_LAPLACIAN, CURL_FREE]
LOGARITHMIC = [LOG_SUM, LOG_GRADIENT, LOG_LAPLACIAN]


@pytest.fixture
def elsewhere(monkeypatch):
    """Tensors in the processor's memory are treated as if they lay elsewhere, and tiles are small enough to be many."""
    for module in (arrays, tiles):
        monkeypatch.setattr(module, "on_processor", lambda x: isinstance(x, np.ndarray))
    monkeypatch.setattr(tiles, "DEVICE_TILE", (64, 96))


def problem(dim):
    """Points of which some coincide and some nearly do, and coefficients."""
    rng = np.random.default_rng(dim)
    x, y = rng.normal(size=(200, dim)), rng.normal(size=(300, dim))
    y[:30] = x[:30]
    y[30:60] = x[30:60] + 1e-9
    return x, y, rng.normal(size=(300, dim))


def coefficients(block, v):
    if block in OF_VECTORS:
        return v
    return -np.abs(v[:, 0]) if block in LOGARITHMIC else v[:, 0]


@pytest.mark.parametrize(
    ("block", "dim", "kernel"),
    pairs([*OF_NUMBERS, *OF_VECTORS, *LOGARITHMIC], [2, 7], [Gaussian(), KERNELS["matern72"]]),
    ids=repr,
)
def test_the_way_of_a_device_gives_the_same_sums(elsewhere, kernel, block, dim):
    x, y, v = problem(dim)
    if block is LOG_GRADIENT:
        y[:60] += 0.5  # its slopes are for rows far from all points
    v = coefficients(block, v)
    want = Operator(kernel, x, y, block=block).matvec(v)
    got = Operator(kernel, *map(torch.from_numpy, (x, y)), block=block).matvec(torch.from_numpy(v))
    assert isinstance(got, torch.Tensor)
    # Laplacians of Laplacians take terms of 1/s apart, which torch rounds another way.
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-9 * np.abs(want[np.isfinite(want)]).max())


@pytest.mark.parametrize("block", [PairedGradient, PairedHessian, PairedLogGradient])
@pytest.mark.parametrize("dim", [2, 7])
def test_sums_with_coefficients_of_rows_take_that_way_too(elsewhere, block, dim):
    x, y, v = problem(dim)
    given = {PairedGradient: (x + 1.0, v), PairedHessian: (x + 1.0, v[:, 0]), PairedLogGradient: (x[:, :1], v[:, :2])}
    rows, v = given[block]
    want = Operator(KERNELS["matern52"], x, y, block=block(rows)).matvec(v)
    points = (torch.from_numpy(a) for a in (x, y))
    got = Operator(KERNELS["matern52"], *points, block=block(torch.from_numpy(rows))).matvec(torch.from_numpy(v))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("block", [VALUE, GRADIENT], ids=repr)
def test_every_kernel_takes_that_way_in_halves_and_stored(elsewhere, name, block):
    x, v = problem(5)[0], np.linspace(-1.0, 1.0, 200)
    want = Operator(KERNELS[name], x, block=block).matvec(v)
    op = Operator(KERNELS[name], torch.from_numpy(x), block=block)
    for got in (op, op.store()):
        np.testing.assert_allclose(got.matvec(torch.from_numpy(v)).numpy(), want, rtol=0, atol=1e-11)
    assert op.stored == (block is VALUE)


@pytest.mark.parametrize("block", [VALUE, GRADIENT], ids=repr)
def test_float32_takes_that_way_and_shortened_products_stay_outside(elsewhere, block):
    x, v = problem(5)[0].astype(np.float32), np.ones(200, dtype=np.float32)
    torch.set_float32_matmul_precision("high")
    try:
        got = Operator(Laplacian(), torch.from_numpy(x), block=block).matvec(torch.from_numpy(v))
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got.numpy(), Operator(Laplacian(), x, block=block).matvec(v), atol=2e-4)


@pytest.fixture
def short_factors():
    """Settings of a program, and the settings of torch while a kernel is evaluated."""
    seen = []

    class Asking(Laplacian):
        def _product(self, s, order, work):
            seen.append(torch.backends.cuda.matmul.allow_tf32 or torch.is_autocast_enabled(s.device.type))
            return super()._product(s, order, work)

    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    yield Asking(), seen
    torch.set_float32_matmul_precision("highest")
    matmul.fp32_precision = before


def test_shortened_products_stay_outside_by_either_name_of_their_setting(elsewhere, short_factors):
    kernel, seen = short_factors
    x, v = torch.from_numpy(problem(5)[0].astype(np.float32)), torch.ones(200)
    torch.set_float32_matmul_precision("high")
    Operator(kernel, x).matvec(v)
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    Operator(kernel, x).matvec(v)
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    assert len(seen) > 1
    assert not any(seen)


def test_what_two_threads_do_at_once_leaves_the_setting_as_it_was(short_factors):
    torch.set_float32_matmul_precision("high")
    first, second = ExitStack(), ExitStack()
    first.enter_context(arrays._LONG_FACTORS)
    second.enter_context(arrays._LONG_FACTORS)
    first.close()
    assert torch.get_float32_matmul_precision() == "highest"
    second.close()
    assert torch.get_float32_matmul_precision() == "high"


@pytest.mark.parametrize("store", [False, True])
def test_automatic_half_precision_stays_outside_too(elsewhere, store):
    x, v = torch.from_numpy(problem(5)[0].astype(np.float32)), torch.ones(200)
    want = Operator(Laplacian(), x).matvec(v)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        op = Operator(Laplacian(), x)
        got = (op.store() if store else op).matvec(v)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_the_default_device_of_a_program_is_not_where_points_go(elsewhere):
    x, v = torch.from_numpy(problem(5)[0]), torch.ones(200, dtype=torch.float64)
    torch.set_default_device("meta")
    try:
        got = Operator(KERNELS["matern52"], x).matvec(v)
    finally:
        torch.set_default_device(None)
    assert got.device == x.device


@pytest.mark.parametrize("against", ["itself", "others"])
def test_exponents_made_by_the_product_give_the_very_bits_of_distances(elsewhere, against):
    class Derived(Gaussian):
        """The same function, but who knows."""

    x, y, v = map(torch.from_numpy, problem(6))
    y, v = (None, v[:200, 0]) if against == "itself" else (y, v[:, 0])
    assert VALUE.exponent(Gaussian()) == -0.5
    assert VALUE.exponent(Derived()) is None
    torch.testing.assert_close(
        Operator(Gaussian(), x, y).matvec(v), Operator(Derived(), x, y).matvec(v), rtol=0.0, atol=0.0
    )


def test_a_table_is_read_in_passes(elsewhere, monkeypatch):
    x, v = torch.from_numpy(problem(5)[0]), torch.ones(200, dtype=torch.float64)
    want = Operator(SDO(), x).matvec(v)
    monkeypatch.setattr(radial_table, "_LONG_CHUNK", 1000)  # a tile has more
    torch.testing.assert_close(Operator(SDO(), x).matvec(v), want, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("block", [VALUE, GRADIENT, LOG_SUM], ids=repr)
def test_tensors_of_the_processor_get_the_very_bits_of_numpy(block):
    x, y, v = problem(5)
    v = coefficients(block, v)
    got = Operator(Gaussian(), *map(torch.from_numpy, (x, y)), block=block).matvec(torch.from_numpy(v))
    assert isinstance(got, torch.Tensor)
    np.testing.assert_array_equal(got.numpy(), Operator(Gaussian(), x, y, block=block).matvec(v))


def test_the_matrix_and_its_parts_are_tensors_too():
    x = torch.from_numpy(problem(5)[0])
    op = Operator(Gaussian(), x).store()
    assert isinstance(op.dense(), torch.Tensor)
    torch.testing.assert_close(op.dense() @ x[:, 0], op.matvec(x[:, 0]))
    part = op.part(slice(0, 50), slice(50, 200), Budget(1e6))
    torch.testing.assert_close(part.matvec(x[50:, 0]), op.dense()[:50, 50:] @ x[50:, 0])


@pytest.mark.parametrize("name", ["x", "y", "v"])
def test_tensors_that_want_a_gradient_are_refused(name):
    given = {"x": torch.zeros(3, 2), "y": torch.zeros(4, 2), "v": torch.zeros(4)}
    given[name].requires_grad_()
    with pytest.raises(InputError, match=f"{name} requires a gradient"):
        Operator(Gaussian(), given["x"], given["y"]).matvec(given["v"])


@pytest.mark.parametrize("block", [VALUE, GRADIENT, LOG_GRADIENT, CURL_FREE], ids=repr)
@pytest.mark.parametrize("dim", [2, 5])
def test_nothing_is_made_on_another_device_than_that_of_the_points(block, dim):
    x, y, v = problem(dim)
    y[:60] += 0.5
    there = [
        array_api_strict.asarray(a, device=array_api_strict.Device("device1")) for a in (x, y, coefficients(block, v))
    ]
    got = Operator(Gaussian(), *there[:2], block=block).matvec(there[2])
    assert got.device == there[0].device


def test_tiles_of_a_device_are_large_within_the_limit():
    x = torch.empty(100_000, 64, device="meta")
    usual = tiles.Layout.of(x, (100_000, 100_000), Budget(n_jobs=8))
    assert usual.workers == 1
    assert 64e6 < 4 * usual.tile[0] * usual.tile[1] < 512e6  # bytes
    light = tiles.Layout.of(x, (100_000, 100_000), Budget(n_jobs=8), VALUE.light)
    assert light.tile == tiles.DEVICE_TILE
    assert 4 * light.numbers <= DEFAULT_MEMORY_LIMIT
    assert light.numbers > (tiles.LIGHT_TILES + 1) * light.tile[0] * light.tile[1]  # one tile is ahead
    small = tiles.Layout.of(x, (100_000, 100_000), Budget(1e7, 8))
    assert 4 * small.numbers <= 1e7


def test_one_ahead_begins_the_next_before_it_gives_one():
    begun = []
    given = []
    for item in _one_ahead(begun.append(i) or i for i in range(4)):
        given.append((item, len(begun)))
    assert given == [(0, 2), (1, 3), (2, 4), (3, 4)]
    assert list(_one_ahead(iter([]))) == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("truth", [True, False])
def test_a_truth_value_of_a_gpu_comes_later(truth):
    flag = torch.tensor(truth, device="cuda")
    assert arrays.later(flag & flag)() is truth
