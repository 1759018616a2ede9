"""Small files and arguments with which each command can be run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

NAMES = ["age_of_the_person", "income_before_tax", "height", "weight"]
# Arguments of each command; {folder} stands for the folder of the files.
VERBS = {
    "anomalies": ["{folder}/rows.csv", "--top", "3"],
    "cells": ["{folder}/rows.csv", "--top", "3"],
    "changes": ["{folder}/rows.csv", "--column", "income_before_tax,height"],
    "compare": ["{folder}/rows.csv", "{folder}/after.csv", "--resamples", "99"],
    "demo": ["--plot", "{folder}/demo.png"],
    "describe": ["{folder}/rows.csv"],
    "doctor": [],
    "expect": ["{folder}/rows.csv", "--given", "height=1", "--size", "60"],
    "fill": ["{folder}/rows.csv", "--out", "{folder}/filled.csv"],
    "fit": ["{folder}/rows.csv", "--out", "{folder}/model", "--size", "20"],
    "monitor": ["--reference", "{folder}/shuffled.csv", "--window", "20", "--run-length", "200"],
    "prior": ["{folder}/labelled.csv", "{folder}/rows.csv", "--target", "class"],
    "sample": ["{folder}/rows.csv", "--rows", "30", "--size", "100", "--out", "{folder}/made.csv"],
    "score": ["{folder}/ready", "{folder}/rows.csv", "--out", "{folder}/scores.csv"],
}


def write_files(folder: Path) -> None:
    """Write the tables that the commands read; the columns of the second half of the rows are shifted."""
    from isopleth import SOSREP, save

    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(120, 4)), columns=NAMES)
    rows["income_before_tax"] = (rows["income_before_tax"] * 12_345.678 + 2e6).round(4)
    rows["weight"] = rows["weight"] * 1234.5678
    rows.iloc[60:, 2] += 4.0
    rows.iloc[7, 0] = 3e6
    rows.to_csv(folder / "rows.csv", index=False)
    rows.sample(frac=1.0, random_state=0).to_csv(folder / "shuffled.csv", index=False)
    (rows * 1.3 + 7.0).to_csv(folder / "after.csv", index=False)
    rows.assign(**{"class": np.repeat(["healthy", "ill"], 60)}).to_csv(folder / "labelled.csv", index=False)
    save(SOSREP(landmarks=20, length_scale=100.0, frame="scale").fit(rows), folder / "ready")


def arguments(verb: str, folder: Path) -> list[str]:
    """Return the command line of a verb."""
    return [verb, *(part.format(folder=folder) for part in VERBS[verb])]
