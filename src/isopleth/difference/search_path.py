"""What cross-validation of a density difference found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.difference.volume import over_volume, quotient


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceSearchPath:
    r"""Cross-validation losses of a density difference over length scales and ridges, smaller being better.

    The loss of a fit g to the training folds is :math:`\int g^2 - 2(\bar g_X - \bar g_Y)` with means over the held-out
    fold: up to the constant :math:`\int (p - q)^2` an unbiased estimate of :math:`\int (g - (p - q))^2`. Losses of one
    length scale are kept over the volume :math:`V = \pi^{d/2} \prod_j \sigma_j` of its kernel, which double precision may
    not hold in hundreds of dimensions.

    Parameters
    ----------
    length_scales : ndarray of shape (k, d)
        Length scale of each column that varies, one candidate a row, in the units of the data.
    alphas : ndarray of shape (a,)
        Ridges, over V.
    log_volumes : ndarray of shape (k,)
        log V of each candidate.
    relative_losses : ndarray of shape (T, k, a)
        Losses times V, by held-out fold.
    best_index : tuple of two int
        Places of the chosen length scale and ridge, those of the smallest mean loss.
    nested_index : ndarray of shape (T, 2)
        Places chosen for each fold by the others, as the cross-fitted estimates want it.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import LSDD
    >>> rng = np.random.default_rng(0)
    >>> path = LSDD(random_state=0).fit(rng.normal(size=(100, 1)), rng.normal(1.0, size=(100, 1))).search_path_
    >>> path.losses.shape == (len(path.length_scales), len(path.alphas))
    True
    >>> bool(path.losses.min() == path.losses[path.best_index])
    True
    """

    length_scales: np.ndarray
    alphas: np.ndarray
    log_volumes: np.ndarray
    relative_losses: np.ndarray
    best_index: tuple[int, int]
    nested_index: np.ndarray

    @property
    def fold_losses(self) -> np.ndarray:
        """Losses by fold, of shape (T, k, a), in reciprocal units of volume."""
        return over_volume(self.relative_losses, self.log_volumes[None, :, None])

    @property
    def losses(self) -> np.ndarray:
        """Mean losses, of shape (k, a), in reciprocal units of volume."""
        return over_volume(self.relative_losses.mean(axis=0), self.log_volumes[:, None])

    @property
    def standard_errors(self) -> np.ndarray:
        """Of the mean losses, from how far the folds differ."""
        folds = len(self.relative_losses)
        spread = self.relative_losses.std(axis=0, ddof=1) / np.sqrt(folds)
        return over_volume(spread, self.log_volumes[:, None])

    @property
    def best_length_scale(self) -> np.ndarray:
        """The chosen length scales, of shape (d,)."""
        return self.length_scales[self.best_index[0]]

    @property
    def best_alpha(self) -> float:
        """The chosen ridge."""
        return float(self.alphas[self.best_index[1]])

    @property
    def steady_length_scale(self) -> np.ndarray:
        """The largest of the length scales in `nested_index`, of shape (d,): all folds agree on one as small or smaller."""
        chosen = self.nested_index[:, 0]
        return self.length_scales[chosen[np.argmax(self.log_volumes[chosen])]]

    def __repr__(self) -> str:
        """A line for each length scale, at its best ridge."""
        k, a = len(self.length_scales), len(self.alphas)
        lines = [f"DifferenceSearchPath: {k} length scales, {a} ridges, {len(self.relative_losses)} folds"]
        lines += [f"{'length scale':>14} {'best alpha':>12} {'loss':>12} {'std. error':>12}"]
        losses, errors = self.relative_losses.mean(axis=0), self.standard_errors
        for i, scale in enumerate(self.length_scales):
            j = int(np.argmin(losses[i]))
            loss = quotient(losses[i, j], self.log_volumes[i])
            best = "  <- best" if i == self.best_index[0] else ""
            size = float(np.exp(np.mean(np.log(scale))))
            lines += [f"{size:>14.4g} {self.alphas[j]:>12.3g} {loss:>12} {errors[i, j]:>12.2g}{best}"]
        return "\n".join(lines)
