"""Solvers: from a kernel operator to coefficients. One file a solver; `SCALING_SOLVERS` has those of SOSREP by name.

Linear systems have regularisers (`regularizers/`), and solvers that know a matrix (`direct`, `eigen`) or its products alone
(`conjugate_gradients`, `lanczos`).
"""

from __future__ import annotations

from isopleth.solvers.conjugate_gradients import conjugate_gradients
from isopleth.solvers.coordinate_descent import coordinate_descent
from isopleth.solvers.direct import Shifted
from isopleth.solvers.eigen import Spectrum
from isopleth.solvers.fixed_point import fixed_point
from isopleth.solvers.gradients import natural_gradient, standard_gradient
from isopleth.solvers.lanczos import Krylov, lanczos, largest_eigenvalue
from isopleth.solvers.newton import newton
from isopleth.solvers.registry import SCALING_SOLVERS, auto
from isopleth.solvers.scaling import ScalingSolution

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
