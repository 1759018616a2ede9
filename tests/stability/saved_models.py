"""Small fitted models of every kind, and what each answers for the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isopleth import (
    KDE,
    LSDD,
    SOSREP,
    AnomalyDetector,
    CellwiseDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    ConditionalDensity,
    DensityImputer,
    DriftMonitor,
    KernelScore,
    NystromKEF,
    RandomFeatureSOSREP,
)

NUMBERS = ["price", "weight"]


def rows(count: int, seed: int) -> pd.DataFrame:
    """Return rows of two numbers that go together and a word, with a gap in each column of the first rows."""
    rng = np.random.default_rng(seed)
    weight = rng.gamma(4.0, size=count).round(2)
    price = (3.0 * weight + rng.normal(size=count)).round(2)
    table = pd.DataFrame({"price": price, "weight": weight, "kind": np.where(price > 12.0, "large", "small")})
    table.loc[3, "price"] = np.nan
    table.loc[5, "kind"] = None
    return table


TABLE, NEW = rows(36, 1), rows(8, 2)
COMPLETE, NEW_NUMBERS = TABLE[NUMBERS].dropna(), NEW[NUMBERS].dropna()
LABELS = np.where(COMPLETE["price"] > 12.0, "large", "small")

# Each makes a fitted model.
MODELS: dict[str, Callable[[], Any]] = {
    "density": lambda: SOSREP(frame="scale").fit(COMPLETE),
    "density_of_words": lambda: KDE().fit(TABLE),
    "mixture": lambda: SOSREP().fit(COMPLETE),
    "random_features": lambda: RandomFeatureSOSREP(n_frequencies=20, random_state=0).fit(COMPLETE),
    "anomalies": lambda: AnomalyDetector(n_estimators=5, random_state=0).fit(TABLE),
    "clean_reference": lambda: AnomalyDetector(novelty=True, random_state=0).fit(COMPLETE),
    "cells": lambda: CellwiseDetector(n_estimators=5, random_state=0).fit(TABLE),
    "conditional": lambda: ConditionalDensity(n_estimators=5, forests=1, random_state=0).fit(
        TABLE[["weight", "kind"]].iloc[6:], TABLE["price"].iloc[6:]
    ),
    "imputer": lambda: DensityImputer(random_state=0).fit(TABLE),
    "difference": lambda: LSDD(random_state=0).fit(COMPLETE, COMPLETE + 1.0),
    "score": lambda: KernelScore(frame="scale").fit(COMPLETE),
    "landmark_score": lambda: NystromKEF(frame="scale", random_state=0).fit(COMPLETE),
    "monitor": lambda: DriftMonitor(window=10, expected_run_length=100, random_state=0).fit(rows(120, 3)),
    "changes": lambda: ChangePointDetector(random_state=0).fit(
        np.repeat([[0.0], [9.0]], 25, axis=0) + rows(50, 4)[["weight"]]
    ),
    "prior": lambda: ClassPriorEstimator(random_state=0).fit(COMPLETE, LABELS),
    "pipeline": lambda: make_pipeline(StandardScaler(), SOSREP(frame="scale")).fit(COMPLETE),
}


def with_rules() -> Any:
    """Return rules of every kind, which the rows of a table keep."""
    table = rows(60, 1).ffill()
    table["units"] = np.arange(60) % 7 + 1
    table["sum"] = (table["price"] * table["units"]).round(2)
    table["size"] = table["kind"].str[0]
    return CellwiseDetector(n_estimators=5, random_state=0).fit(table).rules_


def answers(name: str, model: Any) -> Any:
    """Return what a model of this name answers, as plain lists."""
    found = _ANSWERS.get(name, _scores)(model)
    return [None if pd.isna(value) else value for value in np.asarray(found).ravel().tolist()]


def _scores(model: Any) -> Any:
    return model.score_samples(NEW_NUMBERS)


_ANSWERS: dict[str, Callable[[Any], Any]] = {
    "density_of_words": lambda model: model.score_samples(NEW),
    "anomalies": lambda model: model.score_samples(NEW),
    "clean_reference": lambda model: model.p_values(NEW_NUMBERS),
    "cells": lambda model: model.score_cells(NEW),
    "conditional": lambda model: model.predict_interval(NEW[["weight", "kind"]]),
    "imputer": lambda model: model.transform(NEW).to_numpy(dtype=object),
    "difference": lambda model: model.difference(NEW_NUMBERS),
    "score": lambda model: model.grad_log_density(NEW_NUMBERS),
    "landmark_score": lambda model: model.grad_log_density(NEW_NUMBERS),
    "monitor": lambda model: [alarm["row"] for alarm in model.update(rows(30, 5)).to_dict()["table"]],
    "changes": lambda model: model.change_points_,
    "prior": lambda model: model.estimate(NEW_NUMBERS).priors,
}
