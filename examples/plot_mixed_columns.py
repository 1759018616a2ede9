"""
Numbers and categories together
===============================

Many tables have columns of words. A detector takes them as they are, with missing
cells.
"""

# %%
# Orders of a shop: an amount, a delivery time, a country and a way of paying. Three
# rows are wrong in different ways.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from isopleth import AnomalyDetector

rng = np.random.default_rng(0)
n = 500
country = rng.choice(["north", "south", "west"], size=n, p=[0.5, 0.3, 0.2])
days = rng.gamma(4, 1, size=n) + 6 * (country == "west")
cash = (country == "south") & (rng.random(n) < 0.5)
orders = pd.DataFrame(
    {
        "amount": rng.lognormal(3, 0.5, size=n).round(2),
        "days": days.round(1),
        "country": country,
        "payment": np.where(cash, "cash", "card"),
    }
)
orders.loc[20:29, "days"] = np.nan  # not yet delivered
orders.loc[7, "amount"] = 3000.0  # a wild number
orders.loc[8, ["country", "days", "payment"]] = ["west", 1.0, "card"]  # too fast
orders.loc[9, ["country", "payment"]] = ["north", "cash"]  # does not occur otherwise

# %%
# A distance between two words takes the place of that between two numbers, so nothing
# has to be encoded.

detector = AnomalyDetector(random_state=0).fit(orders)
order = np.argsort(detector.training_scores_)
scores = detector.training_scores_.round(1), detector.p_values_.round(4)
print(orders.assign(score=scores[0], pvalue=scores[1]).iloc[order[:6]])
print(
    "ranks of the three:", [int(np.flatnonzero(order == i)[0]) + 1 for i in (7, 8, 9)]
)

# %%
# The wild number comes first, and the pair of words is near the top. The delivery that
# is too fast for the west is far behind: the quickest ones of other countries are not
# unlike it. A relation between a word and a number is the hardest to see broken.
#
# The explanation shows by how much the score would increase if one cell had its best
# value. In the second and third row no cell is unusual alone.

explanation = detector.explain(orders.iloc[[7, 8, 9]])
fig, axes = plt.subplots(3, 1, figsize=(7.5, 6), layout="constrained")
titles = ("a wild amount", "too fast for the west", "cash in the north")
for row, (ax, title) in enumerate(zip(axes, titles, strict=True)):
    explanation.plot(row=row, ax=ax)
    ax.set_title(title, loc="left", pad=16)
plt.show()
