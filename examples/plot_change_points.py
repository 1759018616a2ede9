"""
Where a series changes
======================

A simulated series has a season and correlated noise; its level and its scatter change.
Which of its movements are changes?
"""

# %%
# The level rises at step 150, and the scatter at 300.

import matplotlib.pyplot as plt
import numpy as np

from isopleth import ChangePointDetector

rng = np.random.default_rng(3)
noise = rng.normal(size=450)
for t in range(1, 300):
    noise[t] += 0.4 * noise[t - 1]
noise[300:] *= 2.5
season = 2.0 * np.sin(2.0 * np.pi * np.arange(450) / 12)
series = 4.0 * (np.arange(450) >= 150) + season + noise

# %%
# The season, the noise and the number of changes are not given to the detector.

detector = ChangePointDetector(random_state=0).fit(series)
print(detector.result_)
print(detector.result_.table().round(2))

# %%
# Lines mark the first step after each change, and bands the interval that holds it with
# a probability of about 90 %. The black line is the mean of each segment.

figure = detector.plot().figure
figure.set_size_inches(9.0, 4.0)

# %%
# A random walk moves far, but its distribution does not change: every step is like
# every other.

walk = np.cumsum(np.random.default_rng(0).normal(size=400))
print(ChangePointDetector(random_state=0).fit(walk).result_)

# %%
# A single jump that is much larger than the steps is a change of the walk.

walk[250:] += 12.0
jump = ChangePointDetector(random_state=0).fit(walk)
print(jump.result_)
figure, axes = plt.subplots(figsize=(7.0, 2.5), layout="constrained")
axes.plot(walk, color="#757575", linewidth=0.8)
for place in jump.change_points_:
    axes.axvline(place - 0.5, color="#D55E00")
_ = axes.set(xlabel="step", ylabel="value")
