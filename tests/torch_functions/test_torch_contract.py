"""What every function of isopleth.torch does: in torch.compile, under torch.func, and for numbers of few digits."""

import inspect
import warnings

import pytest

from isopleth.score import Stein

torch = pytest.importorskip("torch")

import isopleth.torch as functions  # noqa: E402


def points(n, seed, d=5):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


Y, V = points(200, 1), points(200, 2, 1)[:, 0]
CALLS = {
    "kernel_product": lambda x, y, v: functions.kernel_product("gaussian", x, y, v, 1.5),
    "gradient_product": lambda x, y, v: functions.gradient_product("gaussian", x, y, v, 1.5),
    "log_kernel_sum": lambda x, y, v: functions.log_kernel_sum("gaussian", x, y, length_scale=1.5),
    "squared_l2": lambda x, y, v: functions.squared_l2(x, y, 1.5, 0.1),
    "mmd": lambda x, y, v: functions.mmd(x, y),
    "ksd": lambda x, y, v: functions.ksd(x, -x),
    "svgd_direction": lambda x, y, v: functions.svgd_direction(x, -x),
    "entropy_surrogate": lambda x, y, v: functions.entropy_surrogate(x, Stein(alpha=0.1)),
    "EntropyGradient": lambda x, y, v: functions.EntropyGradient()(x),
    "mutual_information_surrogate": lambda x, y, v: functions.mutual_information_surrogate(x[: len(y)], y),
}
EACH = pytest.mark.parametrize("name", CALLS)


def test_every_public_function_is_tried():
    assert set(CALLS) == set(functions.__all__)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("eager", marks=pytest.mark.slow)])  # the first does more
@EACH
def test_a_compiled_function_has_the_same_values_and_gradients(name, backend):
    def loss(z, scale):
        return (torch.tanh(CALLS[name](scale * torch.sin(z), Y, V)) ** 2).sum()

    answers = []
    for function in (loss, torch.compile(loss, backend=backend)):
        torch.compiler.reset()
        z, scale = points(300, 0).requires_grad_(), torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
        value = function(z, scale)
        value.backward()
        answers.append((value.detach(), z.grad, scale.grad))
    torch.testing.assert_close(answers[1], answers[0], rtol=1e-9, atol=1e-12)


@EACH
def test_gradients_of_torch_func_are_those_of_autograd(name):
    def loss(x, y):
        return CALLS[name](x, y, V).square().sum()

    x, y = points(220, 0).requires_grad_(), Y.clone().requires_grad_()
    loss(x, y).backward()
    for argument, there in ((0, x.grad), (1, y.grad)):
        if there is not None:
            torch.testing.assert_close(torch.func.grad(loss, argument)(x.detach(), Y), there)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@EACH
def test_types_come_back_as_they_went_in(name, dtype):
    x = points(210, 0)
    short = [a.to(dtype).requires_grad_() for a in (x, Y + x[:200], V)]  # information that is not near 0
    wide = [a.detach().double().requires_grad_() for a in short]
    got, want = CALLS[name](*short), CALLS[name](*wide)
    got.float().sum().backward()
    want.sum().backward()
    assert got.dtype == dtype
    if not name.endswith("surrogate"):  # whose value is a difference of sums, and means nothing
        torch.testing.assert_close(got.double(), want, rtol=0.02, atol=2e-3 * want.detach().abs().max().item())
    for one, other in zip(short, wide, strict=True):
        if other.grad is not None:
            assert one.grad.dtype == dtype
            torch.testing.assert_close(
                one.grad.double(), other.grad, rtol=0.05, atol=0.02 * other.grad.abs().max().item()
            )


def test_what_surrounds_a_call_is_compiled():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    torch.compile(lambda x: CALLS["kernel_product"](torch.sin(x), Y, V).cos().sum(), backend=backend)(points(300, 0))
    assert len(graphs) == 2  # before and after: no part of the sums themselves


@EACH
def test_signature_and_documentation_remain(name):
    function = getattr(functions, name)
    assert function.__name__ == name
    called = function.__call__ if isinstance(function, type) else function
    assert "x" in inspect.signature(called).parameters
    assert "Examples" in function.__doc__


@pytest.mark.parametrize("name", ["mmd", "squared_l2", "svgd_direction"])
def test_a_function_can_be_compiled_itself_without_a_warning(name):
    torch.compiler.reset()
    x = points(80, 0)
    other = -x if name == "svgd_direction" else Y
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = torch.compile(getattr(functions, name), backend="eager")(x, other)
    torch.testing.assert_close(found, getattr(functions, name)(x, other))
