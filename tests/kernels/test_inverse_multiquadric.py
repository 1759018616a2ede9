"""The inverse multiquadric kernel: its convolution with itself, and what its heavy tails forbid."""

import math

import array_api_strict
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ellipkm1

from isopleth import SOSREP
from isopleth.expansion import KernelExpansion
from isopleth.kernels import IMQ


@pytest.mark.parametrize("r", [0.0, 0.3, 2.0, 15.0])
def test_self_convolution_by_quadrature(r):
    convolved, k = IMQ(dim=1).self_convolution(), IMQ(dim=1)

    def product(z):
        return k(z * z) * k((z - r) ** 2)

    want = quad(product, -np.inf, 0.0, epsabs=1e-12)[0] + quad(product, r, np.inf, epsabs=1e-12)[0]
    want += quad(product, 0.0, r, epsabs=1e-12)[0] if r else 0.0
    assert math.exp(convolved.log_constant) * convolved(r * r) == pytest.approx(want, abs=1e-9)


def test_self_convolution_is_the_elliptic_integral_at_every_distance():
    convolved = IMQ(dim=1).self_convolution()
    s = np.r_[0.0, np.geomspace(1e-12, 1e300, 2000)]
    want = 4 / np.sqrt(s + 4) * ellipkm1(4 / (s + 4)) / np.pi
    np.testing.assert_allclose(convolved(s), want, rtol=2e-11, atol=1e-17)
    np.testing.assert_allclose(np.asarray(convolved(array_api_strict.asarray(s))), want, rtol=2e-11, atol=1e-17)
    assert convolved(np.inf) == 0.0
    single = convolved(s[s < 1e37].astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, want[s < 1e37], rtol=2e-6, atol=1e-17)


def test_a_square_integrates_in_one_dimension():
    rng = np.random.default_rng(0)
    f = KernelExpansion(IMQ(dim=1), rng.normal(size=(7, 1)), rng.uniform(0.2, 1.0, size=7))
    square = lambda z: float(f.value(np.array([[z]]))[0]) ** 2  # noqa: E731
    want = sum(quad(square, a, b, epsabs=1e-10)[0] for a, b in ((-np.inf, -3.0), (-3.0, 3.0), (3.0, np.inf)))
    assert f.log_square_integral() == pytest.approx(math.log(want), abs=1e-8)


def test_densities_that_do_not_exist_are_refused_with_kernels_that_work():
    assert np.isfinite(
        SOSREP(kernel="imq", frame="scale").fit(np.arange(9.0)[:, None]).score_samples([[2.0], [1e9]])
    ).all()
    with pytest.raises(ValueError, match=r"does not integrate.*'gaussian'"):
        SOSREP(kernel="imq", frame="scale").fit(np.random.default_rng(0).normal(size=(20, 2)))
    for dim in (1, 2, 3):
        for ask in (IMQ(dim=dim).log_integral, lambda: IMQ(dim=dim).sample(3, np.random.default_rng(0))):  # noqa: B023
            with pytest.raises(ValueError, match=r"does not integrate.*'gaussian'"):
                ask()
