"""The score of rows is not touched by that of cells: pooled with it, detectors of rows lose on the given tables."""

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from isopleth import AnomalyDetector, CellwiseDetector

TABLES = ("15_Hepatitis", "45_wine", "14_glass", "37_Stamps")


@pytest.mark.filterwarnings("ignore")
def test_rows_are_ranked_better_without_their_worst_cells(shared):
    alone, pooled = [], []
    for name in TABLES:
        data = np.load(shared / "data" / "adbench" / f"{name}.npz")
        X, y = data["X"][:300], data["y"][:300]
        rows = -AnomalyDetector(random_state=0).fit(X).training_scores_
        cells = CellwiseDetector(n_estimators=20, random_state=0).fit(X).row_scores_
        alone.append(roc_auc_score(y, rows))
        pooled.append(roc_auc_score(y, rankdata(rows) + rankdata(cells)))
    assert np.mean(alone) > np.mean(pooled) + 0.03
