"""The loss of SOSREP against its length scale, exact and by random probes, and what the scales are worth for anomalies (Fig. 2).

    python -m experiments.loss_curve --data DIR [--tables magic.gamma PageBlocks letter SpamBase] [--kernels gaussian sdo]
        [--rows 1500] [--probes 300] [--out FILE] [--figure FIGURE]

DIR is a folder with ADBench's tables. Of each table at most --rows rows are taken, with all columns standardised; 70 % of them
are fitted, without labels, and the others are held out. At each length scale, a multiple of Scott's rule, the table has

- exact: the mean Hyvarinen loss of the held-out rows; infinite if f <= 0 at one of them, which kernels with negative values make;
- probes: the estimate from 300 random probes a row, and its standard error over probes. The paper's curve is of this kind. It is
  computed from log f^2, so it has a value where f < 0 too; nan if f vanishes at a held-out row;
- log p: the mean log density of the held-out rows;
- AUC: of minus the log density of the held-out rows, against their labels.

Below each table are the scales that three rules choose, and the scale of the best AUC: the smallest exact loss; the paper's rule,
the largest scale whose loss is below those of three neighbours on either side; and the largest mean log density.
Held-out rows that equal a fitted row are left out.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from experiments.adbench_tables import find_table, missing
from isopleth import SOSREP, DataWarning
from isopleth.density import hutchinson_loss
from isopleth.results.figures import BLUE, GREY, VERMILLION, check_figure_target, new_figure, save_figure

TABLES = ("magic.gamma", "PageBlocks", "letter", "SpamBase")
FACTORS = tuple(2.0 ** (k / 2) for k in range(-8, 7))
NEIGHBOURS = 3


@dataclass(frozen=True)
class Split:
    """Standardised rows of a table: those to fit, those held out, and the labels of these."""

    fitted: np.ndarray
    held_out: np.ndarray
    labels: np.ndarray


def split(path: Path, most: int, seed: int = 0) -> Split:
    """Return at most `most` rows of a table, 70 % of them to fit, in random order."""
    with np.load(path) as file:
        X, y = file["X"].astype(float), file["y"].astype(int).ravel()
    chosen = np.random.default_rng(seed).permutation(len(X))[:most]
    X, y = X[chosen], y[chosen]
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    first = round(0.7 * len(X))
    known = {row.tobytes() for row in X[:first]}
    new = np.array([row.tobytes() not in known for row in X[first:]])
    if not 0 < y[first:][new].sum() < new.sum():
        sys.exit(f"{path.stem}: the held-out rows have no anomalies or nothing else; raise --rows.")
    return Split(X[:first], X[first:][new], y[first:][new])


@dataclass(frozen=True)
class Curve:
    """What was measured at each length scale of FACTORS."""

    exact: np.ndarray
    probes: np.ndarray
    errors: np.ndarray
    log_p: np.ndarray
    auc: np.ndarray

    def choices(self) -> dict[str, int | None]:
        """Return the place of the scale that each rule chooses, None where it chooses none."""
        finite = np.isfinite(self.exact).any()
        return {
            "smallest exact loss": int(np.argmin(self.exact)) if finite else None,
            "paper's rule, exact": stable_minimum(self.exact),
            "paper's rule, probes": stable_minimum(self.probes),
            "largest log p": int(np.argmax(self.log_p)),
            "best AUC": int(np.argmax(self.auc)),
        }


def stable_minimum(losses: np.ndarray) -> int | None:
    """Return the largest scale whose loss is below those of three neighbours on either side, None if there is none."""
    for i in reversed(range(NEIGHBOURS, len(losses) - NEIGHBOURS)):
        around = np.concatenate([losses[i - NEIGHBOURS : i], losses[i + 1 : i + 1 + NEIGHBOURS]])
        if (losses[i] < around).all():
            return i
    return None


def curve(data: Split, kernel: str, probes: int) -> Curve:
    """Fit and measure at each length scale."""
    measured = []
    for factor in FACTORS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            scale = factor * data.fitted.std(axis=0) * len(data.fitted) ** (-1.0 / (data.fitted.shape[1] + 4))
            model = SOSREP(kernel, scale, n_jobs=1, frame="scale").fit(data.fitted)
        log_p = model.score_samples(data.held_out)
        # The units of both losses are those of the columns' deviations, which are the same for all factors.
        exact = model.hyvarinen_loss(data.held_out)
        value, error = np.nan, np.nan
        if np.isfinite(log_p).all():
            found = hutchinson_loss(model.score_samples, data.held_out, model.unit_, probes, random_state=0)
            value, error = found.value, found.standard_error
        auc = roc_auc_score(data.labels, -np.maximum(log_p, -sys.float_info.max))
        measured.append((exact, value, error, log_p.mean(), auc))
    return Curve(*np.array(measured).T)


def lines(name: str, kernel: str, data: Split, found: Curve) -> Iterator[str]:
    """Yield the lines of one table and kernel."""
    yield (
        f"{name}, kernel {kernel}: {len(data.fitted)} rows of {data.fitted.shape[1]} columns fitted, {len(data.labels)} held "
        f"out, {data.labels.sum()} anomalies among these"
    )
    yield f"{'factor':>8}{'exact':>14}{'probes':>14}{'st. error':>12}{'log p':>12}{'AUC':>7}"
    for k, factor in enumerate(FACTORS):
        exact, probes, error, log_p, auc = (getattr(found, field.name)[k] for field in fields(found))
        yield f"{factor:>8.3f}{exact:>14.5g}{probes:>14.5g}{error:>12.2g}{log_p:>12.2f}{100 * auc:>7.1f}"
    for rule, place in found.choices().items():
        chosen = "none" if place is None else f"factor {FACTORS[place]:.3f}, AUC {100 * found.auc[place]:.1f}"
        yield f"  {rule + ':':<22} {chosen}"
    near = np.isfinite(found.exact) & (found.errors > 0)
    gaps = np.abs(found.probes - found.exact)[near] / found.errors[near]
    if near.any():
        yield f"  probes within two standard errors of the exact loss at {np.mean(gaps <= 2):.0%} of {near.sum()} scales"
    yield ""


def draw(curves: dict[tuple[str, str], Curve], path: Path) -> None:
    """Draw the losses, shifted to be positive as in the paper, and the AUC below, one column for each table."""
    names = list(dict.fromkeys(name for name, _ in curves))
    figure = new_figure(3.0 * len(names), 5.0)
    axes = figure.subplots(2, len(names), sharex=True, squeeze=False)
    styles = {"gaussian": BLUE, "sdo": VERMILLION}
    for (name, kernel), found in curves.items():
        above, below = axes[:, names.index(name)]
        color = styles.get(kernel, GREY)
        exact = np.where(np.isfinite(found.exact), found.exact, np.nan)
        above.plot(FACTORS, exact, "-", color=color, label=f"{kernel}, exact")
        above.errorbar(
            FACTORS, found.probes, 2 * found.errors, fmt="o", color=color, markersize=3, label=f"{kernel}, probes"
        )
        below.plot(FACTORS, 100 * found.auc, "-", color=color)
        place = found.choices()["smallest exact loss"]
        if place is not None:
            below.plot(FACTORS[place], 100 * found.auc[place], "o", color=color)
        above.set(title=name, xscale="log")
        above.set_yscale("symlog", linthresh=10.0)
        below.set_xlabel("length scale / Scott's rule")
        for place_ in (above, below):
            place_.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("held-out Hyvarinen loss")
    axes[1, 0].set_ylabel("AUC in per cent")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2 if len(names) < 3 else 4, frameon=False)
    save_figure(figure, path)


def main(arguments: list[str] | None = None) -> None:
    """Print the tables, and save them and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with ADBench's tables")
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--kernels", nargs="+", default=["gaussian", "sdo"])
    parser.add_argument("--rows", type=int, default=1500, help="rows of a table, at most")
    parser.add_argument("--probes", type=int, default=300)
    parser.add_argument("--out", type=Path, help="a text file")
    parser.add_argument("--figure", type=Path, help="figure of the curves")
    options = parser.parse_args(arguments)
    if options.figure:
        check_figure_target(options.figure)
    paths = {name: find_table(options.data, name) for name in options.tables}
    for name, path in paths.items():
        if path is None:
            sys.exit(missing(name, options.data))
    curves, text = {}, []
    for name, path in paths.items():
        data = split(path, options.rows)
        for kernel in options.kernels:
            curves[name, kernel] = curve(data, kernel, options.probes)
            text += lines(name, kernel, data, curves[name, kernel])
            print("\n".join(lines(name, kernel, data, curves[name, kernel])), flush=True)
    if options.out:
        options.out.write_text("\n".join(text))
    if options.figure:
        draw(curves, options.figure)


if __name__ == "__main__":
    main()
