"""Preconditioner for curl-free systems with many columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isopleth.backend import Array, namespace
from isopleth.operators.threads import interruptible
from isopleth.operators.vector_blocks import StoredBend
from isopleth.solvers import conjugate_gradients
from isopleth.solvers.direct import norm, plus_identity, singular

# Fewest rows for which single precision is faster; with fewer, a product costs little more than its call.
_SINGLE_ROWS = 256

# Relative residual of one round in single precision, which has about two digits more for well-conditioned systems.
_SINGLE_TOL = 1e-4

# Largest ratio of the residuals after and before a useful round in single precision; else double precision takes over.
_USEFUL = 0.1


@dataclass(frozen=True)
class Splitting:
    r"""Splitting of a curl-free system, :math:`A + \alpha = S + R` with :math:`S = \sqrt{w} (-2\varphi')\sqrt{w} + \alpha`.

    Parameters
    ----------
    slope, bend : arrays of shape (n, n)
        :math:`-2\varphi'` and :math:`-4\varphi''` of all pairs.
    points : array of shape (n, d)
        The samples.
    root : array of shape (n, 1)
        Roots of the weights.
    alpha : float
        The ridge.
    """

    slope: Array
    bend: Array
    points: Array
    root: Array
    alpha: float

    def solve(self, product: Callable[[Array], Array], b: Array, tol: float, max_iter: int) -> tuple[Array, int]:
        """Solve (A + alpha) y = b, given the product with that matrix; return y and the number of products.

        Large systems are first solved in single precision, in rounds that correct the residual in double precision. The residual
        in double precision decides when to stop.
        """
        y, residual, n_iter = namespace(b).zeros_like(b), b, 0
        goal = tol * norm(b)
        if b.dtype == namespace(b).float64 and b.shape[0] >= _SINGLE_ROWS:
            y, residual, n_iter = self._in_single(product, b, goal, max_iter)
        size = norm(residual)
        if not size > goal:
            return y, n_iter
        steps = self._steps() or (lambda b, tol, most: conjugate_gradients(product, b, tol=tol, max_iter=most))
        step, more = steps(residual, goal / size, max_iter - n_iter)
        return y + step, n_iter + more

    def _in_single(
        self, product: Callable[[Array], Array], b: Array, goal: float, max_iter: int
    ) -> tuple[Array, Array, int]:
        """Return the solution by rounds in single precision, its residual in double precision and the number of products."""
        xp = namespace(b)
        parts = (self.slope, self.bend, self.points, self.root)
        slope, bend, points, root = (xp.astype(a, xp.float32) for a in parts)
        low = Splitting(slope, bend, points, root, self.alpha)
        steps = low._steps()
        y, residual, size, n_iter = xp.zeros_like(b), b, norm(b), 0
        while steps is not None and size > goal and n_iter < max_iter:
            # Slightly below the goal, because the residual of single precision is not exact.
            aim = max(0.7 * goal / size, _SINGLE_TOL)
            step, more = steps(xp.astype(residual / size, xp.float32), aim, max_iter - n_iter)
            n_iter += more
            tried = y + size * xp.astype(step, xp.float64)
            left = b - product(tried)
            if not norm(left) < size:
                break
            useful = norm(left) < _USEFUL * size
            y, residual, size = tried, left, norm(left)
            if not useful:
                break
        return y, residual, n_iter

    def _steps(self) -> Callable[[Array, float, int], tuple[Array, int]] | None:
        """Return conjugate gradients preconditioned by S, in the precision of the arrays, or None if S is singular in it."""
        xp = namespace(self.slope)
        part = plus_identity(self.slope * (self.root @ self.root.T), self.alpha, overwrite=True)
        # An explicit inverse: its product is twice as fast as two triangular solves, and a preconditioner may be inexact. It is
        # about half of the work of a fit, so BLAS keeps all its threads here: their number may change the result by rounding.
        try:
            inverse = interruptible(2.0 * part.shape[0] ** 3, xp.linalg.inv, part)
        except singular(part):
            return None
        rest = StoredBend(self.bend, self.points, self.points)

        def steps(b: Array, tol: float, max_iter: int) -> tuple[Array, int]:
            return conjugate_gradients(
                lambda v: self.root * (rest @ (self.root * v)),
                b,
                tol=tol,
                max_iter=max_iter,
                preconditioner=lambda r: inverse @ r,
                split=True,
            )

        return steps
