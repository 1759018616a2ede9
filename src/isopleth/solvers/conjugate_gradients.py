"""Conjugate gradients for any array library."""

from __future__ import annotations

from collections.abc import Callable

from isopleth._namespace import Array, namespace


def conjugate_gradients(
    product: Callable[[Array], Array],
    b: Array,
    *,
    tol: float,
    max_iter: int,
    enough: Callable[[Array], bool] | None = None,
) -> tuple[Array, int]:
    """Solve A x = b for a symmetric positive definite A.

    Parameters
    ----------
    product : callable
        v -> A v.
    b : array of shape (n,)
        Right-hand side.
    tol : float
        Stop once |b - A x| <= tol |b|.
    max_iter : int
        The most products to take.
    enough : callable, optional
        Asked of the residual b - A x at each step; stop early when it agrees.

    Returns
    -------
    x : array of shape (n,)
        The last iterate, whether or not `tol` was reached.
    n_iter : int
        Products taken.
    """
    xp = namespace(b)
    x = xp.zeros_like(b)
    residual = xp.asarray(b, copy=True)
    direction = xp.asarray(b, copy=True)
    square = float(xp.sum(residual * residual))
    goal = tol**2 * square
    n_iter = 0
    while n_iter < max_iter and square > goal and not (enough is not None and enough(residual)):
        image = product(direction)
        curvature = float(xp.sum(direction * image))
        if not curvature > 0.0:  # rounding has used up what the matrix had to give
            break
        step = square / curvature
        x = x + step * direction
        residual = residual - step * image
        previous, square = square, float(xp.sum(residual * residual))
        direction = residual + (square / previous) * direction
        n_iter += 1
    return x, n_iter
