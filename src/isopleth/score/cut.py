"""What is said of a cut-off that leaves nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from isopleth.solvers.regularizers import Regularizer, SpectralCutoff
from isopleth.validation import DataWarning


def warn_if_all_is_cut(regularizer: Regularizer, fitted: np.ndarray, largest: Callable[[], float]) -> None:
    """Warn that a threshold is above all eigenvalues, of which `largest` tells the largest: what was `fitted` is 0."""
    if not isinstance(regularizer, SpectralCutoff) or regularizer.threshold is None or fitted.any():
        return
    top = largest()
    if top < regularizer.threshold:
        warnings.warn(
            f"threshold = {regularizer.threshold:g} is above the largest eigenvalue, {top:.3g}: nothing is fitted, and the score "
            f"is 0, or that of the base; use a smaller threshold.",
            DataWarning,
            stacklevel=4,
        )
