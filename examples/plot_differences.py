"""
Where two samples differ
========================

Two tables with the same columns: where is there more of one than of the other, and is
that more than chance?
"""

# %%
# Last year's rows are one cloud. This year's cloud is shifted to the right, and there
# is a small new cluster.

import numpy as np

from isopleth import LSDD
from isopleth.difference import KDEDifference

rng = np.random.default_rng(0)
before = rng.normal(size=(400, 2))
after = np.vstack(
    [
        rng.normal([0.2, 0.0], 1.0, size=(330, 2)),
        rng.normal([2.2, 1.6], 0.35, size=(50, 2)),
    ]
)
change = LSDD(random_state=0).fit(before, after)
print(change.search_path_)

# %%
# The difference has a sign. The blue regions contain 50, 80 and 95 % of the excess of
# the earlier sample, the orange regions that of the later one, counted in held-out
# rows.

picture = change.plot(rows=(before, after), labels=("before", "after"))
low, high = change.squared_l2_interval()
print(f"squared L2 distance {change.squared_l2_:.4f}")
print(f"95 % interval {low:.4f} to {high:.4f}")

# %%
# Two samples of the same distribution differ by chance only, and the picture says so.

quiet = (
    LSDD(random_state=0)
    .fit(before, rng.normal(size=(400, 2)))
    .plot(labels=("before", "long before"))
)

# %%
# For one column the picture is a curve, with a band of 1.96 standard deviations of the
# fit. The dashed line is the difference of two kernel density estimates, each with its
# own length scale.

line = LSDD(random_state=0).fit(before[:, :1], after[:, :1])
ax = line.plot(labels=("before", "after"))
grid = np.linspace(*ax.get_xlim(), 300)
baseline = KDEDifference().fit(before[:, :1], after[:, :1])
ax.plot(
    grid,
    baseline.difference(grid[:, None]),
    "--",
    color="#757575",
    label="difference of two KDEs",
)
_ = ax.legend(frameon=False)
