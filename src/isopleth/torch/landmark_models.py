"""Leave-one-out scores by score matching with curl-free kernels at landmarks, for few columns."""

from __future__ import annotations

from collections.abc import Sequence

from isopleth.core.arrays import Array, namespace
from isopleth.core.budget import Budget
from isopleth.core.threads import check_stopped, slices
from isopleth.score.pullback import inverses

# Number of coefficients, one vector for each landmark. With fewer landmarks than below, which means with more than four columns,
# they are too coarse to be of use.
_COEFFICIENTS, _FEWEST_LANDMARKS = 96, 24

# Share of the identity that is added to the kernel matrix of the landmarks, which may be singular.
_NUGGET = 1e-6

# Share of rows that may be equal to others.
_COPIES = 0.05

# Rows that are evaluated at once, and arrays over rows and coefficients that exist at the same time.
_ROWS, _ARRAYS = 1024, 8


def landmarks_of(rows: Array) -> Array | None:
    """Return landmarks among rows of mean 0, evenly spaced by their distance from it; None for many columns or few rows."""
    n, d = rows.shape
    if d * _FEWEST_LANDMARKS > _COEFFICIENTS or n < 2 * _FEWEST_LANDMARKS:
        return None
    xp = namespace(rows)
    count = min(_COEFFICIENTS // d, n // 2)
    step = n // count
    order = xp.argsort(xp.sum(rows * rows, axis=1))
    return xp.take(rows, order[: step * count : step], axis=0)


def many_copies(rows: Array) -> Array:
    """Return whether many rows equal others, next in order of norms: a fit without one row still knows it."""
    xp = namespace(rows)
    ordered = xp.take(rows, xp.argsort(xp.sum(rows * rows, axis=1)), axis=0)
    equal = xp.all(ordered[1:, :] == ordered[:-1, :], axis=1)
    return xp.sum(xp.astype(equal, rows.dtype)) > _COPIES * rows.shape[0]


def landmark_scores(
    rows: Array,
    base: tuple[Array, Array],
    scale: Array,
    alphas: Sequence[float],
    d: Array,
    budget: Budget,
) -> list[tuple[Array, Array]]:
    r"""Return scores and divergences at the rows of score matching on top of a base, one pair for each strength.

    With curl-free kernels :math:`\psi_i` of landmarks at row i, divergences :math:`\delta_i` and base :math:`s_0`, coefficients
    minimise

    .. math:: \sum_i \tfrac12 |s_0(x_i) + \psi_i c|^2 + \delta_i \cdot c + \tfrac{n\alpha}2\, c^\top K c .

    Without row i the matrix changes by rank d, which gives the score of the other rows there in closed form.
    """
    xp = namespace(rows)
    points = landmarks_of(rows)
    assert points is not None
    n, columns = rows.shape
    features = points.shape[0] * columns
    parts = slices(n, min(_ROWS, budget.memory / (_ARRAYS * 8 * features * columns)))
    values, divergences = base
    eye = xp.eye(features, dtype=rows.dtype, device=rows.device)
    gram, right = xp.zeros_like(eye), xp.zeros_like(eye[0, :])
    for part in parts:
        check_stopped()
        psi, delta = _features(rows[part, :], points, scale, d)
        flat = xp.reshape(psi, (-1, features))
        gram += flat.T @ flat
        right += xp.sum(delta, axis=0) + xp.reshape(values[part, :], (-1,)) @ flat
    penalty = xp.reshape(_features(points, points, scale, d)[0], (features, features)) + _NUGGET * eye
    solvers = [inverses(gram + n * alpha * penalty) for alpha in alphas]
    found: list[list[tuple[Array, Array]]] = [[] for _ in alphas]
    for part in parts:
        check_stopped()
        psi, delta = _features(rows[part, :], points, scale, d)
        own = delta + xp.sum(psi * values[part, :][:, :, None], axis=1)
        for k, inverse in enumerate(solvers):
            score, divergence = _left_out(psi, delta, right - own, inverse)
            found[k].append((values[part, :] - score, divergences[part] - divergence))
    return [(xp.concat([s for s, _ in one]), xp.concat([v for _, v in one])) for one in found]


def _left_out(psi: Array, delta: Array, rest: Array, inverse: Array) -> tuple[Array, Array]:
    """Return psi_i M_i^-1 r_i and delta_i M_i^-1 r_i for M_i = Q^-1 - psi_i' psi_i and the right-hand sides r_i = `rest`."""
    xp = namespace(psi)
    columns, features = psi.shape[1:]
    solved = xp.reshape(xp.reshape(psi, (-1, features)) @ inverse, psi.shape)
    leverage = solved @ xp.permute_dims(psi, (0, 2, 1))
    eye = xp.eye(columns, dtype=psi.dtype, device=psi.device)
    score = (inverses(eye - leverage) @ xp.sum(solved * rest[:, None, :], axis=2)[:, :, None])[:, :, 0]
    half = delta @ inverse
    return score, xp.sum(half * (rest + xp.sum(psi * score[:, :, None], axis=1)), axis=1)


def _features(x: Array, points: Array, scale: Array, d: Array) -> tuple[Array, Array]:
    """Return curl-free inverse multiquadric kernels at `x`, (m, d, F), and their divergences, (m, F)."""
    xp = namespace(x)
    m, columns = x.shape
    u = (x[:, None, :] - points[None, :, :]) / scale
    q = 1.0 / (1.0 + xp.sum(u * u, axis=2))
    root = xp.sqrt(q)
    slope, bend = q * root, 3.0 * q * q * root
    eye = xp.eye(columns, dtype=x.dtype, device=x.device)
    # Axes: row, component of the value, landmark, component of the coefficient.
    psi = slope[:, None, :, None] * eye[None, :, None, :]
    psi = psi - bend[:, None, :, None] * xp.permute_dims(u, (0, 2, 1))[:, :, :, None] * u[:, None, :, :]
    delta = (-bend * (d - 3.0 + 5.0 * q) / scale)[:, :, None] * u
    return xp.reshape(psi, (m, columns, -1)), xp.reshape(delta, (m, -1))
