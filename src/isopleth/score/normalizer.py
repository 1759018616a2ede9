"""What a density known up to a constant integrates to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from isopleth._namespace import Home, to_numpy
from isopleth.errors import InputError
from isopleth.score.base_measure import GaussianBase
from isopleth.score.field import ScoreField


@dataclass(frozen=True)
class Normalizer:
    """The integral of a density known up to a constant, by importance sampling.

    Parameters
    ----------
    log_value : float
        Its logarithm: what to subtract from log densities.
    effective_sample_size : float
        How many draws of equal weight those taken are worth; of few, `log_value` says little.
    n_samples : int
        Draws taken.
    """

    log_value: float
    effective_sample_size: float
    n_samples: int

    @classmethod
    def of(cls, field: ScoreField, base: GaussianBase, n_samples: Any, random_state: Any, home: Home) -> Self:
        """Of the energy of a field that lives at `home`, by draws from its base measure.

        Raises
        ------
        InputError
            If `n_samples` is no number of draws, or the field has no energy.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples = {n_samples!r}: expected a whole number of draws, at least 1.")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = base.sample(int(n_samples), rng)
        log_ratio = to_numpy(field.energy(home.send(z))) - base.energy(z)
        total = float(logsumexp(log_ratio))
        effective = float(np.exp(2.0 * total - logsumexp(2.0 * log_ratio)))
        return cls(total - math.log(n_samples), effective, int(n_samples))
