"""Functions of isopleth.torch inside torch.compile: the values and gradients that they have outside."""

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
    "kernel_product": lambda x: functions.kernel_product("gaussian", x, Y, V, 1.5),
    "gradient_product": lambda x: functions.gradient_product("gaussian", x, Y, V, 1.5),
    "log_kernel_sum": lambda x: functions.log_kernel_sum("gaussian", x, Y, length_scale=1.5),
    "squared_l2": lambda x: functions.squared_l2(x, Y, 1.5, 0.1),
    "mmd": lambda x: functions.mmd(x, Y),
    "ksd": lambda x: functions.ksd(x, -x),
    "svgd_direction": lambda x: functions.svgd_direction(x, -x),
    "entropy_surrogate": lambda x: functions.entropy_surrogate(x, Stein(alpha=0.1)),
    "EntropyGradient": lambda x: functions.EntropyGradient()(x),
    "mutual_information_surrogate": lambda x: functions.mutual_information_surrogate(x[: len(Y)], Y),
}


def test_every_public_function_is_tried():
    assert set(CALLS) == set(functions.__all__)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("eager", marks=pytest.mark.slow)])  # the first does more
@pytest.mark.parametrize("name", CALLS)
def test_a_compiled_function_has_the_same_values_and_gradients(name, backend):
    def loss(z, scale):
        return (torch.tanh(CALLS[name](scale * torch.sin(z))) ** 2).sum()

    answers = []
    for function in (loss, torch.compile(loss, backend=backend)):
        torch.compiler.reset()
        z, scale = points(300, 0).requires_grad_(), torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
        value = function(z, scale)
        value.backward()
        answers.append((value.detach(), z.grad, scale.grad))
    torch.testing.assert_close(answers[1], answers[0], rtol=1e-9, atol=1e-12)


def test_what_surrounds_a_call_is_compiled():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    torch.compile(lambda x: CALLS["kernel_product"](torch.sin(x)).cos().sum(), backend=backend)(points(300, 0))
    assert len(graphs) == 2  # before and after: no part of the sums themselves


@pytest.mark.parametrize("name", CALLS)
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
