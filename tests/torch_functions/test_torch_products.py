"""Differentiable sums against the literal (n, m, d) form under torch's own differentiation."""

from itertools import product

import numpy as np
import pytest

from few_cases import pairs
from isopleth import InputError
from isopleth.kernels import KERNELS, Laplacian, get_kernel
from isopleth.operators import Operator

torch = pytest.importorskip("torch")

from isopleth.torch import gradient_product, kernel_product, log_kernel_sum  # noqa: E402

SMOOTH = [name for name in KERNELS if get_kernel(name).bind(5).smoothness > 1.0]
PLAIN = {
    "gaussian": lambda s: torch.exp(-0.5 * s),
    "laplacian": lambda s: torch.exp(-torch.sqrt(s)),
    "imq": lambda s: 1.0 / torch.sqrt(1.0 + s),
    "matern52": lambda s: (1.0 + (5.0 * s) ** 0.5 + 5.0 * s / 3.0) * torch.exp(-((5.0 * s) ** 0.5)),
}


def points(*shape, seed=0, dtype=torch.float64, grad=True):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return made.requires_grad_() if grad else made


def plain_sum(name, x, y, v, scale):
    s = (((x[:, None, :] - y[None, :, :]) / scale) ** 2).sum(dim=2)
    return PLAIN[name](s) @ v


@pytest.mark.parametrize(("name", "dim", "columns"), pairs(PLAIN, [2, 5], [None, 3]))
def test_value_and_all_gradients_are_those_of_the_literal_form(name, dim, columns):
    x, y = points(30, dim), points(40, dim, seed=1)
    v = points(40, *([] if columns is None else [columns]), seed=2)
    scale = torch.linspace(0.8, 1.5, dim, dtype=torch.float64).requires_grad_()
    inputs = (x, y, v, scale)
    got, want = kernel_product(name, *inputs), plain_sum(name, *inputs)
    assert got.shape == want.shape
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    weights = points(*got.shape, seed=3, grad=False)
    for one, other in zip(
        torch.autograd.grad(got, inputs, weights), torch.autograd.grad(want, inputs, weights), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_agree_with_differences(name):
    dim = 3
    x, y, v = points(4, dim), points(5, dim, seed=1), points(5, seed=2)
    assert torch.autograd.gradcheck(lambda *a: kernel_product(name, *a, 1.3), (x, y, v))
    one_set = lambda x, v: kernel_product(name, x, x, v)  # noqa: E731
    if get_kernel(name).bind(dim).smoothness > 1.0:  # a kink at 0 is where differences say nothing
        assert torch.autograd.gradcheck(one_set, (x, points(4, seed=2)))


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_gradients_agree_with_differences(name):
    x, y, v = points(3, 2), points(4, 2, seed=1), points(4, seed=2)
    scale = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *a: gradient_product(name, *a), (x, y, v, scale))
    assert torch.autograd.gradcheck(lambda x, v: gradient_product(name, x, x, v), (x, points(3, seed=2)))


@pytest.mark.parametrize("dim", [2, 6])
def test_the_gradient_product_is_the_gradient_of_the_product(dim):
    x, y, v = points(20, dim), points(30, dim, seed=1, grad=False), points(30, seed=2, grad=False)
    (want,) = torch.autograd.grad(kernel_product("matern72", x, y, v, 0.7).sum(), x)
    torch.testing.assert_close(gradient_product("matern72", x, y, v, 0.7), want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dim", [2, 6])
def test_where_points_coincide_a_kink_has_gradient_0(dim):
    x = points(3, dim)
    y = torch.cat([x.detach(), x.detach()])
    kernel_product("laplacian", x, y, torch.ones(6, dtype=torch.float64)).sum().backward()
    others = points(3, dim)
    s = ((others[:, None] - others.detach()[None]) ** 2).sum(dim=2)
    apart = ~torch.eye(3, dtype=torch.bool)
    (2.0 * torch.exp(-torch.sqrt(s[apart]))).sum().backward()
    torch.testing.assert_close(x.grad, others.grad, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern52", "imq"])
def test_close_pairs_far_from_the_origin_keep_their_digits(name):
    base = 1e4 * points(20, 6, grad=False)
    x, y = base + 1e-3 * points(20, 6, seed=1, grad=False), base
    x, y, v = x.requires_grad_(), y.clone().requires_grad_(), points(20, seed=2)
    inputs, weights = (x, y, v), points(20, seed=3, grad=False)
    got = torch.autograd.grad(kernel_product(name, *inputs), inputs, weights)
    want = torch.autograd.grad(plain_sum(name, *inputs, 1.0), inputs, weights)
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dim", [2, 6])
def test_float32_stays_float32_and_is_never_nan(name, dim):
    x = points(50, dim, dtype=torch.float32, grad=False)
    x[:10] = x[10:20]
    x[20] = 1e15
    x, v = x.requires_grad_(), points(50, seed=2, dtype=torch.float32)
    out = kernel_product(name, x, x, v)
    out.sum().backward()
    assert out.dtype == x.grad.dtype == v.grad.dtype == torch.float32
    for a in (out, x.grad, v.grad):
        assert bool(torch.isfinite(a).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [2, 6])
def test_one_far_point_leaves_the_digits_of_the_others(dim, dtype):
    x, v = points(50, dim, dtype=dtype, grad=False), torch.ones(50, dtype=dtype)
    others = kernel_product("laplacian", x[1:], x[1:], v[1:])
    x[0] = 1e15
    torch.testing.assert_close(kernel_product("laplacian", x, x, v)[1:], others)


@pytest.mark.parametrize("function", [kernel_product, gradient_product, log_kernel_sum], ids=lambda f: f.__name__)
@pytest.mark.parametrize("apart", [30.0, 1e6])
@pytest.mark.parametrize("dim", [2, 8])
def test_dense_clusters_keep_the_digits_of_float32(dim, apart, function):
    x = (apart * points(2, 1, dim, grad=False) + 1e-2 * points(1, 20, dim, seed=1, grad=False)).reshape(-1, dim).float()
    if apart > 1e3:
        x = torch.cat([x, points(20, dim, dtype=torch.float32, grad=False)])  # the others are nearer to 0 than to these
    found = []
    for dtype in (torch.float64, torch.float32):
        there, v = x.to(dtype, copy=True).requires_grad_(), torch.linspace(-1.0, 2.0, len(x), dtype=dtype)
        out = function("matern52", there, there, v)
        out.pow(2).sum().backward()
        found.append((out.detach().double(), there.grad.double()))
    for want, got in zip(*found, strict=True):
        assert float((got - want).norm() / want.norm()) < 1e-5


@pytest.mark.parametrize(("name", "shape"), [("gaussian", (1, 1)), ("matern32", (1, 4)), ("imq", (5, 1))], ids=str)
def test_few_points_in_few_columns(name, shape):
    n, dim = shape
    x, y = points(n, dim), points(1, dim, seed=1)
    for v in (points(1, seed=2), torch.zeros(1, dtype=torch.float64, requires_grad=True)):
        assert torch.autograd.gradcheck(lambda *a: kernel_product(name, *a, 0.8), (x, y, v))
        assert torch.autograd.gradcheck(lambda *a: gradient_product(name, *a, 0.8), (x, y, v))


@pytest.mark.parametrize("function", [kernel_product, gradient_product, log_kernel_sum], ids=lambda f: f.__name__)
@pytest.mark.parametrize("wanted", range(4))
def test_only_what_wants_a_gradient_gets_one(function, wanted):
    inputs = [
        points(6, 4, grad=False),
        points(7, 4, seed=1, grad=False),
        points(7, seed=2, grad=False),
        torch.tensor(1.2),
    ]
    want = [a.clone().double().requires_grad_() for a in inputs]
    function("matern52", *want).pow(2).sum().backward()
    given = [a.clone().double() for a in inputs]
    given[wanted].requires_grad_()
    function("matern52", *given).pow(2).sum().backward()
    assert [a.grad is not None for a in given] == [i == wanted for i in range(4)]
    torch.testing.assert_close(given[wanted].grad, want[wanted].grad)


@pytest.mark.parametrize("function", [kernel_product, gradient_product, log_kernel_sum], ids=lambda f: f.__name__)
def test_tensors_in_the_middle_of_a_graph_and_in_strange_order_of_memory(function):
    x, y, v = points(4, 6), points(7, 8, seed=1), points(14, seed=2)
    middle = (torch.tanh(x).T, y[:, ::2], v[::2])
    want = function("gaussian", *(a.contiguous() for a in middle))
    grads = torch.autograd.grad(want.pow(2).sum(), (x, y, v), retain_graph=True)
    got = function("gaussian", *middle)
    torch.testing.assert_close(got, want)
    for one, other in zip(torch.autograd.grad(got.pow(2).sum(), (x, y, v)), grads, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dim", [2, 6])
def test_sums_over_no_points_are_0_and_so_are_their_gradients(dim):
    x, y, v = points(3, dim), points(0, dim), points(0)
    for function in (kernel_product, gradient_product):
        out = function("gaussian", x, y, v)
        got = torch.autograd.grad(out.sum(), (x, y, v))
        assert [tuple(a.shape) for a in got] == [(3, dim), (0, dim), (0,)]
        assert bool((out == 0.0).all() and (got[0] == 0.0).all())


def test_the_answer_is_that_of_the_operator():
    x, v = points(300, 4, grad=False), points(300, seed=1, grad=False)
    want = Operator(Laplacian(), x.numpy()).matvec(v.numpy())
    np.testing.assert_array_equal(kernel_product(Laplacian(), x, x, v).numpy(), want)


def test_one_set_of_points_is_one_in_the_derivatives_too(monkeypatch):
    seen = []
    made = Operator.__init__

    def init(self, kernel, x, y=None, **given):
        seen.append(y is None)
        made(self, kernel, x, y, **given)

    monkeypatch.setattr(Operator, "__init__", init)
    x, v = points(20, 4, grad=False), points(20, seed=1)
    kernel_product("gaussian", x, x, v).sum().backward()
    assert seen == [True, True]
    kernel_product("gaussian", x, x.clone(), v).sum().backward()
    assert seen[2:] == [False, False]


SECOND_REFUSED = {
    "kernel_product": lambda x, v: kernel_product("laplacian", x, x, v),
    "gradient_product": lambda x, v: gradient_product("gaussian", x, x, v),
    "log_kernel_sum": lambda x, v: log_kernel_sum("gaussian", x, x, v),
}


@pytest.mark.parametrize("name", SECOND_REFUSED)
def test_second_derivatives_that_do_not_exist_are_refused_and_first_ones_may_keep_a_graph(name):
    function = SECOND_REFUSED[name]
    x, v = points(3, 2), torch.ones(3, dtype=torch.float64)
    (slope,) = torch.autograd.grad(function(x, v).sum(), x, create_graph=True)
    (plain,) = torch.autograd.grad(function(x, v).sum(), x)
    torch.testing.assert_close(slope, plain)
    with pytest.raises(InputError, match="no second derivatives"):
        (slope**2).sum().backward()


TWICE = [("gaussian", 2), ("matern52", None), ("sdo", None)]


@pytest.mark.parametrize(
    ("name", "columns"),
    [pytest.param(*case, marks=[] if case in TWICE else pytest.mark.slow) for case in product(SMOOTH, [None, 2])],
)
def test_second_derivatives_of_products_agree_with_differences(name, columns):
    x, y, v = points(3, 2), points(4, 2, seed=1), points(4, *([] if columns is None else [columns]), seed=2)
    scale = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda *a: kernel_product(name, *a), (x, y, v, scale))
    assert torch.autograd.gradgradcheck(lambda x: kernel_product(name, x, x, v[:3]), (x,))


def test_other_transforms_are_refused_by_name():
    x, v = points(6, 3, grad=False), points(6, seed=2, grad=False)

    def loss(x):
        return kernel_product("gaussian", x, x, v).sum()

    with pytest.raises(InputError, match=r"torch\.func\.vmap"):
        torch.func.jacrev(lambda x: kernel_product("gaussian", x, x, v))(x)
    with pytest.raises(InputError, match=r"torch\.func\.jvp"):
        torch.func.jvp(loss, (x,), (x,))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": np.zeros((3, 2))}, "x is of type ndarray; expected a tensor"),
        ({"x": torch.zeros(3, 2, dtype=torch.int64)}, "expected torch.float32, float64"),
        ({"x": torch.zeros(3, 2).to_sparse()}, "x is stored as torch.sparse_coo"),
        ({"length_scale": "median"}, "length_scale = 'median': expected a number, or one a column"),
        ({"x": torch.zeros(3)}, r"x has shape \(3,\)"),
        ({"y": torch.zeros(4, 3)}, "x has 2 columns and y has 3"),
        (
            {"y": torch.zeros(4, 2, dtype=torch.float64)},
            "y is of type torch.float64 on cpu and x of type torch.float32",
        ),
        ({"v": torch.zeros(5)}, r"v has shape \(5,\); expected \(4,\) or \(4, k\) as y has rows"),
        ({"length_scale": 0.0}, "length_scale = 0.0: expected positive"),
        ({"length_scale": [1.0, 2.0, 3.0]}, "expected one number, or 2 as x has columns"),
        ({"kernel": "box"}, "kernel"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(change, words):
    given = {"kernel": "gaussian", "x": torch.zeros(3, 2), "y": torch.zeros(4, 2), "v": torch.zeros(4), **change}
    with pytest.raises(InputError, match=words):
        kernel_product(**given)


def test_a_rough_kernel_has_no_gradient_product():
    with pytest.raises(InputError, match="no second derivatives at 0"):
        gradient_product("laplacian", torch.zeros(3, 2), torch.zeros(4, 2), torch.zeros(4))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_the_same_numbers_come_back_to_the_gpu():
    inputs = points(300, 6), points(400, 6, seed=1), points(400, seed=2)
    there = [a.detach().cuda().requires_grad_() for a in inputs]
    out, moved = kernel_product("matern52", *inputs), kernel_product("matern52", *there)
    assert moved.device == there[0].device
    out.sum().backward()
    moved.sum().backward()
    torch.testing.assert_close(moved.cpu(), out, rtol=1e-10, atol=1e-11)
    for one, other in zip(there, inputs, strict=True):
        torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-10, atol=1e-11)
