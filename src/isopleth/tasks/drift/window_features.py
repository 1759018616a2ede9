"""Features of rows by which the windows of a stream are compared with a reference, and their length scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isopleth.core.arrays import to_numpy
from isopleth.core.budget import Budget
from isopleth.core.errors import InputError
from isopleth.core.rows import row_keys
from isopleth.core.scales import ScaledColumns, is_auto
from isopleth.tables.checks import CheckedRows
from isopleth.tables.row_encoding import RowEncoding
from isopleth.tasks.drift.calibration import DriftFeatures, spread
from isopleth.tasks.drift.reference_context import ReferenceResiduals, n_compared

# Features that vary by less than this share of their size vary by rounding only.
_ALIKE = 1e-10


@dataclass(frozen=True, eq=False)
class WindowFeatures:
    """The map from checked rows to the features whose means over windows are compared with the reference."""

    encoding: RowEncoding
    residuals: ReferenceResiduals
    features: DriftFeatures
    length_scale: np.ndarray  # (d,): of each column; NaN for constant columns and categories
    seeds: (
        np.ndarray
    )  # (2,): of the cells that are drawn in the place of missing ones, in the reference and in the stream

    @classmethod
    def of(
        cls, estimator: Any, table: CheckedRows, chosen: np.ndarray, others: np.ndarray, seeds: np.ndarray
    ) -> tuple[Self, np.ndarray]:
        """Fit features around the chosen rows of a reference, and return their values at the other rows, too."""
        # Words chosen from the rows that calibrate would be more frequent there than in new rows.
        encoding = RowEncoding.of_table(estimator, table, compared=estimator.compare_missing, words_from=chosen)
        X = encoding(encoding.filled(table.rows, int(seeds[0])))
        if not np.ptp(X, axis=0).any():
            raise InputError(
                "all rows of the reference are equal, so that nothing says how much a window varies; give rows that differ."
            )
        keep = encoding.varying(estimator, X)
        frame = ScaledColumns.centred(X, keep)
        default = _default_scales(encoding, frame.centre(X), keep, table.rows)
        scale = _scales(encoding, estimator.length_scale, default, keep)
        residuals = ReferenceResiduals.of(encoding, X, keep)
        own = np.append(scale, residuals.scales(scale / default))
        X = residuals.beside(X, left_out=True)
        beside = ScaledColumns.centred(X, np.append(keep, np.ones(len(own) - len(scale), dtype=bool))).scaled(own)
        about = beside, float(estimator.alpha), Budget.of(estimator)
        features, values = DriftFeatures.of(X[chosen], X[others], *about)
        if np.sqrt((values**2).mean(axis=0).sum()) <= _ALIKE * np.linalg.norm(features.mean):
            raise InputError(
                "to the kernels all rows of the reference that are no centres look the same, so that nothing says how "
                "much a window varies; give a reference with more rows that differ, or another length_scale."
            )
        return cls(encoding, residuals, features, encoding.by_column(frame.by_column(scale)), seeds), values

    @property
    def mean(self) -> np.ndarray:
        """Mean (r,) over the reference, which the values are relative to."""
        return self.features.mean

    def __call__(self, rows: np.ndarray, n_rows: int) -> np.ndarray:
        """Return the values (n, r) at rows of a stream that follow `n_rows` others."""
        filled = self.encoding.filled(rows, int(self.seeds[1]), n_rows)
        return self.features(self.residuals.beside(self.encoding(filled)))

    def key(self, window: int) -> int:
        """Return a number that tells whether the state of a stream is of these features and windows of this length."""
        return int(row_keys(np.append(self.mean, window)[None])[0])

    def reference_key(self, rows: np.ndarray) -> int:
        """Return a number that tells whether rows are the reference, without keeping its rows."""
        return int(row_keys(self.encoding(self.encoding.filled(rows, int(self.seeds[0])))).sum())


def _default_scales(encoding: RowEncoding, rows: np.ndarray, keep: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return the length scales of "auto" of the kept coordinates of centred rows, which encode the `given` ones."""
    if encoding.is_plain:
        return np.asarray(math.sqrt(n_compared(rows.shape[1])) * spread(rows))
    return np.asarray((math.sqrt(n_compared(encoding.kept_columns(keep))) * encoding.spreads(given, spread))[keep])


def _scales(encoding: RowEncoding, asked: Any, default: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Return the length scales of the kept coordinates that are asked for; words keep those by default."""
    if is_auto(asked):
        return default
    starts = np.array([block.start for block in encoding.blocks])
    try:
        scale = np.full(len(keep), np.nan)
        scale[starts] = np.broadcast_to(np.asarray(to_numpy(asked), dtype=np.float64), (len(encoding.blocks),))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"length_scale = {asked!r}: expected 'auto', a number, or one for each of {len(starts)} columns."
        ) from error
    scale = np.where(encoding.scaled[keep], default, scale[keep])
    if not (np.isfinite(scale) & (scale > 0.0)).all():
        raise InputError(f"length_scale = {asked!r}: expected positive, finite numbers.")
    return scale
