"""A preconditioner for curl-free systems in many columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isopleth.backend import Array, namespace
from isopleth.operators.threads import interruptible
from isopleth.operators.vector_blocks import StoredBend
from isopleth.solvers import conjugate_gradients
from isopleth.solvers.direct import norm, plus_identity, singular

# Below so many rows products cost little but their call, in any precision.
_SINGLE_ROWS = 256

# Relative residual that single precision is asked for at once: it has two digits more, if the system is not too stiff.
_SINGLE_TOL = 1e-4

# By what factor a round in single precision has to reduce the residual; if it does not, double precision goes on.
_WORTH = 0.1


@dataclass(frozen=True)
class Splitting:
    r"""The matrix :math:`A + \alpha = S + R` of a curl-free system, with :math:`S = \sqrt{w} (-2\varphi')\sqrt{w} + \alpha`.

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
        """Solve (A + alpha) y = b, given the product with that matrix; answers with y and the products taken.

        Where it pays, steps are in single precision and correct the residual of double precision, which alone decides when
        to stop.
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
        """Solution, its true residual and the products taken, as far as single precision gets."""
        xp = namespace(b)
        parts = (self.slope, self.bend, self.points, self.root)
        slope, bend, points, root = (xp.astype(a, xp.float32) for a in parts)
        low = Splitting(slope, bend, points, root, self.alpha)
        steps = low._steps()
        y, residual, size, n_iter = xp.zeros_like(b), b, norm(b), 0
        while steps is not None and size > goal and n_iter < max_iter:
            # A hair below the goal: the residual of single precision is not quite the true one.
            aim = max(0.7 * goal / size, _SINGLE_TOL)
            step, more = steps(xp.astype(residual / size, xp.float32), aim, max_iter - n_iter)
            n_iter += more
            tried = y + size * xp.astype(step, xp.float64)
            left = b - product(tried)
            if not norm(left) < size:
                break
            worth = norm(left) < _WORTH * size
            y, residual, size = tried, left, norm(left)
            if not worth:
                break
        return y, residual, n_iter

    def _steps(self) -> Callable[[Array, float, int], tuple[Array, int]] | None:
        """Conjugate gradients with S for a preconditioner, in the precision of the parts; None if S is singular in it."""
        xp = namespace(self.slope)
        part = plus_identity(self.slope * (self.root @ self.root.T), self.alpha, overwrite=True)
        # The inverse, not a factor: its product is twice as quick as two triangular solves, and its rounding does no harm here.
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
