"""The differentiable logarithm of a sum against torch's own, and where that fails."""

import pytest

from few_cases import pairs
from isopleth import InputError

torch = pytest.importorskip("torch")

from isopleth.torch import log_kernel_sum  # noqa: E402

LOGS = {"gaussian": lambda s: -0.5 * s, "laplacian": lambda s: -torch.sqrt(s)}


def points(*shape, seed=0, shift=0.0):
    made = shift + torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.requires_grad_()


def plain(name, x, y, w, scale):
    s = (((x[:, None, :] - y[None, :, :]) / scale) ** 2).sum(dim=2)
    return torch.logsumexp(LOGS[name](s) + w, dim=1)


@pytest.mark.parametrize(("name", "dim", "shift"), pairs(LOGS, [1, 2, 5], [0.0, 300.0]))
def test_value_and_gradients_are_those_of_logsumexp_also_where_the_sum_underflows(name, dim, shift):
    x, y, w = points(30, dim, shift=shift), points(40, dim, seed=1), points(40, seed=2)
    inputs = (x, y, w, torch.linspace(0.1, 0.3, dim, dtype=torch.float64).requires_grad_())
    got, want = log_kernel_sum(name, *inputs), plain(name, *inputs)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    grad = torch.linspace(-1.0, 2.0, 30, dtype=torch.float64)
    for one, other in zip(torch.autograd.grad(got, inputs, grad), torch.autograd.grad(want, inputs, grad), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10 * float(other.detach().abs().max()))


@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern32", "matern52", "matern72"])
def test_gradients_agree_with_differences(name):
    inputs = points(4, 3), points(5, 3, seed=1), points(5, seed=2)
    assert torch.autograd.gradcheck(lambda *a: log_kernel_sum(name, *a, 0.6), inputs)


def test_the_shares_of_the_weights_add_up_to_one():
    x, y, w = points(7, 4), points(300, 4, seed=1), points(300, seed=2)
    log_kernel_sum("gaussian", x, y, w).sum().backward()
    assert float(w.grad.sum()) == pytest.approx(7.0, rel=1e-13)


def test_no_weights_are_weights_of_one():
    x, y = points(6, 1), points(9, 1, seed=1)
    want = plain("gaussian", x, y, torch.zeros(9, dtype=torch.float64), 1.0)
    torch.testing.assert_close(log_kernel_sum("gaussian", x, y), want)


def test_weights_of_zero_count_for_nothing():
    x, y = points(6, 4), points(9, 4, seed=1)
    w = torch.zeros(9, dtype=torch.float64)
    w[4:] = -torch.inf
    w.requires_grad_()
    out = log_kernel_sum("gaussian", x, y, w)
    torch.testing.assert_close(out, log_kernel_sum("gaussian", x, y[:4]))
    out.sum().backward()
    assert bool((w.grad[4:] == 0.0).all())
    nothing = log_kernel_sum("gaussian", x, y, torch.full((9,), -torch.inf, dtype=torch.float64))
    assert bool((nothing == -torch.inf).all())
    (slope,) = torch.autograd.grad(nothing.sum(), x)
    assert bool((slope == 0.0).all())


@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern52"])
@pytest.mark.parametrize("dim", [2, 6])
def test_float32_is_never_nan(name, dim):
    x = torch.randn(20, dim, generator=torch.Generator().manual_seed(0))
    x[0] = 1e15
    y = torch.cat([x[1:].clone(), x[5:9].clone()])
    w = torch.zeros(len(y))
    for a in (x, y, w):
        a.requires_grad_()
    out = log_kernel_sum(name, x, y, w, length_scale=0.01)
    out.sum().backward()
    assert out.dtype == torch.float32
    for a in (out, x.grad, y.grad):
        assert not bool(torch.isnan(a).any())
    assert float(w.grad.sum()) == pytest.approx(20.0, rel=1e-5)  # shares add up to 1 for the far row too


def test_float32_rows_far_from_all_points_have_the_gradient_of_float64():
    x, y, w = points(20, 5).detach() + 2000.0, points(200, 5, seed=1).detach(), points(200, seed=2).detach()
    slopes = []
    for dtype in (torch.float64, torch.float32):
        there = x.clone().to(dtype).requires_grad_()
        log_kernel_sum("laplacian", there, 1e-3 * y.to(dtype), w.to(dtype), 0.01).sum().backward()
        slopes.append(there.grad.double())
    torch.testing.assert_close(slopes[1], slopes[0], rtol=1e-3, atol=0.0)


def test_a_kernel_without_a_logarithm_is_refused():
    with pytest.raises(InputError, match="has no logarithm"):
        log_kernel_sum("sdo", torch.zeros(3, 2), torch.zeros(4, 2))
