"""What is said of a cut-off that leaves nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from isopleth._namespace import Array, namespace
from isopleth.errors import DataWarning
from isopleth.solvers.regularizers import Regularizer, SpectralCutoff


def warn_if_all_is_cut(regularizer: Regularizer, fitted: Array, largest: Callable[[], float]) -> None:
    """Warn that a threshold is above all eigenvalues, of which `largest` tells the largest: what was `fitted` is 0."""
    if not isinstance(regularizer, SpectralCutoff) or regularizer.threshold is None:
        return
    if bool(namespace(fitted).any(fitted != 0.0)):
        return
    top = largest()
    if top < regularizer.threshold:
        warnings.warn(
            f"threshold = {regularizer.threshold:g} is above the largest eigenvalue, {top:.3g}: nothing is fitted, and the score "
            f"is 0, or that of the base; use a smaller threshold.",
            DataWarning,
            stacklevel=4,
        )
