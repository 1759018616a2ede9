"""Squared L2 distances between the sliding windows of a series by LSDD, with the same centres for all windows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from isopleth.core.arrays import Array, Backend
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError
from isopleth.core.parameters import check_memory_limit, on_host
from isopleth.core.threads import ONE_BLAS_THREAD, slices
from isopleth.difference.gaussian_system import GaussianSystem, PenalizedSpectrum

# Lengths k and r of the paper. Short series have windows of a sixth of their length, and subsequences of a fifth of a window.
_SUBSEQUENCE, _WINDOW = 5, 50
_LEAST_WINDOW = 3
_WINDOWS = 6
_ROWS_A_STEP = 5

# Ridge in units of the volume of the kernel. It does not depend on the rows, so that scores can be compared.
RIDGE = 0.1


def subsequences(values: np.ndarray, length: int) -> np.ndarray:
    """Return rows (y(t), ..., y(t + length - 1)), of shape (T - length + 1, length d)."""
    windows = np.lib.stride_tricks.sliding_window_view(values, length, axis=0)
    return np.ascontiguousarray(windows.transpose(0, 2, 1)).reshape(len(windows), -1)


def distances_of_windows(
    rows: np.ndarray, window: int, centers: np.ndarray, length_scale: float, budget: Budget
) -> np.ndarray:
    r"""Compute LSDD, over the volume, between the windows of rows that begin at t and t + `window`, for all t.

    With :math:`M = 2G - GHG` it is :math:`(m - m')^\top M (m - m')`, of means that cumulative sums give for all windows, less its
    expectation :math:`\operatorname{tr} M (V/r + V'/r)` without a change.
    """
    system = GaussianSystem(centers / length_scale, 0.0, budget)
    spectrum = PenalizedSpectrum.of(system.gram())
    root = spectrum.vectors * np.sqrt(spectrum.dual_weights(RIDGE))
    out = np.empty(len(rows) - 2 * window + 1)
    with ONE_BLAS_THREAD:
        for part in slices(len(out), budget.memory / (64 * len(centers))):
            features = system.matrix(rows[part.start : part.stop + 2 * window - 1] / length_scale) @ root
            out[part] = _contrasts(features, window)
    return out


def _contrasts(features: np.ndarray, window: int) -> np.ndarray:
    """Compute squared distances between means of neighbouring windows, less their expectation without a change."""
    features = features - features.mean(axis=0)  # sums of numbers around 0 keep more digits
    sums = np.concatenate([np.zeros((1, features.shape[1])), np.cumsum(features, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum(np.einsum("ij,ij->i", features, features))])
    means = (sums[window:] - sums[:-window]) / window
    mean_squares = (squares[window:] - squares[:-window]) / window
    variances = (mean_squares - np.einsum("ij,ij->i", means, means)) / max(window - 1, 1)
    distances = np.sum((means[window:] - means[:-window]) ** 2, axis=1)
    return np.asarray(distances - variances[window:] - variances[:-window])


def drawn_centers(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw at most `count` distinct rows, but at least two if there are two."""
    drawn = rows[rng.permutation(len(rows))]
    for some in (drawn[: 4 * count], drawn):  # sorting all rows of a long series takes long and is rarely needed
        # In the order drawn, not sorted: a series upside down has the same centres, upside down.
        first = np.sort(np.unique(some, axis=0, return_index=True)[1])
        if len(first) > 1:
            break
    return np.asarray(some[first[: max(count, 2)]])


def along_series(scores: np.ndarray, length: int, subsequence: int, window: int) -> np.ndarray:
    """Return scores by the first step after a possible change, NaN near the ends; subsequences across it are left out."""
    out = np.full(length, np.nan)
    start = window + subsequence // 2
    out[start : start + len(scores)] = scores
    return out


def sliding_lsdd(
    series: Any,
    *,
    window: int | None = None,
    subsequence: int | None = None,
    centers: int = 100,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    random_state: Any = None,
) -> Array:
    r"""Compute the squared L2 distance between the densities before and after each step of a series.

    At each step, the density of the r subsequences of length k before it and that of the r subsequences after it are compared by
    LSDD (section 4.2.2 of [1]_). Centres, length scale and ridge are the same for all windows: the length scale is the median
    distance between centres over the root of 2, the ridge 0.1 in units of the volume of the kernel. The expectation of the
    distance without a change is subtracted, from the variances within the windows. The curve has no threshold;
    :class:`~isopleth.ChangePointDetector` does not use it.

    Parameters
    ----------
    series : array-like, tensor or data frame of shape (T,) or (T, d)
        Values at steps of equal length, without gaps. Columns are compared in standard deviations; constant ones are left out.
    window : int, optional
        r, the number of subsequences in a window; by default 50, less for short series.
    subsequence : int, optional
        k, the length of the subsequences; by default 5, less for short windows.
    centers : int, default=100
        Number of subsequences, drawn at random, that are centres.
    memory_limit : float, default=2**30
        Bytes for a block of windows.
    random_state : int, RandomState or None, default=None
        Seed of the centres.

    Returns
    -------
    array of shape (T,)
        Distances over the volume of the kernel, by the first step after a possible change; around 0 without one. NaN where a
        window would leave the series.

    Raises
    ------
    InputError
        If the series is shorter than two windows or has missing or infinite values, or a parameter cannot be used.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu and I. Takeuchi, "Density-difference estimation",
       Neural Computation 25 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.tasks import sliding_lsdd
    >>> series = np.repeat([0.0, 3.0], 200) + np.random.default_rng(0).normal(size=400)
    >>> curve = sliding_lsdd(series, random_state=0)
    >>> abs(int(np.nanargmax(curve)) - 200) <= 5
    True
    """
    backend = Backend.of(series)
    values = np.asarray(on_host(series, "series"), dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not np.isfinite(values).all():
        raise InputError("series is not an array of shape (T,) or (T, d) of finite numbers; fill its gaps first.")
    check_memory_limit(memory_limit)
    length = len(values)
    for name, value, least in (("window", window, 2), ("subsequence", subsequence, 1), ("centers", centers, 1)):
        optional = name != "centers"
        if not (optional and value is None) and (not isinstance(value, Integral) or value < least):
            raise InputError(f"{name} = {value!r}: expected a whole number >= {least}{' or None' * optional}.")
    window = min(_WINDOW, max(_LEAST_WINDOW, length // _WINDOWS)) if window is None else int(window)
    subsequence = min(_SUBSEQUENCE, max(1, window // _ROWS_A_STEP)) if subsequence is None else int(subsequence)
    needed = 2 * window + subsequence - 1
    if length < needed:
        raise InputError(
            f"series has {length} rows, fewer than the {needed} of two windows of {window} subsequences of length "
            f"{subsequence}; give smaller window or subsequence."
        )
    spread = values.std(axis=0)
    values = (values - values.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0]
    if not values.shape[1]:
        return backend.array(along_series(np.zeros(length - needed + 1), length, subsequence, window))
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    rows = subsequences(values, subsequence)
    chosen = drawn_centers(rows, centers, rng)
    scale = float(np.median(pdist(chosen)) / np.sqrt(2.0))
    scores = distances_of_windows(rows, window, chosen, scale, Budget(memory_limit))
    return backend.array(along_series(scores, length, subsequence, window))
