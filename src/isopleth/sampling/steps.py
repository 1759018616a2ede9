"""Steps of Markov chains, all chains at once: Langevin, with and without correction, Hamiltonian, jumps, passes over scales."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import logsumexp

from isopleth.core.threads import check_stopped, slices
from isopleth.sampling.target import State, Whitened


class Moved(NamedTuple):
    """State after one step, and the probability with which each chain accepted its proposal, or would have."""

    state: State
    acceptance: np.ndarray


@dataclass(frozen=True)
class Step(ABC):
    """Step of all chains."""

    size: float  # step size, in coordinates in which the covariance of the start rows is the identity

    # Mean acceptance at which the step size is right.
    wanted: ClassVar[float]

    # Largest step size.
    largest: ClassVar[float] = 20.0

    # Whether proposals are accepted or rejected, which needs log densities.
    adjusted: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, target: Whitened, state: State, rng: np.random.Generator) -> Moved:
        """Return the chains after one step."""


@dataclass(frozen=True)
class Langevin(Step):
    r"""Langevin step :math:`u + \frac{\epsilon^2}{2} \nabla\log p + \epsilon\,\xi`, adjusted (Roberts, Tweedie, 1996)."""

    # Optimal in high dimension: Roberts and Rosenthal, "Optimal scaling of discrete approximations to Langevin diffusions", 1998.
    wanted: ClassVar[float] = 0.574

    def __call__(self, target: Whitened, state: State, rng: np.random.Generator) -> Moved:
        """Return the chains after one step."""
        proposed = self._proposed(target, state, rng)
        assert proposed.log_density is not None
        assert state.log_density is not None
        with np.errstate(invalid="ignore", over="ignore"):
            log_ratio = proposed.log_density - state.log_density
            log_ratio += self._log_transition(proposed, state) - self._log_transition(state, proposed)
        return metropolis(state, proposed, log_ratio, rng)

    def _proposed(self, target: Whitened, state: State, rng: np.random.Generator) -> State:
        noise = rng.standard_normal(state.u.shape)
        return target.evaluate(state.u + 0.5 * self.size**2 * state.gradient + self.size * noise)

    def _log_transition(self, a: State, b: State) -> np.ndarray:
        """Return the log density of the proposal `b` from `a`, up to a constant."""
        step = b.u - a.u - 0.5 * self.size**2 * a.gradient
        return np.asarray(-0.5 * np.sum(step * step, axis=1) / self.size**2)


@dataclass(frozen=True)
class UnadjustedLangevin(Langevin):
    r"""Langevin step that is always taken, which needs the gradient only; its distribution is off by a term of order epsilon^2.

    The acceptance that it reports is that of a Metropolis step in which the difference of the log densities is the mean of the
    two gradients times the step. It serves to find a step size that is small enough.
    """

    wanted: ClassVar[float] = 0.998

    # The variance of a normal target in the coordinates of the chains is then 2.3 % too large.
    largest: ClassVar[float] = 0.3
    adjusted: ClassVar[bool] = False

    def __call__(self, target: Whitened, state: State, rng: np.random.Generator) -> Moved:
        """Return the chains after one step."""
        proposed = self._proposed(target, state, rng)
        with np.errstate(invalid="ignore", over="ignore"):
            log_ratio = 0.5 * np.sum((state.gradient + proposed.gradient) * (proposed.u - state.u), axis=1)
            log_ratio += self._log_transition(proposed, state) - self._log_transition(state, proposed)
        usable = proposed.usable()
        return Moved(state.moved(proposed, usable), _probability(log_ratio, usable))


@dataclass(frozen=True)
class Hamiltonian(Step):
    """Leapfrog moves of `size` with a random momentum, then a Metropolis decision (Neal, Handbook of MCMC, 2011)."""

    # mean length of a path: a quarter of the period of a normal target, after which places are independent. The length
    # of each path is drawn between half and one and a half times that, so that no period is hit exactly
    path: float = 0.5 * math.pi
    most: int = 32  # most moves of a path
    wanted: ClassVar[float] = 0.8

    def __call__(self, target: Whitened, state: State, rng: np.random.Generator) -> Moved:
        """Return the chains after one step."""
        moves = math.ceil(self.path * rng.uniform(0.5, 1.5) / self.size)
        momentum = rng.standard_normal(state.u.shape)
        energy = 0.5 * np.sum(momentum * momentum, axis=1)
        proposed = state
        with np.errstate(invalid="ignore", over="ignore"):
            for _ in range(min(moves, self.most)):
                check_stopped()
                momentum = momentum + 0.5 * self.size * proposed.gradient
                proposed = target.evaluate(proposed.u + self.size * momentum)
                # A path that has left the density is rejected below; it only has to stay finite.
                proposed.gradient = np.where(np.isfinite(proposed.gradient), proposed.gradient, 0.0)
                momentum = momentum + 0.5 * self.size * proposed.gradient
            assert proposed.log_density is not None
            assert state.log_density is not None
            log_ratio = proposed.log_density - state.log_density + energy - 0.5 * np.sum(momentum * momentum, axis=1)
        return metropolis(state, proposed, log_ratio, rng)


def _probability(log_ratio: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Return the probabilities of acceptance, 0 where the proposal is unusable."""
    return np.where(usable & ~np.isnan(log_ratio), np.exp(np.minimum(0.0, np.nan_to_num(log_ratio, nan=0.0))), 0.0)


def metropolis(state: State, proposed: State, log_ratio: np.ndarray, rng: np.random.Generator) -> Moved:
    """Accept the proposal of each chain with probability min(1, exp(log_ratio))."""
    acceptance = _probability(log_ratio, proposed.usable())
    return Moved(state.moved(proposed, rng.uniform(size=len(acceptance)) < acceptance), acceptance)


class StepSize:
    """Step size for a wanted mean acceptance, by dual averaging (Hoffman, Gelman, JMLR 15, 2014, section 3.2)."""

    _GAMMA, _DELAY, _KAPPA = 0.05, 10.0, 0.75

    def __init__(self, first: float, wanted: float, largest: float) -> None:
        self._wanted, self._pull, self._ends = wanted, math.log(10.0 * first), (-20.0, math.log(largest))
        self._count, self._gap, self._log_mean = 0, 0.0, 0.0
        self.now = first

    def adapt(self, acceptance: np.ndarray) -> None:
        """Take account of the acceptance of all chains at the step size of now."""
        self._count += 1
        share = 1.0 / (self._count + self._DELAY)
        self._gap = (1.0 - share) * self._gap + share * (self._wanted - float(np.mean(acceptance)))
        log_size = self._pull - math.sqrt(self._count) / self._GAMMA * self._gap
        log_size = min(max(log_size, self._ends[0]), self._ends[1])
        weight = self._count**-self._KAPPA
        self._log_mean = weight * log_size + (1.0 - weight) * self._log_mean
        self.now = math.exp(log_size)

    @property
    def final(self) -> float:
        """The weighted mean of the logarithms, at the end of the warm-up."""
        return math.exp(self._log_mean) if self._count else self.now


class Adapted:
    """Step of all chains whose size is adapted while :attr:`warming` is true."""

    def __init__(self, target: Whitened, step: Step) -> None:
        self._target, self._step, self._size = target, step, StepSize(step.size, step.wanted, step.largest)
        self.warming = False

    @property
    def step_size(self) -> float:
        """Step size after the warm-up."""
        return self._size.final

    def __call__(self, state: State, rng: np.random.Generator) -> Moved:
        """Return the chains after one step."""
        size = self._size.now if self.warming else self._size.final
        moved = replace(self._step, size=size)(self._target, state, rng)
        if self.warming:
            self._size.adapt(moved.acceptance)
        return moved


# Multiples of Scott's length scale that are mixed: rows in thin or separate groups need narrower kernels than a normal density.
_WIDTHS = (0.25, 0.5, 1.0)

# Most start rows at which kernels are placed, so that a jump costs no more than a step.
_MOST_ROWS = 1000

# Exponents computed at once.
_MOST_NUMBERS = 2**20


class Jump:
    r"""Metropolis step with proposals from a mixture q of kernel densities of start rows, independent of the chain's place.

    :math:`\min(1, p(x) q(y)/p(y) q(x))` keeps p the limit; in many columns few jumps are accepted, and other steps do the work.
    """

    def __init__(self, target: Whitened, rng: np.random.Generator) -> None:
        rows = target.starts(min(len(target.target.start), _MOST_ROWS), rng)
        n, d = rows.shape
        self._target, self._rows = target, rows
        self._widths = np.array(_WIDTHS) * n ** (-1.0 / (d + 4))
        self._log_norm = -d * np.log(self._widths) - math.log(n * len(self._widths)) - 0.5 * d * math.log(2.0 * math.pi)

    def __call__(self, state: State, rng: np.random.Generator) -> Moved:
        """Return the chains after one jump."""
        count = len(state.u)
        width = rng.choice(self._widths, size=(count, 1))
        places = self._rows[rng.integers(len(self._rows), size=count)] + width * rng.standard_normal(state.u.shape)
        proposed = self._target.evaluate(places)
        assert proposed.log_density is not None
        assert state.log_density is not None
        log_q = self.log_density(np.concatenate([state.u, places]))
        with np.errstate(invalid="ignore", over="ignore"):
            log_ratio = proposed.log_density - state.log_density + log_q[:count] - log_q[count:]
        return metropolis(state, proposed, log_ratio, rng)

    def log_density(self, u: np.ndarray) -> np.ndarray:
        """Return the logarithm of q."""
        parts = slices(len(u), _MOST_NUMBERS // (len(self._rows) * len(self._widths)))
        return np.concatenate([self._log_density(u[part]) for part in parts])

    def _log_density(self, u: np.ndarray) -> np.ndarray:
        s = np.maximum(0.0, np.sum(u * u, axis=1)[:, None] + np.sum(self._rows**2, axis=1) - 2.0 * u @ self._rows.T)
        exponents = -0.5 * s[:, :, None] / self._widths**2 + self._log_norm
        return np.asarray(logsumexp(exponents.reshape(len(u), -1), axis=1))


# Steps at each length scale of a pass.
STEPS_AT_A_LEVEL = 5


class Annealed:
    """Pass of all chains over the levels, as one step; at the widest length scale they move freely between modes."""

    def __init__(self, target: Whitened, factors: np.ndarray, adjusted: bool, first: float) -> None:
        step = (Langevin if adjusted else UnadjustedLangevin)(first)
        self._levels = [target.wider(float(factor)) for factor in factors]
        self._steps = [Adapted(level, step) for level in self._levels]
        self.warming = False

    @property
    def step_size(self) -> float:
        """Step size at the fitted length scale."""
        return self._steps[-1].step_size

    def __call__(self, state: State, rng: np.random.Generator) -> Moved:
        """Return the chains after one pass, and their mean acceptance at the fitted length scale."""
        total = np.zeros(len(state.u))
        for level, step in zip(self._levels, self._steps, strict=True):
            step.warming = self.warming
            state = level.evaluate(state.u)
            total[:] = 0.0
            for _ in range(STEPS_AT_A_LEVEL):
                check_stopped()
                state, acceptance = step(state, rng)
                total += acceptance
        return Moved(state, total / STEPS_AT_A_LEVEL)
