"""Small real tables for examples, without network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_ANOMALIES = 10


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of which it is known what is an anomaly.

    Parameters
    ----------
    data : ndarray of shape (n, d)
        The rows.
    feature_names : list of str
        One a column.
    labels : ndarray of shape (n,)
        1 for anomalies, 0 for all others.
    description : str
        Where the rows come from and what the anomalies are.
    """

    data: np.ndarray
    feature_names: list[str]
    labels: np.ndarray
    description: str


def load_breast() -> Dataset:
    """Breast tissue samples: the benign ones, and the first ten malignant ones as anomalies.

    The rows are those of the Wisconsin diagnostic breast cancer table that scikit-learn ships. Malignant samples are
    many there; with all but ten left out they are as rare as anomalies are.

    Returns
    -------
    Dataset
        367 rows of 30 columns; the anomalies stand last.

    References
    ----------
    .. [1] W. N. Street, W. H. Wolberg, O. L. Mangasarian, "Nuclear feature extraction for breast tumor diagnosis",
       Proc. SPIE 1905, 1993.

    Examples
    --------
    >>> from isopleth.datasets import load_breast
    >>> breast = load_breast()
    >>> breast.data.shape, int(breast.labels.sum())
    ((367, 30), 10)
    """
    from sklearn.datasets import load_breast_cancer  # slow to import, and only examples need it

    table = load_breast_cancer()
    benign = table.data[table.target == 1]
    malignant = table.data[table.target == 0][:_ANOMALIES]
    return Dataset(
        data=np.vstack([benign, malignant]),
        feature_names=[str(name) for name in table.feature_names],
        labels=np.repeat([0, 1], [len(benign), len(malignant)]),
        description=(
            "Cell nuclei in breast tissue (Wisconsin diagnostic table): benign samples, and the first "
            f"{len(malignant)} malignant ones as anomalies."
        ),
    )
