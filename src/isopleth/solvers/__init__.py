"""Solvers: from a kernel operator to coefficients. One file a solver; `SCALING_SOLVERS` has those of SOSREP by name."""

from __future__ import annotations

from isopleth.solvers.conjugate_gradients import conjugate_gradients
from isopleth.solvers.coordinate_descent import coordinate_descent
from isopleth.solvers.fixed_point import fixed_point
from isopleth.solvers.gradients import natural_gradient, standard_gradient
from isopleth.solvers.newton import newton
from isopleth.solvers.registry import SCALING_SOLVERS, auto
from isopleth.solvers.scaling import ScalingSolution

__all__ = [
    "SCALING_SOLVERS",
    "ScalingSolution",
    "auto",
    "conjugate_gradients",
    "coordinate_descent",
    "fixed_point",
    "natural_gradient",
    "newton",
    "standard_gradient",
]
