"""Values that know how far they can be trusted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

EPS = float(np.finfo(np.float64).eps)


class Estimate(NamedTuple):
    """Values of one way of evaluation, each with the size of its error: the machine epsilon times the largest term."""

    value: np.ndarray
    error: np.ndarray

    @classmethod
    def unknown(cls, shape: tuple[int, ...]) -> Estimate:
        """No value yet: every other estimate is better."""
        return cls(np.full(shape, np.nan), np.full(shape, np.inf))

    def improve(self, where: np.ndarray, other: Estimate) -> None:
        """Take over those values of `other`, given at the places `where` is true, that have the smaller error."""
        places = np.flatnonzero(where)[other.error < self.error[where]]
        better = other.error < self.error[where]
        self.value[places] = other.value[better]
        self.error[places] = other.error[better]
