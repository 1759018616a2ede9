"""Targets of Markov chains that draw from a fitted score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import clone

from isopleth.backend import Array, to_numpy
from isopleth.frames import Frame, FrameMap
from isopleth.sampling.target import Evaluation, Target

if TYPE_CHECKING:
    from isopleth.score.base import ScoreEstimator


@dataclass(frozen=True)
class Confinement:
    """Factor :math:`e^{-(r - R)_+^2/2}` of a density without tails, r the Mahalanobis distance and R that of the farthest row."""

    centre: np.ndarray  # (d,): mean of the rows
    precision: np.ndarray  # (d, d): inverse of their covariance
    radius: float  # distance R

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray) -> Self:
        """Return the confinement to the ellipsoid that contains `rows`."""
        share = weights / weights.sum()
        centre = share @ rows
        deviations = rows - centre
        covariance = (deviations * share[:, None]).T @ deviations
        covariance += np.diag(np.diag(covariance)) * 1e-6  # for fewer rows than columns
        precision = np.linalg.inv(covariance)
        return cls(centre, precision, float(np.sqrt(np.einsum("ij,jk,ik->i", deviations, precision, deviations).max())))

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithm of the factor and its gradient at rows `z`."""
        pull = (z - self.centre) @ self.precision
        distance = np.sqrt(np.einsum("ij,ij->i", pull, z - self.centre))
        excess = np.maximum(0.0, distance - self.radius)
        return -0.5 * excess**2, -(excess / np.maximum(distance, self.radius))[:, None] * pull


@dataclass(frozen=True)
class _Fitted(Frame):
    """Frame that is fitted already, so that a score with wider kernels has the coordinates of another."""

    map: FrameMap

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> FrameMap:
        return self.map


def score_target(model: ScoreEstimator) -> Target:
    """Return the target of a fitted score; the chains move in its frame coordinates."""
    centers = to_numpy(model._centers)
    weights = to_numpy(model.weights_) if hasattr(model, "weights_") else np.ones(len(centers))
    if len(weights) != len(centers):  # landmarks, which count alike
        weights = np.ones(len(centers))
    confinement = Confinement.of(centers, weights) if model.base_ is None else None

    def wider(factor: float) -> Target:
        return _target(_widened(model, factor), factor, centers, weights, confinement)

    found = _target(model, 1.0, centers, weights, confinement)
    return Target(found.evaluate, centers, weights, wider, model._frame.inverse)


def _target(
    model: ScoreEstimator, factor: float, centers: np.ndarray, weights: np.ndarray, confinement: Confinement | None
) -> Target:
    """Return the target of a score in the coordinates of the frame over its length scales divided by `factor`."""
    has_energy = model.space == "curl_free"
    backend = model._backend

    def evaluate(z: np.ndarray) -> Evaluation:
        own: Array = backend.array(z / factor)
        gradient = to_numpy(model._value(own)) / factor
        energy = to_numpy(model._field().energy(own)) if has_energy else None
        if confinement is not None:
            log_factor, pull = confinement.evaluate(z)
            gradient = gradient + pull
            energy = None if energy is None else energy + log_factor
        return energy, gradient

    return Target(evaluate, centers, weights)


def _widened(model: ScoreEstimator, factor: float) -> ScoreEstimator:
    """Return a score fitted to the same rows with wider kernels and otherwise as `model` was fitted."""
    weights = to_numpy(model.weights_) if hasattr(model, "weights_") else None
    centers = to_numpy(model.centers_)
    if weights is not None and len(weights) != len(centers):
        weights = None
    chosen = {**model.chosen(), "length_scale": factor * to_numpy(model.length_scale_), "frame": _Fitted(model._map)}
    return clone(model).set_params(**chosen).fit(centers, sample_weight=weights)
