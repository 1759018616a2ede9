"""Choice of a length scale by the loss of held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from isopleth.core.budget import Budget
from isopleth.core.errors import InputError, warn_user
from isopleth.core.parameters import given_numbers
from isopleth.core.progress import Progress
from isopleth.core.rows import held_out_parts
from isopleth.core.scales import RULES
from isopleth.core.threads import map_threads
from isopleth.density.choices import Choices, summary
from isopleth.kernels import Kernel

CRITERIA = ("hyvarinen", "likelihood", "stable_minimum")
_LARGEST = float(np.finfo(np.float64).max)
# Number of scales on either side whose loss must exceed that of a stable minimum.
NEIGHBOURS = 3

# On 91 synthetic and 22 real tables of 1 to 166 columns, the best factors of Gaussian densities were between 0.1 and 4. Those of
# Laplacian ones were between 0.03 and 2.2 and fell with the number of columns; beyond 50 columns some were smaller. The upper
# end leaves space for the three neighbours of a stable minimum.
DEFAULT_GRID = tuple(2.0 ** (k / 2) for k in range(-10, 7))


# Fits a density to rows in frame coordinates with weights, `fit(kernel, z, weights)`, which has the methods of FrameDensity.
Fit = Callable[[Kernel, np.ndarray, np.ndarray], Any]

# For a multiple of the base scale: the kernel, distinct rows in frame coordinates, in the order of `rows.distinct_rows`, and the
# logarithm of the volume of the scale, of all rows or of the known cells of each.
Scaled = Callable[[float], tuple[Kernel, np.ndarray, Any]]

# For a mask of the rows of a fit: how these are moved before it, `move(z, scale)`.
Mover = Callable[[np.ndarray], Callable[[np.ndarray, np.ndarray], np.ndarray]]


@dataclass(frozen=True)
class Search:
    r"""Choice of a length scale by cross-validation, given to an estimator as ``length_scale``.

    Densities are fitted at multiples of a base scale to all rows but those of one fold, and the multiple with the best criterion
    on the held-out rows is taken. The exact Hyvarinen loss of a density p (score matching, [1]_; proposed for this choice by
    [2]_, who estimate it),

    .. math:: J(p) = \frac{1}{n} \sum_i \operatorname{tr} \nabla^2 \log p(y_i) + \tfrac12 |\nabla \log p(y_i)|^2,

    estimates half the Fisher divergence from the density of the rows y, up to a constant. It is computed in the coordinates
    x/unit, where unit is the fitted attribute ``unit_``, which does not change along the path.

    Parameters
    ----------
    criterion : {"hyvarinen", "likelihood", "stable_minimum"}, optional
        The criterion. "hyvarinen": the smallest held-out Hyvarinen loss. "likelihood": the largest mean held-out log density.
        "stable_minimum", the rule of [2]_: the largest scale whose Hyvarinen loss is below those of three neighbours on either
        side. Scales are computed from the largest down, until one is found; if there is none, a warning says so and the
        smallest loss is taken. None is "likelihood" for kernels that change sign, since J is infinite where f does, and for
        kernels as rough as the Laplacian in one column (see the notes), and "hyvarinen" for all others.
    grid : array-like of shape (k,), optional
        Multiples of the base scale to compare: at least two positive numbers. The default is 17 numbers from 1/32 to 8 with
        ratio :math:`\sqrt2`.
    base : {"auto", "scott", "median"}, float or array-like of shape (n_features,), default="auto"
        The base scale, as for ``length_scale``. With ``base=1.0`` the grid is in the units of the data.
    cv : int or float, default=5
        Number of folds, at least 2; or, between 0 and 1, the share of rows in one hold-out set, which is faster. Folds consist
        of distinct rows, so copies of a row stay together, and do not depend on the order of the rows or columns.

    Raises
    ------
    InputError
        If a parameter is invalid.

    Notes
    -----
    A scale at which f is not positive at some held-out row has an infinite Hyvarinen loss and is not chosen. In one column,
    the Hyvarinen loss of kernels as rough as the Laplacian includes point masses at the centres. Held-out rows do not lie
    exactly at a centre, so a held-out loss would miss these, and this criterion raises an error there. Rows that are equal up
    to rounding may be in different folds; they shift every criterion to small scales, most of all for rough kernels. Round
    such columns first. The loss of columns with bounds is that of the logarithms or logits in which they are fitted. A scale
    that is good for the density is not necessarily good for detecting anomalies.

    The estimator stores the losses as ``search_path_``, a :class:`~isopleth.density.Choices`.

    References
    ----------
    .. [1] A. Hyvarinen (2005). Estimation of Non-Normalized Statistical Models by Score Matching. JMLR 6.
    .. [2] M. Kozdoba, B. Perets and S. Mannor (2024). Sobolev Space Regularised Pre Density Models. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP, Search
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> density = SOSREP(length_scale=Search(grid=[0.5, 1, 2, 4], cv=0.2), frame="scale").fit(X)
    >>> density.search_path_.best_factor
    2.0
    """

    criterion: str | None = None
    grid: Any = None
    base: Any = "auto"
    cv: int | float = 5

    def __post_init__(self) -> None:
        if self.criterion is not None and self.criterion not in CRITERIA:
            raise InputError(f"criterion = {self.criterion!r}: expected one of {', '.join(CRITERIA)}, or None.")
        # Tuples instead of arrays, so that searches can be compared and hashed.
        if self.grid is not None:
            object.__setattr__(self, "grid", _checked_grid(self.grid))
        object.__setattr__(self, "base", _checked_base(self.base))
        object.__setattr__(self, "cv", _checked_cv(self.cv))
        if self.criterion == "stable_minimum" and len(self.factors) <= 2 * NEIGHBOURS:
            raise InputError(
                f"grid has {len(self.factors)} factors, too few for 'stable_minimum', which compares a scale with three on "
                f"either side; give at least {2 * NEIGHBOURS + 1}."
            )

    @property
    def factors(self) -> np.ndarray:
        """Distinct multiples of the base scale, ascending."""
        return np.unique(np.asarray(DEFAULT_GRID if self.grid is None else self.grid))

    def criterion_for(self, kernel: Kernel) -> str:
        """Return the criterion for a kernel that is bound to its dimension.

        Raises
        ------
        InputError
            If the criterion is a Hyvarinen loss and the kernel is not smooth enough for it.
        """
        has_atoms = kernel.bound_dim == 1 and kernel.smoothness <= 0.5
        if self.criterion is None:
            return "hyvarinen" if kernel.nonnegative and not has_atoms else "likelihood"
        if self.criterion != "likelihood" and has_atoms:
            raise InputError(
                f"criterion = {self.criterion!r} does not work for {kernel!r} in one column: the loss leaves out its kinks at "
                "the centres; take criterion='likelihood', or a smoother kernel such as 'gaussian' or 'matern52'."
            )
        return self.criterion

    def criterion_for_gaps(self) -> str:
        """Return the criterion for words and missing cells.

        Raises
        ------
        InputError
            If the criterion is a Hyvarinen loss.
        """
        if self.criterion not in (None, "likelihood"):
            raise InputError(
                f"criterion = {self.criterion!r} needs complete rows of numbers; take Search(criterion='likelihood') for words "
                "and missing cells."
            )
        return "likelihood"


def _checked_grid(grid: Any) -> tuple[float, ...]:
    """Return the factors that are compared."""
    expected = "at least two different positive factors of the base scale"
    factors = given_numbers("grid", grid, expected)
    if factors.ndim != 1 or not _are_scales(factors) or len(np.unique(factors)) < 2:
        raise InputError(f"grid = {grid!r}: expected {expected}.")
    return tuple(factors.tolist())


def _checked_base(base: Any) -> Any:
    """Return the base of the grid: a rule or scales."""
    if isinstance(base, str) and base in RULES:
        return base
    expected = "'auto', 'scott', 'median', a positive number or one for each column"
    scales = given_numbers("base", base, expected)
    if scales.ndim > 1 or scales.size == 0 or not _are_scales(scales):
        raise InputError(f"base = {base!r}: expected {expected}.")
    return tuple(scales.tolist()) if scales.ndim else float(scales)


def _are_scales(numbers: np.ndarray) -> bool:
    return bool((np.isfinite(numbers) & (numbers > 0)).all())


def _checked_cv(cv: Any) -> int | float:
    """Return the number of folds or the share that is held out."""
    if isinstance(cv, Integral) and not isinstance(cv, bool) and int(cv) >= 2:
        return int(cv)
    if isinstance(cv, Real) and not isinstance(cv, Integral) and 0 < float(cv) < 1:
        return float(cv)
    raise InputError(f"cv = {cv!r}: expected a number of folds, at least 2, or a held-out share between 0 and 1.")


def run_search(
    search: Search,
    criterion: str,
    base_scale: np.ndarray,
    weights: np.ndarray,
    at: Scaled,
    fit: Fit,
    budget: Budget,
    unit: np.ndarray | None = None,
    mover: Mover | None = None,
) -> Choices:
    """Compute held-out losses along the grid of `search` and choose a scale; Hyvarinen losses are in the units `unit`.

    As many fits run at once as `budget` has threads.
    """
    factors = search.factors
    folds, workers = held_out_parts(len(weights), search.cv), budget.threads
    losses, errors, shares = np.full((3, len(factors)), np.nan)

    def held_out(task: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        i, k = task
        kernel, z, _ = at(factors[i])
        train, move = z[~folds[k]], moves[k]
        fitted = fit(kernel, train if move is None else move(train, factors[i] * base_scale), weights[~folds[k]])
        tick()
        return _losses(criterion, fitted, z[folds[k]])

    moves = map_threads(lambda fold: mover and mover(~fold), folds, min(workers, len(folds)))

    # A search for a stable minimum ends early, so it takes one scale after the other.
    stable, downwards = None, list(reversed(range(len(factors))))
    rounds = [[i] for i in downwards] if criterion == "stable_minimum" else [downwards]
    with Progress("search of a length scale", len(factors) * len(folds), budget.verbose) as tick:
        for chosen in rounds:
            tasks = [(i, k) for i in chosen for k in range(len(folds))]
            found = map_threads(held_out, tasks, min(workers, len(tasks)))
            for k, i in enumerate(chosen):
                terms, positive = _joined(len(weights), folds, found[k * len(folds) : (k + 1) * len(folds)])
                if unit is None or criterion == "likelihood":
                    terms += at(factors[i])[2]
                else:
                    with np.errstate(over="ignore"):
                        terms *= min((unit[0] / (factors[i] * base_scale[0])) ** 2, _LARGEST)
                losses[i], errors[i], shares[i] = summary(terms, positive, weights)
            if criterion == "stable_minimum" and _is_stable(losses, chosen[0] + NEIGHBOURS):
                stable = chosen[0] + NEIGHBOURS
                break
    best = smallest_loss(losses, criterion, bool((shares > 0).any())) if stable is None else stable
    path = Choices(criterion, factors, factors[:, None] * base_scale, losses, errors, shares, best)
    warn_of_choice(path, search, stable)
    return path


def _losses(criterion: str, fitted: Any, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each held-out row and whether f is positive there."""
    positive = fitted.positive(z)
    if criterion == "likelihood":
        found = -fitted.log_density(z)
    elif positive.all():
        found = fitted.hyvarinen_terms(z)
    else:  # the loss of this scale is infinite; only the rows that are not positive are counted
        found = np.full(len(positive), np.inf)
    return np.where(np.isfinite(found), found, np.inf), positive


def _joined(
    n: int, folds: list[np.ndarray], found: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each held-out row (NaN for rows that are never held out) and whether f is positive there."""
    terms, positive = np.full(n, np.nan), np.ones(n, dtype=bool)
    for fold, (losses, above) in zip(folds, found, strict=True):
        terms[fold], positive[fold] = losses, above
    return terms, positive


def _is_stable(losses: np.ndarray, i: int) -> bool:
    """Return whether loss `i` has all its neighbours on either side and is below them."""
    if not NEIGHBOURS <= i < len(losses) - NEIGHBOURS:
        return False
    around = np.delete(losses[i - NEIGHBOURS : i + NEIGHBOURS + 1], NEIGHBOURS)
    return bool(np.isfinite(losses[i]) and (around > losses[i]).all())


def smallest_loss(losses: np.ndarray, criterion: str, changes_sign: bool) -> int:
    """Return the place of the smallest loss; refuse losses of which none is finite."""
    if np.isinf(losses).all():
        if criterion == "likelihood":
            raise InputError(
                "the held-out log density is minus infinity at every scale of the grid; add larger factors to it."
            )
        if not changes_sign:
            raise InputError(
                "the held-out Hyvarinen loss overflows at every scale of the grid, because the rows are far apart; add larger "
                "factors to it, or take a larger base."
            )
        raise InputError(
            "the held-out Hyvarinen loss is infinite at every scale of the grid, since f is not positive at some rows; take "
            "criterion='likelihood', or add larger factors."
        )
    return int(np.argmin(losses))


def warn_of_choice(path: Choices, search: Search, stable: int | None) -> None:
    """Warn if there is no stable minimum, or if the best scale is at an end of the grid."""
    if path.criterion == "stable_minimum" and stable is None:
        warn_user(
            f"no loss of the grid is below those of three neighbours on either side; the smallest one, at factor "
            f"{path.best_factor:.4g}, is taken."
        )
    end = {0: ("smallest", "smaller"), len(path.factors) - 1: ("largest", "larger")}.get(path.best_index)
    if end is not None:
        warn_user(
            f"the best scale is the {end[0]} of the grid, {path.best_factor:.4g} times the base scale {search.base!r}; extend "
            f"Search(grid=...) to {end[1]} factors."
        )
