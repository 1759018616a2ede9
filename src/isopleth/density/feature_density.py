"""A density p = f^2/Z whose root is a sum of random features, in frame coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from isopleth._namespace import Array, Home, to_numpy
from isopleth.density.fitted import FrameDensity
from isopleth.errors import InputError
from isopleth.kernels import Kernel
from isopleth.operators.random_features import RandomFeatures


@dataclass(frozen=True)
class FeatureDensity(FrameDensity):
    r"""The density :math:`p = f^2/Z`, :math:`f = w\cdot\phi`, where f is above the noise of the features.

    Far from all rows a sum of random features is no small number but noise about 0. What is not above its size
    :math:`1/\sqrt T` is not told from 0 there: the log density is minus infinity and has no gradient.

    Parameters
    ----------
    kernel : Kernel
        What the features were drawn for, bound.
    features : RandomFeatures
        The features.
    coefficients : array of shape (T,)
        w.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Gaussian
    >>> from isopleth.density.feature_density import FeatureDensity
    >>> from isopleth.operators.random_features import RandomFeatures
    >>> features = RandomFeatures.draw(Gaussian(dim=1), 5000, np.random.default_rng(0))
    >>> p = FeatureDensity(Gaussian(dim=1), features, features(np.zeros((1, 1)))[0])  # as if there were one row, at 0
    >>> round(float(p.log_normalizer), 2)  # the integral of exp(-z^2) is the square root of pi
    0.57
    >>> p.log_density(np.array([[0.0], [1.0], [9.0]])).round(1)
    array([-0.6, -1.6, -inf])
    """

    kernel: Kernel
    features: RandomFeatures
    coefficients: Array

    @cached_property
    def log_normalizer(self) -> float:
        r"""log Z, from the features: with q the spectral density of the kernel k, which the wave vectors were drawn from,

        .. math:: Z = \int f^2 = (2\pi)^d \int q^2 |A|^2\, d\omega \approx \int k^2 \cdot
            \frac{\sum_t q(\omega_t)\,|A(\omega_t)|^2}{\sum_t q(\omega_t)},
            \qquad |A(\omega_t)|^2 = \tfrac T2\,(w_{\cos,t}^2 + w_{\sin,t}^2).
        """
        half, w = self.features.size // 2, to_numpy(self.coefficients)
        squares = w[:half] ** 2 + w[half:] ** 2
        log_q = self.kernel.log_spectral_density(to_numpy(self.features.frequencies))
        mean = logsumexp(log_q, b=half * squares) - logsumexp(log_q)
        return self.kernel.self_convolution().log_constant + float(mean)

    def positive(self, z: np.ndarray) -> np.ndarray:
        """Whether f is above the noise of the features at rows `z`."""
        return self._root(z) > self.features.noise

    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """log f^2, minus infinity where f is not above the noise."""
        f = self._root(z)
        told = f > self.features.noise
        return np.where(told, 2.0 * np.log(np.where(told, f, 1.0)), -np.inf)

    def grad_log_density(self, z: np.ndarray) -> np.ndarray:
        r""":math:`2\,\nabla f/f`, NaN where f is not above the noise."""
        return 2.0 * self._answer(lambda x: self.features.gradient(x, self.coefficients), z) / self._told(z)[:, None]

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        r""":math:`2\,\Delta f/f`, NaN where f is not above the noise.

        Raises
        ------
        InputError
            For kernels of smoothness 1 and less: squares of their wave numbers have no mean, and the loss would be that of the
            shortest few waves that were drawn.
        """
        if self.kernel.smoothness <= 1.0:
            raise InputError(
                f"random features of {self.kernel!r} have no Hyvarinen loss to go by, only that of their shortest waves; use a "
                "smoother kernel, such as 'matern52' or 'gaussian', or judge by the likelihood."
            )
        return 2.0 * self._answer(lambda x: self.features.laplacian(x, self.coefficients), z) / self._told(z)

    @property
    def _home(self) -> Home:
        return Home.of(self.coefficients)

    def _root(self, z: np.ndarray) -> np.ndarray:
        """f at rows `z`."""
        return self._answer(lambda x: self.features.value(x, self.coefficients), z)

    def _told(self, z: np.ndarray) -> np.ndarray:
        f = self._root(z)
        return np.where(f > self.features.noise, f, np.nan)
