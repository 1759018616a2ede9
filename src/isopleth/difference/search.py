"""Cross-validation of length scale and ridge, and the estimates of held-out folds that it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isopleth.difference.cross_validation import FoldSystems, FoldTables, fold_tables
from isopleth.difference.search_path import DifferenceSearchPath
from isopleth.difference.volume import over_volume, smallest
from isopleth.operators.threads import map_threads


@dataclass(frozen=True)
class CrossFitted:
    """What held-out folds say of the squared L2 distance, over the volume of the chosen length scale."""

    path: DifferenceSearchPath
    cross_fitted: float
    lower_bound: float


def _nested_choice(paired: np.ndarray, log_volumes: np.ndarray, fold: int) -> tuple[int, ...]:
    """Grid point for the fits without `fold`, by losses that never saw it: the smallest mean plus standard error.

    The error keeps out points of large variance that are the best by luck, and costs little where a difference is clear.
    """
    others = np.delete(paired[:, fold], fold, axis=0)
    score = others.mean(axis=0) + others.std(axis=0, ddof=1) / np.sqrt(len(others))
    return smallest(score, log_volumes)


def cross_validate(
    systems_at: Callable[[int, int], tuple[float, FoldSystems]],
    length_scales: np.ndarray,
    alphas: np.ndarray,
    n_jobs: int,
) -> CrossFitted:
    """Losses over the grid, its best point, and the estimates whose grid points were chosen without their fold.

    `systems_at` answers with the log volume and the fits to folds at the length scale of a place, summed by so many threads.
    """
    searched = len(length_scales) * len(alphas) > 1
    workers = min(n_jobs, len(length_scales))

    def tables(place: int) -> tuple[float, FoldTables]:
        log_volume, systems = systems_at(place, max(1, n_jobs // workers))
        return log_volume, fold_tables(systems, alphas, searched)

    found = map_threads(tables, range(len(length_scales)), workers)
    volumes = np.array([log_volume for log_volume, _ in found])
    loss_table = np.stack([table.losses for _, table in found], axis=1)
    cross_table = np.stack([table.cross for _, table in found], axis=1)
    best = smallest(loss_table.mean(axis=0), volumes)
    folds = len(loss_table)
    nested = np.zeros((folds, 2), dtype=int)
    if searched:
        pairs = np.stack([table.paired for _, table in found if table.paired is not None], axis=2)
        nested[:] = [_nested_choice(pairs, volumes, fold) for fold in range(folds)]
    path = DifferenceSearchPath(length_scales, alphas, volumes, loss_table, (best[0], best[1]), nested)
    at = (np.arange(folds), nested[:, 0], nested[:, 1])
    relative_volumes = volumes[nested[:, 0]] - volumes[best[0]]
    return CrossFitted(
        path,
        float(over_volume(cross_table[at], relative_volumes).mean()),
        float(over_volume(-loss_table[at], relative_volumes).mean()),
    )
