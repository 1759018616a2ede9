"""What the densities of one kernel a distinct row share."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isopleth._namespace import Home, to_numpy
from isopleth.density.estimator import DensityEstimator
from isopleth.density.fitted import ExpansionDensity, FrameDensity
from isopleth.density.levels import cross_fitted, weighted_quantile
from isopleth.errors import InputError
from isopleth.expansion import KernelExpansion
from isopleth.validation import on_host


class KernelDensity(DensityEstimator):
    """A density made of one kernel a distinct row.

    A subclass has the parameters `kernel`, `length_scale`, `bounds`, `memory_limit` and `n_jobs`, and defines
    :attr:`_density_type`, :meth:`_refuse` and :meth:`_fit_frame`.
    """

    _density_type: ClassVar[type[ExpansionDensity]]
    """What the fitted sum of kernels means as a density."""

    def _keep(
        self, density: FrameDensity, X: np.ndarray, place: np.ndarray, z: np.ndarray, weights: np.ndarray
    ) -> None:
        self.centers_ = np.empty((len(z), X.shape[1]))
        self.centers_[place[place >= 0]] = X[place >= 0] + 0.0  # -0.0 is 0.0
        self.weights_ = weights
        self.dual_coef_ = cast(ExpansionDensity, density).expansion.coefficients

    def _fitted(self) -> ExpansionDensity:
        z = Home.of(self.dual_coef_).send(self._frame.enter(self._bounds.enter(to_numpy(self.centers_))))
        expansion = KernelExpansion(self._kernel, z, self.dual_coef_, self.memory_limit, self.n_jobs)
        return self._density_type(expansion)

    def level_set(self, mass: Any) -> Any:
        """Log-density threshold of the highest-density region that holds `mass` of the rows' own distribution.

        The region is ``score_samples(X) >= level_set(mass)``, its boundary an isopleth. The threshold is a quantile of the log
        densities of held-out rows, in five folds that keep repeated rows together, at the fitted length scale: training rows
        themselves would look too likely.

        Parameters
        ----------
        mass : float or array-like
            Mass inside, between 0 and 1.

        Returns
        -------
        float or ndarray of the shape of `mass`
            Thresholds for :meth:`score_samples`; a tensor where `mass` is one with an axis.

        Raises
        ------
        InputError
            If `mass` is not between 0 and 1.
        """
        check_is_fitted(self, "log_normalizer_")
        home = Home.of(mass, "mass")
        asked = np.asarray(on_host(mass, "mass"))
        if asked.dtype.kind not in "fi" or not ((asked > 0) & (asked < 1)).all():
            raise InputError(f"mass = {mass!r}: expected numbers between 0 and 1, both left out.")
        centers, weights = to_numpy(self.centers_), to_numpy(self.weights_)
        fit = self._fitting_at(Home.of(self.dual_coef_))
        held_out = cross_fitted(
            self._frame.enter(self._bounds.enter(centers)),
            weights,
            lambda rows, weights, test: fit(self._kernel, rows, weights).log_density(test),
        )
        held_out += self._log_slope(centers) - self._frame.log_volume
        levels = weighted_quantile(held_out, weights, 1.0 - asked)
        return home.send(levels) if asked.ndim else float(levels)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw independent rows from the density, exactly.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Constant columns keep their value. A tensor on the device of the fitted attributes where these are tensors.

        Raises
        ------
        NotImplementedError
            For the square of a sum of kernels (SOSREP) other than the Gaussian: it is no mixture that can be drawn from
            directly.
        """
        check_is_fitted(self, "log_normalizer_")
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples = {n_samples!r}: expected a whole number of rows, at least 1.")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = self._fitted().sample(int(n_samples), rng)
        some = to_numpy(self.centers_[:1, ...])
        rows = self._bounds.leave(self._frame.leave(z, self._bounds.enter(some)[0]))
        rows[:, ~self._frame.keep] = some[:, ~self._frame.keep]
        return Home.of(self.dual_coef_).send(rows)

    def plot(self, columns: Any = None, masses: Any = (0.5, 0.8, 0.95, 0.99), rows: Any = None, ax: Any = None) -> Any:
        """Draw the regions that hold stated masses, by :func:`isopleth.plotting.plot_density`.

        Parameters
        ----------
        columns : sequence of names or numbers, optional
            The columns to draw.
        masses : array-like, default=(0.5, 0.8, 0.95, 0.99)
            Masses of the regions, as for :meth:`level_set`.
        rows : array-like or data frame of shape (n_samples, n_features), optional
            Rows to draw as points.
        ax : matplotlib Axes, optional
            Where to draw; a new figure when left out.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.plotting import plot_density  # plotting stands above the estimators and is not needed by them

        return plot_density(self, columns=columns, masses=masses, rows=rows, ax=ax)
