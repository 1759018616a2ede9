"""
Has the stream changed?
=======================

The last rows of a stream are compared with a reference after every row.
"""

# %%
# Two columns, a reference of 500 rows and a stream of 900. Nothing changes in the first 400; then the columns become
# related, while each for itself stays what it was.

import matplotlib.pyplot as plt
import numpy as np

from isopleth import DriftMonitor

rng = np.random.default_rng(0)
reference = rng.normal(size=(500, 2))
stream = rng.normal(size=(900, 2))
stream[400:, 1] = 0.9 * stream[400:, 0] + np.sqrt(1 - 0.9**2) * stream[400:, 1]

monitor = DriftMonitor(window=50, expected_run_length=5000, random_state=0).fit(reference)
alarms = monitor.update(stream)
print(alarms)

fig, (left, right) = plt.subplots(1, 2, figsize=(12, 3.6), width_ratios=[1, 2], layout="constrained")
left.plot(*reference.T, ".", color="0.7", label="reference")
left.plot(*stream[400:].T, ".", color="#0072B2", markersize=3, label="after the change")
left.legend(frameon=False)
alarms.plot(ax=right)
right.axvline(400, color="0.5", linewidth=0.8)
plt.show()

# %%
# After an alarm the window is emptied, and is full again 50 rows later. How the rows are cut makes no difference, and
# the place in the stream can be kept and gone back to.

start = DriftMonitor(window=50, expected_run_length=5000, random_state=0).fit(reference)
kept = start.state_
row_by_row = [row for i in range(0, 900, 7) for row in start.update(stream[i : i + 7])]
print(row_by_row == list(alarms))
start.state_ = kept
print(start.update(stream[:10]))

# %%
# How often does it give an alarm for nothing? The mean is what was asked for; single run lengths are about exponential.

asked = monitor.expected_run_length
shares = np.quantile(monitor.run_lengths_, [0.1, 0.5, 0.9]) / asked
print("mean:", round(monitor.run_lengths_.mean() / asked, 2), " quantiles 0.1, 0.5, 0.9:", shares.round(2))

# %%
# The new normal becomes the reference.

monitor.update_reference(stream[450:])
print(monitor.update(stream[500:700]))
