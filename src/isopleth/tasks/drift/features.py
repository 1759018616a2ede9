"""Feature map in which the dual LSDD statistic is a squared distance of means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isopleth.difference.gaussian_system import GaussianSystem, PenalizedSpectrum
from isopleth.frame import Frame
from isopleth.operators.threads import interruptible

# Eigenvectors of H with an eigenvalue below this share of the largest are left out; they are nearly 0 everywhere.
LOST = 1e-8

# Distance of the quartiles of a normal distribution, in standard deviations.
_IN_DEVIATIONS = 1.349


def spread(X: np.ndarray) -> np.ndarray:
    """Return the smaller of the standard deviation and its estimate from the quartiles, so that far rows have no influence."""
    farthest = np.abs(X).max(axis=0)
    # Squares of giant numbers would overflow.
    plain = farthest * (X / np.where(farthest > 0.0, farthest, 1.0)).std(axis=0)
    low, high = np.quantile(X, (0.25, 0.75), axis=0)
    robust = high / _IN_DEVIATIONS - low / _IN_DEVIATIONS
    return np.where((robust > 0.0) & (robust < plain), robust, plain)


@dataclass(frozen=True, eq=False)
class DriftFeatures:
    r"""The map :math:`x \mapsto M^{1/2} \psi(x)` less its mean over the reference, in rotated coordinates.

    The squared norm of the mean over a window is :math:`h^\top M h` for :math:`h = \bar\psi_W - \bar\psi_R`. The value of a
    row has the same bits whatever other rows are in the call: products are computed row by row, because the order in which
    BLAS sums depends on the number of rows.

    Parameters
    ----------
    frame : Frame
        Frame in which the length scale is 1.
    centers : array of shape (b, d)
        Centres in the frame.
    projection : array of shape (b, r)
        :math:`M^{1/2}` times a rotation.
    mean : array of shape (r,)
        Mean over the reference.
    """

    frame: Frame
    centers: np.ndarray
    projection: np.ndarray
    mean: np.ndarray

    @classmethod
    def of(
        cls, X: np.ndarray, frame: Frame, centers: int, alpha: float, rng: np.random.Generator, **limits: Any
    ) -> tuple[Self, np.ndarray]:
        """Return the map with rows of `X` as centres, and its values at the other rows, of shape (n, r), with mean 0.

        A centre is nearer to itself than any new row is, so centres are left out of the mean. At most a quarter of the rows
        are centres: functions as wide as the reference need few.
        """
        order = rng.permutation(len(X))
        count = max(1, min(centers, len(X) // 4))
        z = frame.enter(X)
        system = GaussianSystem(z[np.sort(order[:count])], 0.0, **limits)
        spectrum = PenalizedSpectrum.of(system.gram())
        spectrum.check(alpha)
        kept = spectrum.values > LOST * spectrum.values[-1]
        root = spectrum.vectors[:, kept] * np.sqrt(spectrum.dual_weights(alpha)[kept])
        psi = system.matrix(z[np.sort(order[count:])])
        values = psi @ root
        values -= values.mean(axis=0)
        # The directions in which the reference varies most come first.
        inner = interruptible(2.0 * values.size * values.shape[1], np.matmul, values.T, values)
        turn = interruptible(9.0 * len(inner) ** 3, np.linalg.eigh, inner)[1][:, ::-1]
        projection = root @ turn
        return cls(frame, system.centers, projection, psi.mean(axis=0) @ projection), values @ turn

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the values at rows of shape (n, n_features), of shape (n, r)."""
        z = np.ascontiguousarray(self.frame.enter(X))
        cross = np.matmul(z[:, None, :], self.centers.T)[:, 0]
        squares = (z * z).sum(axis=1)[:, None] + (self.centers * self.centers).sum(axis=1) - 2.0 * cross
        psi = np.exp(-0.5 * np.maximum(squares, 0.0))
        return np.matmul(psi[:, None, :], self.projection)[:, 0] - self.mean
