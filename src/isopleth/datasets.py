"""Small real data sets for examples, which need no network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_ANOMALIES = 10


@dataclass(frozen=True, eq=False)
class Dataset:
    """Data set whose anomalies are known.

    Parameters
    ----------
    data : ndarray of shape (n, d)
        Rows.
    feature_names : list of str
        Names of the columns.
    labels : ndarray of shape (n,)
        1 for anomalies, 0 for all others.
    description : str
        Source of the rows, and meaning of the anomalies.
    """

    data: np.ndarray
    feature_names: list[str]
    labels: np.ndarray
    description: str


def load_breast() -> Dataset:
    """Return breast tissue samples: the benign ones, and the first ten malignant ones as anomalies.

    The rows are those of the Wisconsin diagnostic breast cancer table that scikit-learn ships. It has many
    malignant samples; all but ten are removed, so that they are rare.

    Returns
    -------
    Dataset
        367 rows of 30 columns; the anomalies are the last rows.

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
