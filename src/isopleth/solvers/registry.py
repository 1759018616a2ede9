"""The scaling solvers by name, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable

from isopleth._namespace import Array
from isopleth.operators import Operator
from isopleth.solvers.coordinate_descent import coordinate_descent
from isopleth.solvers.fixed_point import fixed_point
from isopleth.solvers.gradients import natural_gradient, standard_gradient
from isopleth.solvers.newton import newton
from isopleth.solvers.scaling import ScalingSolution


def auto(op: Operator, w: Array, tol: float = 1e-8) -> ScalingSolution:
    """The fixed point where the kernel has no negative values, Newton's method for the others and for what it leaves."""
    start = fixed_point(op, w, tol) if op.kernel.nonnegative else None
    if start is not None and start.converged(tol):
        return start
    return newton(op, w, tol, start=start)


SCALING_SOLVERS: dict[str, Callable[[Operator, Array, float], ScalingSolution]] = {
    "auto": auto,
    "fixed_point": fixed_point,
    "newton": newton,
    "coordinate_descent": coordinate_descent,
    "natural_gradient": natural_gradient,
    "standard_gradient": standard_gradient,
}
"""Names that `solver=` accepts, and the list that the tests go through."""
