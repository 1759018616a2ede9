"""Density that Markov chains draw from, and the coordinates in which they move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from isopleth.core.errors import InputError

# For rows of shape (n, d): their log densities (n,), or None where there are none, and the gradients (n, d).
Evaluation = tuple[np.ndarray | None, np.ndarray]


class ChainDensity(Protocol):
    """Questions that chains ask of a fitted density or score, or of a :class:`Target`."""

    @property
    def start(self) -> np.ndarray:
        """Points at which chains may start."""

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the rows."""

    def evaluate(self, z: np.ndarray) -> Evaluation:
        """Return log densities and gradients at points."""

    def leave(self, z: np.ndarray) -> np.ndarray:
        """Return the rows of points."""


@dataclass(frozen=True, eq=False)
class Target:
    r"""Density, or score, that :func:`isopleth.sampling.sample` draws from.

    Fitted densities and scores of this package are targets by themselves; this class lets the samplers draw from others.

    Parameters
    ----------
    evaluate : callable
        For an array of rows of shape (n, d): their log densities, up to a constant, of shape (n,), and the gradients of these,
        of shape (n, d). The log densities may be None; then only the unadjusted samplers can be used.
    start : array of shape (m, d)
        Rows at which chains may start, such as the data. Their covariance sets the units of the steps.
    weights : array of shape (m,), optional
        Weights of these rows.
    wider : callable, optional
        For a factor of at least 1, the target with all length scales multiplied by it, for ``method="annealed"``.
    leave : callable, optional
        Map from the coordinates of the target to the rows of the result.

    Examples
    --------
    A normal distribution:

    >>> import numpy as np
    >>> from isopleth.sampling import Target, sample
    >>> start = np.random.default_rng(0).normal(size=(100, 2))
    >>> normal = Target(lambda x: (-0.5 * np.sum(x**2, axis=1), -x), start)
    >>> chains = sample(normal, 4000, random_state=0)
    >>> bool(abs(chains.rows.std() - 1.0) < 0.05)
    True
    """

    evaluate: Callable[[np.ndarray], Evaluation]
    start: np.ndarray
    weights: np.ndarray | None = None
    wider: Callable[[float], Target] | None = None
    leave: Callable[[np.ndarray], np.ndarray] = field(default=lambda rows: rows)


@dataclass
class Calls:
    """Number of places at which a target was evaluated."""

    places: int = 0


@dataclass(frozen=True, eq=False)
class Whitened:
    """Target in coordinates in which the start rows have the identity as covariance: one step size suits all directions."""

    target: ChainDensity
    centre: np.ndarray  # (d,): mean of the start rows
    root: np.ndarray  # (d, d): lower triangular root of their covariance
    calls: Calls  # counts the places at which the target was evaluated

    @classmethod
    def of(cls, target: ChainDensity) -> Whitened:
        """Return the target in the coordinates of its start rows."""
        rows = target.start
        weights = np.ones(len(rows)) if target.weights is None else target.weights
        share = weights / weights.sum()
        centre = share @ rows
        deviations = rows - centre
        covariance = (deviations * share[:, None]).T @ deviations
        # Shrunk towards its diagonal by at most one row's worth, so that it is positive definite for few rows too.
        scale = np.diag(covariance) + np.finfo(np.float64).tiny
        shrinkage = min(1.0, rows.shape[1] / (len(rows) + rows.shape[1]))
        covariance = (1.0 - shrinkage) * covariance + shrinkage * np.diag(scale)
        return cls(target, centre, np.linalg.cholesky(covariance), Calls())

    def wider(self, factor: float) -> Whitened:
        """Return the target at wider length scales, in the same coordinates."""
        target: Any = self.target  # whose `wider` a user may have left out, and `sample` has checked
        return replace(self, target=target if factor == 1.0 else target.wider(factor))

    def starts(self, chains: int, rng: np.random.Generator) -> np.ndarray:
        """Draw start rows for the chains, without replacement as far as there are enough."""
        rows, weights = self.target.start, self.target.weights
        share = None if weights is None else weights / weights.sum()
        enough = chains <= (len(rows) if share is None else np.count_nonzero(share))
        chosen = rng.choice(len(rows), size=chains, replace=not enough, p=share)
        return np.linalg.solve(self.root, (rows[chosen] - self.centre).T).T

    def rows(self, u: np.ndarray) -> np.ndarray:
        """Return rows of the target's coordinates."""
        return self.centre + u @ self.root.T

    def evaluate(self, u: np.ndarray) -> State:
        """Return the state of chains at `u`."""
        self.calls.places += len(u)
        log_density, gradient = self.target.evaluate(self.rows(u))
        return State(u, log_density, gradient @ self.root)


@dataclass
class State:
    """Places of all chains, with the log densities (None if there are none) and the gradients there."""

    u: np.ndarray
    log_density: np.ndarray | None
    gradient: np.ndarray

    def usable(self) -> np.ndarray:
        """Return a mask of the chains that are at places of positive, finite density."""
        good = np.isfinite(self.gradient).all(axis=1)
        return good if self.log_density is None else good & np.isfinite(self.log_density)

    def moved(self, other: State, where: np.ndarray) -> State:
        """Return the state with the chains in the mask `where` at the places of `other`."""
        log_density = None
        if self.log_density is not None and other.log_density is not None:
            log_density = np.where(where, other.log_density, self.log_density)
        return State(
            np.where(where[:, None], other.u, self.u),
            log_density,
            np.where(where[:, None], other.gradient, self.gradient),
        )


def target_of(model: Any) -> ChainDensity:
    """Return the target of a fitted estimator, a :class:`ChainDensity`, or `model` itself if it is a Target."""
    if isinstance(model, Target):
        return checked(model)
    find = getattr(model, "_sampling_target", None)
    if find is None:
        raise InputError(
            f"{type(model).__name__} has nothing to draw from; pass a fitted SOSREP, KDE or score estimator, or a Target."
        )
    found: ChainDensity = find()
    return found


def checked(target: Target) -> Target:
    """Return a target of a user with arrays that were checked."""
    start = np.asarray(target.start, dtype=np.float64)
    if start.ndim != 2 or len(start) < 2 or not np.isfinite(start).all():
        raise InputError(f"start has shape {start.shape}; expected at least two rows of finite numbers.")
    log_density, gradient = target.evaluate(start[:2])
    shapes = (None if log_density is None else np.shape(log_density), np.shape(gradient))
    if shapes not in ((None, start[:2].shape), ((2,), start[:2].shape)):
        raise InputError(
            f"evaluate returned shapes {shapes[0]} and {shapes[1]} for two rows; expected (2,) or None, and {start[:2].shape}."
        )
    return Target(target.evaluate, start, target.weights, target.wider, target.leave)
