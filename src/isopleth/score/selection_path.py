"""What the folds chose for a score, and what from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.solvers.regularizers import Regularizer


@dataclass(frozen=True, eq=False, repr=False)
class SelectionPath:
    r"""Held-out Hyvarinen losses of scores, smaller being better, and the choice made by them.

    All losses are weighted means over rows held out, in the coordinates x/unit (the fitted attribute ``unit_``).

    Parameters
    ----------
    bases : tuple of {None, "gaussian"}, length b
        Base measures that were compared.
    factors : ndarray of shape (f,)
        Multiples of the base scale that were compared.
    losses : ndarray of shape (b, f)
        For each base and factor the smallest loss that a regulariser reaches.
    n_compared : int
        Rows that bases and factors were compared on.
    base : {None, "gaussian"}
        The base chosen.
    length_scale : ndarray of shape (d,)
        The length scale chosen, in the units of the data.
    regularizers : tuple of Regularizer, length r
        Those compared at the base and the length scale chosen, the strongest first. Where a Gaussian base and its strength were
        free, the first is so strong that the Gaussian is left alone, whatever base was chosen for the others.
    path_losses : ndarray of shape (r,)
        The loss of each, on all rows.
    path_errors : ndarray of shape (r,)
        Standard error of its difference to the smallest one: losses of the same rows have much in common, so their differences
        are known better than they are themselves.
    best_index : int
        Place of the regulariser chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import KernelScore
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> KernelScore().fit(X).search_path_.base
    'gaussian'
    """

    bases: tuple[str | None, ...]
    factors: np.ndarray
    losses: np.ndarray
    n_compared: int
    base: str | None
    length_scale: np.ndarray
    regularizers: tuple[Regularizer, ...]
    path_losses: np.ndarray
    path_errors: np.ndarray
    best_index: int

    @property
    def regularizer(self) -> Regularizer:
        """The regulariser chosen."""
        return self.regularizers[self.best_index]

    def __repr__(self) -> str:
        """Two tables: bases by factors, and the regularisers at what was chosen of these."""
        lines = [f"SelectionPath: base {self.base!r}, {self.regularizer!r}"]
        lines += [f"smallest loss, of {self.n_compared} rows held out in turn:"]
        lines += [f"{'factor':>10}" + "".join(f"{f'base {base!r}':>18}" for base in self.bases)]
        for factor, losses in zip(self.factors, self.losses.T, strict=True):
            lines += [f"{factor:>10.4g}" + "".join(f"{loss:>18.5g}" for loss in losses)]
        lines += [f"{'loss':>12} {'std. error':>12}"]
        listed = zip(self.path_losses, self.path_errors, self.regularizers, strict=True)
        for i, (loss, error, regularizer) in enumerate(listed):
            lines += [f"{loss:>12.5g} {error:>12.2g}  {regularizer!r}{'  <- chosen' if i == self.best_index else ''}"]
        return "\n".join(lines)
