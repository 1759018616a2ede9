"""
Unlikely rows of a table
========================

The table describes cell nuclei of 367 breast tissue samples in 30 columns. Ten samples
are malignant. The detector does not use the labels. It ranks the rows by how unlikely
they are.
"""

# %%
# There are no parameters to choose. Each training row is scored without itself, so its
# score can be compared with the scores of new rows.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from isopleth import AnomalyDetector
from isopleth.datasets import load_breast

breast = load_breast()
table = pd.DataFrame(breast.data, columns=breast.feature_names)
detector = AnomalyDetector(random_state=0).fit(table)

order = np.argsort(detector.training_scores_)
found = np.cumsum(breast.labels[order])
for n in (10, 20, 50):
    malignant = f"{found[n - 1]} of the {breast.labels.sum()} malignant samples"
    print(f"among the {n} least likely rows: {malignant}")

# %%
# The picture shows the two columns in which the least likely rows deviate most. The
# lines are isopleths of a density of these two columns; each surrounds the stated share
# of the rows. The scores on the right are computed from all 30 columns.

figure = detector.plot(table).figure

# %%
# **How sure is that?** Flagged rows are worth a look: they are as unlikely as the least
# likely thirtieth of ordinary rows. The p-value of a row is the probability that an
# ordinary row is at least as unlikely. Among 367 ordinary rows, three or four have a
# p-value below 0.01 by chance, and no row of this table is selected at a false
# discovery rate of 10 %. The ranking is still much better than chance.

share = found[-1] / len(order)
print("flagged:", int((detector.training_labels_ < 0).sum()))
print("selected:", int(detector.select(fdr=0.1).sum()))
print("smallest p-values:", detector.p_values_[order[:5]].round(4))
print(f"malignant: {found[19] / 20:.0%} of the 20 least likely, {share:.0%} of all")

# %%
# **New rows.** Half of the benign samples are the clean reference of another detector.
# The p-values of the other half are about uniform, as they should be for rows from the
# distribution of the training rows. Those of the malignant samples are small.

benign, malignant = table[breast.labels == 0], table[breast.labels == 1]
half = np.random.default_rng(0).permutation(len(benign)) < len(benign) // 2
novelty = AnomalyDetector(novelty=True, random_state=0).fit(benign[half])

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.9, linestyle="--", label="uniform")
for name, rows, color in (
    ("new benign samples", benign[~half], "#0072B2"),
    ("malignant samples", malignant, "#D55E00"),
):
    p = np.sort(novelty.p_values(rows))
    ax.step(
        np.r_[0, p, 1],
        np.r_[0, np.arange(1, len(p) + 1) / len(p), 1],
        where="post",
        color=color,
        label=name,
    )
ax.set(xlabel="p-value", ylabel="share of the rows below", xlim=(0, 1), ylim=(0, 1.02))
ax.legend(frameon=False)
plt.show()
