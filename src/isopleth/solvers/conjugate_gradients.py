"""Conjugate gradients for any array library."""

from __future__ import annotations

from collections.abc import Callable

from isopleth.backend import Array, namespace
from isopleth.solvers.direct import inner


def conjugate_gradients(
    product: Callable[[Array], Array],
    b: Array,
    *,
    tol: float,
    max_iter: int,
    enough: Callable[[Array], bool] | None = None,
    preconditioner: Callable[[Array], Array] | None = None,
    split: bool = False,
) -> tuple[Array, int]:
    """Solve A x = b for a symmetric positive definite A.

    Parameters
    ----------
    product : callable
        Function v -> A v, for arrays of the shape of `b`.
    b : array
        Right-hand side.
    tol : float
        Stop once |b - A x| <= tol |b|.
    max_iter : int
        Largest number of products.
    enough : callable, optional
        Called with the residual b - A x at each step; the iteration stops when it returns True.
    preconditioner : callable, optional
        Function r -> P r for a symmetric positive definite P that is close to the inverse of A.
    split : bool, default=False
        If True, `product` omits the part of A whose inverse is P. The product with that part is updated by recurrence, which
        saves one product for each step.

    Returns
    -------
    x : array of the shape of `b`
        The last iterate, whether or not `tol` was reached.
    n_iter : int
        Number of products.
    """
    xp = namespace(b)
    x = xp.zeros_like(b)
    residual = xp.asarray(b, copy=True)
    goal = tol**2 * inner(b, b)
    direction, image_of_part, previous, n_iter = None, None, 1.0, 0
    while n_iter < max_iter and (size := inner(residual, residual)) > goal:
        if enough is not None and enough(residual):
            break
        ready, reduction = residual, size
        if preconditioner is not None:
            ready = preconditioner(residual)
            reduction = inner(residual, ready)
        ratio = reduction / previous
        direction = ready if direction is None else ready + ratio * direction
        image = product(direction)
        if split:
            image_of_part = residual if image_of_part is None else residual + ratio * image_of_part
            image = image + image_of_part
        curvature = inner(direction, image)
        if not curvature > 0.0:  # only rounding is left
            break
        step, previous = reduction / curvature, reduction
        x = x + step * direction
        residual = residual - step * image
        n_iter += 1
    return x, n_iter
