"""The Matern function of every order that a self-convolution needs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, kve

from isopleth.kernels import Laplacian, Workspace
from isopleth.kernels.matern import matern_function, matern_table


@pytest.mark.parametrize("mu", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.5, 12.0, 30.5])
def test_is_the_definition(mu):
    u = np.geomspace(0.1, 60.0, 40)
    with np.errstate(over="ignore"):
        expected = np.exp((1 - mu) * np.log(2) - gammaln(mu) + mu * np.log(u) - u) * kve(mu, u)
    np.testing.assert_allclose(matern_function(u, mu), expected, rtol=1e-11)


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 101, 1000])
def test_table_in_every_dimension(dim):
    mu = 1 + 0.5 * dim
    s = np.r_[np.geomspace(1e-8, 1e6, 4000), np.linspace(0.0, 8.0, 2001)[1:] * dim]
    value = matern_table(mu)(s.copy(), Workspace())
    np.testing.assert_allclose(value, matern_function(np.sqrt(s), mu), atol=5e-12)
    assert matern_table(mu)(np.zeros(1), Workspace())[0] == 1.0


def test_large_orders_tend_to_a_gaussian():
    mu = 501.0
    s = np.linspace(1.0, 4000.0, 50)
    np.testing.assert_allclose(matern_function(np.sqrt(s), mu), np.exp(-s / (4 * mu)), atol=2e-3)


@pytest.mark.parametrize("mu", [0.0, -0.5, 0.75])
def test_other_orders_are_refused(mu):
    with pytest.raises(ValueError, match="multiple of 1/2"):
        matern_function(np.ones(1), mu)


def test_laplacian_convolved_with_itself_in_one_dimension():
    convolved = Laplacian(dim=1).self_convolution()
    for r in (0.0, 0.3, 2.0):
        expected = sum(
            quad(lambda z, r=r: np.exp(-abs(z) - abs(r - z)), a, b, epsabs=1e-13)[0]
            for a, b in ((-np.inf, 0.0), (0.0, r), (r, np.inf))
        )
        assert np.exp(convolved.log_constant) * convolved(r * r) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("dim", "closed"),
    [
        (1, lambda u: (1 + u) * np.exp(-u)),
        (2, lambda u: np.pi / 4 * u**2 * kve(2, u) * np.exp(-u)),
        (3, lambda u: np.pi * (1 + u + u**2 / 3) * np.exp(-u)),
    ],
)
def test_laplacian_convolved_with_itself_in_closed_form(dim, closed):
    u = np.linspace(0.01, 20.0, 200)
    convolved = Laplacian(dim=dim).self_convolution()
    np.testing.assert_allclose(np.exp(convolved.log_constant) * convolved(u * u), closed(u), atol=2e-11)
