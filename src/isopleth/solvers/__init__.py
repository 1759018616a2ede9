"""Solvers: from a kernel operator to coefficients."""

from __future__ import annotations

from isopleth.solvers.conjugate_gradients import conjugate_gradients
from isopleth.solvers.scaling import SCALING_SOLVERS, ScalingSolution, auto, fixed_point, newton

__all__ = ["SCALING_SOLVERS", "ScalingSolution", "auto", "conjugate_gradients", "fixed_point", "newton"]
