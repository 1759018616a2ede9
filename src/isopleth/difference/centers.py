"""Centres of kernels: points of the user, or rows drawn from both samples."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from isopleth.backend import to_numpy
from isopleth.difference.samples import TwoSamples
from isopleth.errors import InputError


def choose_centers(given: Any, samples: TwoSamples, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Centres in the units of the data, and which of the distinct rows they are; None for points of the user.

    Raises
    ------
    InputError
        If `given` is neither None nor a number nor finite points of as many columns as the samples have.
    """
    if given is None or isinstance(given, Integral):
        count = len(samples.rows) if given is None else min(int(given), len(samples.rows))
        chosen = _drawn_evenly(samples.weights > 0, count, seed)
        return samples.rows[chosen], chosen
    try:
        centers = np.asarray(to_numpy(given), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            "centers holds something other than numbers; expected a number of centers, or points."
        ) from error
    if centers.ndim != 2 or centers.shape[1] != samples.rows.shape[1] or not len(centers):
        raise InputError(
            f"centers has shape {centers.shape}; expected a number of centers, or points of {samples.rows.shape[1]} columns as "
            "the samples have."
        )
    if not np.isfinite(centers).all():
        raise InputError("centers contains NaN or inf; expected finite coordinates.")
    return centers, None


def _drawn_evenly(member: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Places of `count` rows drawn at random, half from each sample as far as it has them, whichever is called X."""
    priority = np.random.default_rng(seed).permutation(len(member))
    if count == len(member):
        return np.arange(count)
    rank = np.full(member.shape, np.inf)
    for sample in range(2):
        rows = np.flatnonzero(member[:, sample])
        rank[rows[np.argsort(priority[rows])], sample] = np.arange(len(rows))
    order = np.lexsort([priority, rank.min(axis=1)])
    return np.sort(order[:count])
