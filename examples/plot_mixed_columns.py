"""
Numbers and categories together
===============================

Many tables have columns of words. scikit-learn encodes them as numbers, and a pipeline
keeps the encoding together with the detector.
"""

# %%
# Orders of a shop: an amount, a delivery time, a country and a way of paying. Three
# rows are wrong in different ways.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from isopleth import AnomalyDetector

rng = np.random.default_rng(0)
n = 500
country = rng.choice(["north", "south", "west"], size=n, p=[0.5, 0.3, 0.2])
days = rng.gamma(4, 1, size=n) + 6 * (country == "west")
orders = pd.DataFrame(
    {
        "amount": rng.lognormal(3, 0.5, size=n).round(2),
        "days": days.round(1),
        "country": country,
        "payment": np.where(
            country == "south", rng.choice(["cash", "card"], size=n), "card"
        ),
    }
)
orders.loc[7, "amount"] = 3000.0  # a wild number
orders.loc[8, ["country", "days", "payment"]] = [
    "west",
    1.0,
    "card",
]  # the west takes long: a relation is broken
orders.loc[9, ["country", "payment"]] = [
    "north",
    "cash",
]  # a pair of words that does not occur

# %%
# Each category becomes a column of 0 and 1. The amount is skewed, so its logarithm is
# used. The detector standardises columns itself.

columns = ColumnTransformer(
    [
        (
            "log",
            FunctionTransformer(np.log, feature_names_out="one-to-one"),
            ["amount"],
        ),
        ("number", "passthrough", ["days"]),
        ("is", OneHotEncoder(sparse_output=False), ["country", "payment"]),
    ],
    verbose_feature_names_out=False,
).set_output(transform="pandas")
pipeline = make_pipeline(columns, AnomalyDetector(random_state=0)).fit(orders)

detector = pipeline[-1]
order = np.argsort(detector.training_scores_)
print(
    orders.assign(
        score=detector.training_scores_.round(1), pvalue=detector.p_values_.round(4)
    ).iloc[order[:6]]
)

# %%
# The explanation shows by how much the score would increase if one column had its best
# value. In the second and third row no cell is unusual alone; both columns of the
# broken relation are shown. Columns of 0 and 1 are changed one at a time like all
# others, so the best value of "is it north" may be 0 while no other country is set.

explanation = detector.explain(columns.transform(orders.iloc[[7, 8, 9]]))
fig, axes = plt.subplots(3, 1, figsize=(7.5, 7.5), layout="constrained")
for row, (ax, title) in enumerate(
    zip(
        axes,
        ("a wild amount", "too fast for the west", "cash in the north"),
        strict=True,
    )
):
    explanation.plot(row=row, ax=ax)
    ax.set_title(title, loc="left")
plt.show()
