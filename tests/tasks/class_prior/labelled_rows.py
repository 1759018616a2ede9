"""Rows of classes."""

import numpy as np


def labelled(sizes, dim=3, gap=1.0, seed=0):
    """Normal classes along their own columns."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(labels), dim)) + gap * np.eye(len(sizes), dim)[labels], labels
