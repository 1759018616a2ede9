"""Langevin chains that pass from wide length scales to the fitted one for each draw."""

from __future__ import annotations

import numpy as np

from isopleth.operators.threads import check_stopped
from isopleth.sampling.steps import Adapted, Langevin, Moved, UnadjustedLangevin
from isopleth.sampling.target import State, Whitened

# Steps at each length scale of a pass.
STEPS_AT_A_LEVEL = 5


class Annealed:
    """Pass of all chains over the levels, as one step of a chain.

    At the widest length scale the density has one mode or few, between which chains move freely; on the way to the fitted length
    scale each chain settles in one of the modes there.
    """

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
