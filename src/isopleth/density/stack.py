"""Densities in frames, and mixtures of such densities."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.threads import check_stopped
from isopleth.density.frame_density import ExpansionDensity, FrameDensity
from isopleth.density.normal_mixture import NormalMixture
from isopleth.frames import ComposedMap, FrameMap, MapAt
from isopleth.frames.compose import chain, divided_by
from isopleth.frames.derivatives import value_and_divergence
from isopleth.kernels.directed import DirectedPairs, summed

# Name of the frame, factor and weight of a component.
Member = tuple[str, float, float]


@dataclass(frozen=True)
class Component:
    """Density of rows x: kernels of unit length scale at T(x)/scale.

    Parameters
    ----------
    frame : str
        Name of the frame.
    factor : float
        Multiple of the rule for the length scale; NaN for a mixture of normal densities.
    weight : float
        Share of the mixture.
    map : FrameMap
        The fitted map T.
    scale : array of shape (d,)
        Length scales in the coordinates of the map.
    density : FrameDensity
        Density of T(x)/scale.
    log_normalizer : float
        Logarithm of its integral, in the coordinates of the map.
    """

    frame: str
    factor: float
    weight: float
    map: FrameMap = field(repr=False)  # what follows holds arrays of all rows
    scale: np.ndarray = field(repr=False)
    density: FrameDensity = field(repr=False)
    log_normalizer: float = field(repr=False)


@dataclass(frozen=True)
class StackDensity(FrameDensity):
    r"""Mixture :math:`p(x) = \sum_k w_k\, p_k(T_k(x)/s_k)\, |\det T_k'(x)| / \prod_j s_{kj}`, normalised."""

    components: tuple[Component, ...]  # those of one frame are adjacent and share its map

    @property
    def _backend(self) -> Backend:
        return self.components[0].density._backend

    @property
    def coefficients(self) -> Array:
        """Coefficients of the kernels of each component that has kernels, one a row."""
        found: list[Any] = [one.density for one in self.components if not isinstance(one.density, NormalMixture)]
        return namespace(found[0].coefficients).stack([density.coefficients for density in found])

    @property
    def log_normalizer(self) -> float:
        """0: the mixture is normalised."""
        return 0.0

    def _frames(self) -> Iterator[tuple[FrameMap, list[tuple[int, Component]]]]:
        """Yield each map with its components and their places."""
        for _, group in itertools.groupby(enumerate(self.components), key=lambda pair: pair[1].frame):
            members = list(group)
            yield members[0][1].map, members

    def log_terms(self, y: np.ndarray) -> np.ndarray:
        """Return the log density of each component at rows, of shape (n, n_components), without its weight."""
        out = np.empty((len(y), len(self.components)))
        mapped = Mapped(y)
        for frame, members in self._frames():
            check_stopped()
            place = mapped.at(frame)
            for k, one in members:
                out[:, k] = one.density.log_unnormalized(place.rows / one.scale) - one.log_normalizer + place.log_volume
        return out

    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """Return log p at rows."""
        return np.asarray(logsumexp(self.log_terms(z) + np.log([one.weight for one in self.components]), axis=1))

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log p and its gradient in one pass: a mean by the posterior probabilities of the components."""
        log_p, gradient = np.full(len(z), -np.inf), np.zeros(z.shape)
        mapped = Mapped(z)
        for frame, members in self._frames():
            check_stopped()
            place = mapped.at(frame)
            inner = log_p - np.inf, np.zeros(z.shape)
            for _, one in members:
                logs, slopes = one.density.evaluate(place.rows / one.scale)
                inner = _mixed(*inner, logs - one.log_normalizer + np.log(one.weight), slopes / one.scale)
            pulled = place.pullback(inner[1]) + place.grad_log_volume
            log_p, gradient = _mixed(log_p, gradient, inner[0] + place.log_volume, pulled)
        return log_p, gradient

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        """Return the Laplacian of log p plus half its squared gradient at rows."""
        one = self.components[0]
        if len(self.components) > 1 or not isinstance(one.density, ExpansionDensity):
            return super().hyvarinen_terms(z)
        field, frame = _Slope(one.density), chain(one.map, divided_by(one.scale))
        value, divergence = value_and_divergence(field, frame, z, np.ones(z.shape[1]), one.density.expansion.budget)
        return np.asarray(divergence + 0.5 * (value * value).sum(axis=1))

    def sample(self, n_samples: int, rng: np.random.Generator, budget: Budget = DEFAULT_BUDGET) -> np.ndarray:
        """Draw components by their weights, then rows of each."""
        counts = rng.multinomial(n_samples, [one.weight for one in self.components])
        drawn = []
        for frame, members in self._frames():
            for k, one in members:
                if counts[k]:
                    z = one.density.sample(int(counts[k]), rng, budget)  # type: ignore[attr-defined]
                    drawn.append(frame.inverse(z * one.scale))
        return rng.permutation(np.concatenate(drawn))


@dataclass(frozen=True)
class _Slope:
    """Gradient of a log density, as a field in the coordinates of a frame."""

    density: ExpansionDensity

    @property
    def backend(self) -> Backend:
        """The backend of the centres of the kernels."""
        return self.density._backend

    def value(self, x: Array) -> np.ndarray:
        """Return the gradient at rows `x`."""
        return self.density.grad_log_density(to_numpy(x))

    def trace(self, x: np.ndarray, directions: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the sums of second derivatives of the log density along directions."""
        f, power = self.density.expansion, self.density.power
        pairs = DirectedPairs(x, to_numpy(f.centers), directions, f.kernel)
        bent = summed(pairs, to_numpy(f.coefficients), DirectedPairs.second, budget.memory)
        along = np.sum(self.value(x) * directions, axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return power * bent / self.density._evaluate(f.value, x) - (along**2).sum(axis=0) / power


class Mapped:
    """Rows mapped by several maps; what these have in common is computed once."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows
        self._found: dict[tuple[int, ...], MapAt] = {}

    def at(self, fitted: FrameMap) -> MapAt:
        """Return the map at the rows."""
        key: tuple[int, ...] = ()
        found: MapAt | None = None
        for one in fitted.maps if isinstance(fitted, ComposedMap) else (fitted,):
            key += (id(one),)
            if key not in self._found:
                self._found[key] = one.at(self._rows) if found is None else found.then(one.at(found.rows))
            found = self._found[key]
        assert found is not None
        return found


def _mixed(
    log_p: np.ndarray, gradient: np.ndarray, logs: np.ndarray, slopes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log of the sum of two densities, and its gradient, from their logs and gradients."""
    total = np.logaddexp(log_p, logs)
    with np.errstate(invalid="ignore"):
        share = np.exp(logs - total)[:, None]  # NaN where both are 0
        mixed = gradient + share * (slopes - gradient)
    return total, np.where(share == 0.0, gradient, np.where(share == 1.0, slopes, mixed))
