"""A method for the boards of anomaly detectors: a mixture of five normal laws."""

import numpy as np
from sklearn.mixture import GaussianMixture


def mixture(train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Return one number for each row of `test`, higher for less likely rows."""
    density = GaussianMixture(5, reg_covar=1e-3, random_state=seed).fit(train)
    return -density.score_samples(test)
