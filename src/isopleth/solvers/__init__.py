"""Solvers, which compute coefficients from a kernel operator. `SCALING_SOLVERS` has those of SOSREP by name.

Linear systems have regularisers (`regularizers`), and solvers that need the matrix (`direct`) or only products with it
(`conjugate_gradients`, `lanczos`).
"""

from __future__ import annotations

from collections.abc import Callable

from isopleth.core.arrays import Array
from isopleth.operators import Operator
from isopleth.solvers.direct import Shifted, Spectrum
from isopleth.solvers.krylov import Krylov, conjugate_gradients, lanczos, largest_eigenvalue
from isopleth.solvers.scaling import (
    ScalingSolution,
    auto,
    coordinate_descent,
    fixed_point,
    natural_gradient,
    newton,
    standard_gradient,
)

# Solvers by the name that `solver=` accepts. The tests run through all of them.
SCALING_SOLVERS: dict[str, Callable[[Operator, Array, float], ScalingSolution]] = {
    "auto": auto,
    "fixed_point": fixed_point,
    "newton": newton,
    "coordinate_descent": coordinate_descent,
    "natural_gradient": natural_gradient,
    "standard_gradient": standard_gradient,
}

__all__ = [
    "SCALING_SOLVERS",
    "Krylov",
    "ScalingSolution",
    "Shifted",
    "Spectrum",
    "auto",
    "conjugate_gradients",
    "coordinate_descent",
    "fixed_point",
    "lanczos",
    "largest_eigenvalue",
    "natural_gradient",
    "newton",
    "standard_gradient",
]
