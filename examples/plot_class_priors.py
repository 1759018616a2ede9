"""
Shares of classes without labels
================================

Estimate the share of each class among rows without labels, with an interval, and use it
to improve a classifier.
"""

# %%
# 40 tumours are measured and labelled, 20 of each kind. Among 120 new patients few have
# a malignant tumour. The rows of each class look as before; only the shares of the
# classes differ.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isopleth import ClassPriorEstimator

breast = load_breast_cancer()
names = breast.target_names[breast.target]
rng = np.random.default_rng(0)
benign, malignant = (
    rng.permutation(np.flatnonzero(names == kind)) for kind in ("benign", "malignant")
)
labelled = np.concatenate([benign[:20], malignant[:20]])
estimator = ClassPriorEstimator(random_state=0).fit(
    breast.data[labelled], names[labelled]
)

new = np.concatenate([benign[20:128], malignant[20:32]])
priors = estimator.estimate(breast.data[new])
print(priors)

# %%
# Other shares as a picture: the dot is the estimate, the line its interval, the cross
# the true share.

shares = (0.05, 0.2, 0.5, 0.9)
fig, axes = plt.subplots(
    1, len(shares), figsize=(12, 2.2), layout="constrained", sharey=True
)
for share, ax in zip(shares, axes, strict=True):
    count = round(120 * share)
    rows = np.concatenate([benign[20 : 140 - count], malignant[20 : 20 + count]])
    estimator.estimate(breast.data[rows]).plot(ax=ax)
    ax.plot([1 - share, share], [0, 1], "x", color="black", markersize=9)
plt.show()

# %%
# A classifier that is trained with the new shares as weights makes fewer mistakes on
# the new rows.

plain = make_pipeline(StandardScaler(), RidgeClassifier()).fit(
    breast.data[labelled], names[labelled]
)
weighted = estimator.reweight(plain, priors)
for name, classifier in (("labelled shares", plain), ("estimated shares", weighted)):
    wrong = np.mean(classifier.predict(breast.data[new]) != names[new])
    print(f"{name}: {wrong:.1%} wrong")

# %%
# With fewer unlabelled rows the intervals are wider; a single row gives a very wide
# one.

for count in (1, 10, 120):
    few = estimator.estimate(breast.data[rng.permutation(new)[:count]])
    print(f"{count:>3} rows: {few}".replace("\n", "; "))
