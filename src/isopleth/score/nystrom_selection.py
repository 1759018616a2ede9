r"""Choosing the ridge of a Nystrom form by rows held out, from sums alone.

Of a score :math:`s = s_0 + K_{\cdot Z}\, c` on top of a base :math:`s_0` the mean Hyvarinen loss over rows is, but for what
the base alone has,

.. math:: h \cdot c + \tfrac12\, c^\top\! A\, c,

with the very sums A and h over these rows that a fit rests on: no row has to be looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isopleth._namespace import HOST, Home, namespace
from isopleth.errors import InputError
from isopleth.folds import FOLDS
from isopleth.score.base_measure import GaussianBase
from isopleth.score.nystrom_system import NystromSystem
from isopleth.score.selection import ALPHA_ERRORS, FLOOR, LARGEST_ALPHA
from isopleth.score.spaces import Space
from isopleth.score.squares import bytes_of_squares
from isopleth.score.statistics import MATRICES, NystromStatistics, pooled_system
from isopleth.solvers.direct import factorised, plus_identity, singular
from isopleth.solvers.inner import inner
from isopleth.solvers.regularizers import Tikhonov

STEPS_A_DECADE = 2
"""Half as many as with a kernel at every row: each is a factorisation a part, and losses are flat within a factor of two."""


@dataclass(frozen=True, eq=False, repr=False)
class RidgePath:
    """Held-out Hyvarinen losses of a Nystrom form by its ridge, smaller being better, and the choice made by them.

    Parameters
    ----------
    alphas : ndarray of shape (r,)
        Ridges, the strongest first.
    losses : ndarray of shape (r,)
        Mean loss over the rows of all parts, in units of the length scales, less that of the base alone.
    errors : ndarray of shape (r,)
        Standard error of its difference to the smallest one, from the differences between parts.
    best_index : int
        Place of the ridge chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import NystromKEF
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> path = NystromKEF(landmarks=20, random_state=0).fit(X).search_path_
    >>> path.losses[path.best_index] <= path.losses.min() + path.errors[path.best_index]
    np.True_
    """

    alphas: np.ndarray
    losses: np.ndarray
    errors: np.ndarray
    best_index: int

    @property
    def regularizer(self) -> Tikhonov:
        """The regulariser chosen."""
        return Tikhonov(float(self.alphas[self.best_index]))

    def __repr__(self) -> str:
        """A table of ridges."""
        lines = [f"RidgePath: {self.regularizer!r}", f"{'alpha':>12} {'loss':>12} {'std. error':>12}"]
        for i, row in enumerate(zip(self.alphas, self.losses, self.errors, strict=True)):
            lines += ["{:>12.4g} {:>12.5g} {:>12.2g}".format(*row) + ("  <- chosen" if i == self.best_index else "")]
        return "\n".join(lines)


def choose_ridge(parts: Sequence[NystromStatistics]) -> RidgePath:
    """The largest ridge whose held-out loss is within ALPHA_ERRORS standard errors of the smallest one.

    Ridges go from LARGEST_ALPHA down to FLOOR over the number of samples.

    Parameters
    ----------
    parts : sequence of NystromStatistics
        Sums of two parts of the samples or more, over the same landmarks. Each part is held out once.

    Returns
    -------
    RidgePath

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import IMQ
    >>> from isopleth.score.nystrom_selection import choose_ridge
    >>> from isopleth.score.spaces import CurlFree
    >>> from isopleth.score.statistics import NystromStatistics
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> parts = [NystromStatistics(CurlFree(IMQ(dim=2)), z[:20]).accumulate(part) for part in np.split(z, 4)]
    >>> 1e-4 < choose_ridge(parts).regularizer.alpha < 1.0
    True
    """
    weights = np.array([part.total_weight for part in parts])
    share = weights / weights.sum()
    decades = math.log10(LARGEST_ALPHA * sum(part.n_samples for part in parts) / FLOOR)
    alphas = LARGEST_ALPHA * 10.0 ** (-np.arange(int(STEPS_A_DECADE * decades) + 1) / STEPS_A_DECADE)
    losses = _losses(parts, share.tolist(), alphas.tolist())
    means = share @ losses
    best = int(np.argmin(means))
    with np.errstate(invalid="ignore"):  # of infinite losses there is none
        apart = losses - losses[:, [best]]
        errors = np.sqrt(share**2 @ (apart - share @ apart) ** 2 * len(parts) / (len(parts) - 1))
        near = means - means[best] <= ALPHA_ERRORS * errors
    near[best] = True
    return RidgePath(alphas, means, errors, int(np.argmax(near)))


def parts_within_memory(
    space: Space, landmarks: np.ndarray, base: GaussianBase | None = None, home: Home = HOST
) -> list[NystromStatistics]:
    """Empty statistics for FOLDS parts, or for as many as the memory limit of the space has room for.

    Raises
    ------
    InputError
        If it has room for less than two.
    """
    each = bytes_of_squares(space, *landmarks.shape)
    folds = min(FOLDS, int(space.memory_limit // each) - MATRICES + 1)
    if folds < 2:
        raise InputError(
            f"choosing a ridge for {len(landmarks)} landmarks in {landmarks.shape[1]} columns takes "
            f"{(MATRICES + 1) * each / 2**20:.0f} MiB, and memory_limit is {space.memory_limit / 2**20:.0f} MiB; give a "
            f"regularizer, use fewer landmarks, or raise memory_limit."
        )
    beside = replace(space, memory_limit=space.memory_limit - (folds - 1) * each)
    return [NystromStatistics(beside, landmarks, base, home) for _ in range(folds)]


def _losses(parts: Sequence[NystromStatistics], share: list[float], alphas: list[float]) -> np.ndarray:
    """Loss of each part by fits to the others, of shape (parts, ridges); inf where rounding leaves no solution."""
    whole = pooled_system(parts)
    out = np.full((len(parts), len(alphas)), np.inf)
    for f, (w, part) in enumerate(zip(share, parts, strict=True)):
        held = pooled_system([part], whole.gram)
        squares = whole.squares - w * held.squares
        squares /= 1.0 - w
        others = NystromSystem(whole.gram, squares, (whole.rhs - w * held.rhs) / (1.0 - w), held.eps)
        out[f] = [_loss(others, alpha, held) for alpha in alphas]
    return np.where(np.isfinite(out), out, np.inf)


def _loss(others: NystromSystem, alpha: float, held: NystromSystem) -> float:
    """Of a part by the fit to the others, without the decomposition that the final fit takes."""
    matrix = others.squares + alpha * others.gram
    # What the fit leaves out as rounding is damped here.
    least = max(others.eps, matrix.shape[0] * float(np.finfo(np.float64).eps))
    entries = namespace(matrix).reshape(matrix, (-1,))
    ridge = least * math.sqrt(float(entries @ entries))
    try:
        c = -factorised(plus_identity(matrix, ridge, overwrite=True))(others.rhs)
    except singular(matrix):
        return math.inf
    return inner(held.rhs, c) + 0.5 * inner(c, held.squares @ c)
