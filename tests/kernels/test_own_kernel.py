"""A kernel that a user writes, through everything that takes one."""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone

from isopleth import KDE, SOSREP, InputError, save
from isopleth.expansion import KernelExpansion
from isopleth.kernels import KERNELS, Kernel, SelfConvolution
from isopleth.operators import GRADIENT, LAPLACIAN, Operator
from isopleth.solvers import fixed_point


@dataclass(frozen=True)
class Power(Kernel):
    """(1 + s)^-power, with a parameter and the minimum of methods."""

    power: float = 1.0
    smoothness = math.inf

    def _product(self, s, order, work):
        if order == 0:
            return (1 + s) ** -self.power
        if order == 1:
            return -self.power * (1 + s) ** (-self.power - 1)
        if order == 2:
            return self.power * (self.power + 1) * s * (1 + s) ** (-self.power - 2)
        return super()._product(s, order, work)


class Cauchy(Kernel):
    """1/(1 + s), with what densities in one dimension need."""

    smoothness = math.inf

    def _product(self, s, order, work):
        return 1 / (1 + s) if order == 0 else -((1 + s) ** -2)

    def _log(self, s, work):
        return -np.log1p(s)

    def _log_slope(self, s, work):
        return -1 / (1 + s)

    def self_convolution(self):
        return SelfConvolution(math.log(math.pi / 2), lambda s, work: 1 / (1 + s / 4))

    def log_integral(self):
        return math.log(math.pi)


class Nothing(Kernel):
    smoothness = 0.5


@dataclass(frozen=True)
class Promising(Kernel):
    """Says that it has what it does not define."""

    smoothness = 0.5
    integrable = square_integrable = True

    def sample_frequencies(self, n, rng):
        return rng.normal(size=(n, self.bound_dim))

    def log_integral(self):
        return 0.0


class Refusing(Nothing):
    """Says that it has no normaliser, as a kernel without a formula for it may."""

    square_integrable = False


class Wavy(Nothing):
    nonnegative = False


X = np.random.default_rng(0).normal(size=(300, 4))


@pytest.mark.parametrize("dim", [1, 4])
def test_operators_take_it(dim):
    k, x, v = Power(power=1.5), X[:, :dim], np.random.default_rng(1).normal(size=300)
    s = cdist(x, x, "sqeuclidean")
    np.testing.assert_allclose(Operator(k, x).matvec(v), (1 + s) ** -1.5 @ v, rtol=1e-9, atol=1e-11)
    slope = -3.0 * (1 + s) ** -2.5 * v
    want = slope.sum(axis=1)[:, None] * x - slope @ x
    np.testing.assert_allclose(Operator(k, x, block=GRADIENT).matvec(v), want, rtol=1e-9, atol=1e-10)
    want = (-3.0 * dim * (1 + s) ** -2.5 + 15.0 * s * (1 + s) ** -3.5) @ v
    np.testing.assert_allclose(Operator(k, x, block=LAPLACIAN).matvec(v), want, rtol=1e-9, atol=1e-10)
    single = Operator(k, x.astype(np.float32)).matvec(v.astype(np.float32))
    assert single.dtype == np.float32


def test_expansions_and_solvers_take_it():
    k, w = Power(power=2.0).bind(4), np.full(300, 1 / 300)
    solution = fixed_point(Operator(k, X), w)
    gram = (1 + cdist(X, X, "sqeuclidean")) ** -2.0
    np.testing.assert_allclose(solution.coefficients * (gram @ solution.coefficients), w, rtol=1e-7)
    f = KernelExpansion(k, X, solution.coefficients)
    np.testing.assert_allclose(f.value(X), w / solution.coefficients, rtol=1e-7)
    np.testing.assert_allclose(f.grad_log_abs(X), f.gradient(X) / f.value(X)[:, None], rtol=1e-12)


def test_a_density_of_it():
    rows = X[:60, :1]
    model = SOSREP(kernel=Cauchy(), length_scale=0.7, frame="scale").fit(rows)
    far = model.score_samples([[1e50], [1e170]])  # f^2 ~ r^-4; the second distance overflows in its square
    assert far[0] == pytest.approx(-4 * 50 * math.log(10), abs=10)
    assert not np.isnan(far).any()
    t = (np.arange(20_000) + 0.5) / 20_000 * math.pi - math.pi / 2  # x = tan t
    p = np.exp(model.score_samples(np.tan(t)[:, None])) / np.cos(t) ** 2
    assert p.sum() * math.pi / 20_000 == pytest.approx(1.0, abs=1e-9)


def test_a_mixture_of_it():
    rows, asked = X[:60, :1], X[60:90, :1]
    want = np.mean(1 / (1 + ((asked - rows.T) / 0.7) ** 2), axis=1) / (math.pi * 0.7)
    got = KDE(kernel=Cauchy(), length_scale=0.7, frame="scale").fit(rows).score_samples(asked)
    np.testing.assert_allclose(got, np.log(want), rtol=1e-12)
    with pytest.raises(InputError, match="does not define log_integral"):
        KDE(kernel=Power(), length_scale=0.7, frame="scale").fit(rows).score_samples(asked)


def test_pickled_cloned_and_compared():
    k = Power(power=2.0)
    assert pickle.loads(pickle.dumps(k)) == k != Power(power=3.0)
    assert clone(SOSREP(kernel=k, frame="scale")).kernel == k
    model = SOSREP(kernel=Cauchy(), frame="scale").fit(X[:60, :1])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(X[:, :1]), model.score_samples(X[:, :1]))
    assert repr(Cauchy(dim=2)) == "Cauchy(dim=2)"


def test_a_model_file_refuses_it_in_one_sentence(tmp_path):
    path = tmp_path / "model.isopleth"
    with pytest.raises(InputError, match=r"holds .*Cauchy, which cannot be loaded again .* a kernel of this library"):
        save(SOSREP(kernel=Cauchy(), frame="scale").fit(X[:60, :1]), path)
    assert not path.exists()


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda k: k(1.0), "does not define phi: let its _product answer for order = 0"),
        (lambda k: k.derivative(1.0, 4), r"s\^2 phi'''': .* order = 4"),
        (lambda k: k.laplacian(1.0), "s phi'': let its _product answer for order = 2"),
        (lambda k: k.log(1.0), "define _log: densities"),
        (lambda k: k.self_convolution(), r"define self_convolution, .*: define it, or use 'gaussian'"),
        (lambda k: k.log_integral(), r"define log_integral: define it, or use 'gaussian'"),
        (lambda k: k.sample(1, RNG), "define sample: define it"),
        (lambda k: k.sample_frequencies(1, RNG), "define sample_frequencies: define it"),
        (lambda k: SOSREP(kernel=Power(), frame="scale").fit(X), "self_convolution"),
        (lambda k: Operator(k, X, block=LAPLACIAN).matvec(X[:, 0]), "order = 2"),
    ],
)
def test_what_it_does_not_define_is_refused_by_name(ask, words):
    with pytest.raises(InputError, match=words) as caught:
        ask(Nothing(dim=4))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["self_convolution", "sample", "sample_frequencies", "log_spectral_density"])
def test_a_remedy_names_only_kernels_that_have_the_method(monkeypatch, name):
    monkeypatch.setitem(KERNELS, "promising", Promising())
    arguments = {"self_convolution": (), "log_spectral_density": (X,)}.get(name, (1, RNG))
    with pytest.raises(InputError, match=f"does not define {name}.* use 'gaussian'") as caught:
        getattr(Nothing(dim=4), name)(*arguments)
    assert "promising" not in str(caught.value)
    assert not Promising(dim=4).has_spectrum


def test_a_kernel_that_says_it_is_not_square_integrable_is_believed():
    with pytest.raises(InputError, match=r"^Refusing\(dim=2\) is not square integrable.* use 'gaussian'"):
        Refusing(dim=2).self_convolution()


def test_a_kernel_that_can_be_negative_says_so():
    for ask in (Wavy(dim=2).log_integral, lambda: Wavy(dim=2).sample(1, RNG), lambda: Wavy(dim=2).log(1.0)):
        with pytest.raises(InputError, match="can be negative"):
            ask()
