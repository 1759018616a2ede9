"""
Why is a row unlikely?
======================

For each cell of a row: how much does it surprise, given the other cells of the row, and
what would be usual there?
"""

# %%
# The least likely rows of the breast tissue table, and the columns that make them so.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from isopleth import AnomalyDetector
from isopleth.datasets import load_breast

breast = load_breast()
detector = AnomalyDetector(random_state=0).fit(breast.data)
worst = np.argsort(detector.training_scores_)[:3]
explanation = detector.explain(breast.data[worst])
print(explanation)

# %%
# An array has no column names. With a data frame, the explanation uses them.

frame = pd.DataFrame(breast.data, columns=breast.feature_names)
detector = AnomalyDetector(random_state=0).fit(frame)
explanation = detector.explain(frame.iloc[worst])
print(explanation)

fig, axes = plt.subplots(1, 2, figsize=(13, 4.4), layout="constrained")
for row, ax in enumerate(axes):
    explanation.plot(ax, row)
plt.show()

# %%
# A broken relation between columns is also explained. Here both values of the marked
# row are ordinary, but not their combination. Both columns are shown, because each is
# unusual given the other.

rng = np.random.default_rng(0)
height = rng.normal(170, 10, size=500)
pairs = pd.DataFrame(
    {"height": height, "weight": 0.9 * height - 85 + rng.normal(0, 4, size=500)}
)
pairs["age"] = rng.uniform(20, 60, size=500)
pairs.loc[0] = [185.0, 60.0, 40.0]
related = AnomalyDetector(random_state=0).fit(pairs)
print(
    "rank of the row:",
    int((related.training_scores_ < related.training_scores_[0]).sum()) + 1,
    "of",
    len(pairs),
)

fig, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
left.plot(pairs["height"], pairs["weight"], ".", color="0.6")
left.plot(*pairs.loc[0, ["height", "weight"]], "o", color="#D55E00")
left.set(xlabel="height (cm)", ylabel="weight (kg)")
related.explain(pairs.iloc[[0]]).plot(right)
plt.show()

# %%
# All cells of all rows as one data frame:

print(explanation.table().sort_values("excess", ascending=False).head(5))
