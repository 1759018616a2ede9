"""
Has the stream changed?
=======================

After every row of a stream, the last rows are compared with a reference.
"""

# %%
# A reference of 500 rows and a stream of 900 rows, in two columns. Nothing changes in
# the first 400 rows. Then the columns become correlated, while the distribution of each
# single column stays the same.

import matplotlib.pyplot as plt
import numpy as np

from isopleth import DriftMonitor

rng = np.random.default_rng(0)
reference = rng.normal(size=(500, 2))
stream = rng.normal(size=(900, 2))
stream[400:, 1] = 0.9 * stream[400:, 0] + np.sqrt(1 - 0.9**2) * stream[400:, 1]

monitor = DriftMonitor(window=50, expected_run_length=5000, random_state=0).fit(
    reference
)
alarms = monitor.update(stream)
print(alarms)

fig, (left, right) = plt.subplots(
    1, 2, figsize=(12, 3.6), width_ratios=[1, 2], layout="constrained"
)
left.plot(*reference.T, ".", color="0.7", label="reference")
left.plot(*stream[400:].T, ".", color="#0072B2", markersize=3, label="after the change")
left.legend(frameon=False)
alarms.plot(ax=right)
right.axvline(400, color="0.5", linewidth=0.8)
plt.show()

# %%
# After an alarm the window is emptied; it is full again 50 rows later. How rows are
# divided into calls makes no difference. The attribute ``state_`` is the position in
# the stream: store it and assign it later to continue from there.

start = DriftMonitor(window=50, expected_run_length=5000, random_state=0).fit(reference)
kept = start.state_
row_by_row = [row for i in range(0, 900, 7) for row in start.update(stream[i : i + 7])]
print(row_by_row == list(alarms))
start.state_ = kept
print(start.update(stream[:10]))

# %%
# How often are there false alarms? The mean number of rows until a false alarm is
# ``expected_run_length``; single run lengths are about exponentially distributed.

asked = monitor.expected_run_length
shares = np.quantile(monitor.run_lengths_, [0.1, 0.5, 0.9]) / asked
print(
    "mean:",
    round(monitor.run_lengths_.mean() / asked, 2),
    " quantiles 0.1, 0.5, 0.9:",
    shares.round(2),
)

# %%
# Make the new rows the reference.

monitor.update_reference(stream[450:])
print(monitor.update(stream[500:700]))
