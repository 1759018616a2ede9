"""Wasserstein auto-encoders whose entropy gradient comes from kernel scores (score paper, section 5.2, tables 2 and 3).

    python -m experiments.wae --data DIR [--latent 8 32 64 128] [--estimators stein ssge kef nu kernel-score default ssm]
        [--epochs N] [--test-rows N] [--out DIR] [--table FILE] [--cpu-hours H] [--device cpu] [--time-steps N]

DIR is a folder with mnist.npz in it, or with --images celeba one with img_align_celeba. An estimator may be given with its
strength, such as stein:1e-3: a ridge for stein and kef, a share of the eigenvalues for ssge, a number of steps for nu.
The estimator "default" is that of isopleth.torch.entropy_surrogate; ssm is sliced score matching.

The paper's settings: two hidden layers of 256 units, batches of 64, the inverse multiquadric at the median distance, Adam with
rate 1e-4, 1,000 epochs; likelihoods by annealed importance sampling with 1,000 temperatures, 5 chains and 10 leapfrog steps.
What the paper leaves open, and here is: the cost of a reconstruction is its negative log likelihood, with weight 1 for the
divergence; images are made black and white anew in each batch, test images once; strengths are not searched for, unless several
are given.

All runs advance together, an epoch each, so that they can be compared whenever they stop. Each writes a checkpoint after each
epoch and test likelihoods after every fifty rows into the folder --out; the same command goes on from there.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import torch

from experiments.wae.images import Digits, Faces, load_digits, load_faces
from experiments.wae.likelihood import Annealing, log_likelihoods
from experiments.wae.training import KERNEL_ESTIMATORS, STRENGTHS, Run, Settings, seconds_a_step
from isopleth import DataWarning
from isopleth.results.figures import new_figure, save_figure

LOADERS = {"mnist": load_digits, "celeba": load_faces}
TOGETHER = 50  # test rows evaluated at once
SPREAD_ROWS = 2000  # images over which the spread of the latent variables is taken
SHOWN = 12  # images in a line of a picture
COLUMNS = (
    "images", "latent", "estimator", "strength", "seed", "epochs", "seconds_an_epoch", "training_cost", "latent_deviation",
    "test_rows", "negative_log_likelihood", "standard_error",
)  # fmt: skip


def settings_of(options: argparse.Namespace) -> list[Settings]:
    """Return the runs that were asked for."""
    runs = []
    for latent in options.latent:
        for given in options.estimators:
            name, _, strength = given.partition(":")
            if name not in STRENGTHS:
                sys.exit(f"--estimators {given}: no such estimator; expected {', '.join(STRENGTHS)}.")
            try:
                value = float(strength) if strength else STRENGTHS[name]
            except ValueError:
                sys.exit(f"--estimators {given}: {strength!r} is not a number; give a strength such as {name}:1e-3.")
            runs += [Settings(options.images, name, value, latent, seed) for seed in options.seeds]
    return runs


def train(runs: list[Run], images: Digits | Faces, epochs: int, folder: Path, cpu_hours: float) -> None:
    """Train all runs to the same epoch; stop between two epochs of all when the processor time is used up."""
    for run in runs:
        checkpoint = folder / f"{run.settings.name}.pt"
        if checkpoint.exists():
            run.load(checkpoint)
    start = time.process_time()
    while (epoch := min(run.epoch for run in runs)) < epochs:
        if max(run.epoch for run in runs) == epoch and time.process_time() - start > 3600.0 * cpu_hours:
            print(f"stopped at epoch {epoch}: {cpu_hours:g} hours of processor time are used up", flush=True)
            return
        for run in [run for run in runs if run.epoch == epoch]:
            before = run.seconds
            run.train_epoch(images)
            run.save(folder / f"{run.settings.name}.pt")
            print(
                f"{run.settings.name}: epoch {run.epoch} of {epochs}, cost of a reconstruction {run.cost:.2f}, "
                f"{run.seconds - before:.1f} s",
                flush=True,
            )


def test_likelihoods(run: Run, images: Digits, rows: int, folder: Path) -> np.ndarray:
    """Return log likelihoods of the first test rows, and continue a file of those that are known."""
    path = folder / f"{run.settings.name}-epoch{run.epoch}.npy"
    known = np.load(path) if path.exists() else np.zeros(0)
    device = run.generator.device
    test = images.batch(torch.arange(rows, device=device), torch.Generator(device).manual_seed(0))
    run.networks.requires_grad_(False)
    while len(known) < rows:
        x = test[len(known) : min(rows, len(known) + TOGETHER)]
        generator = torch.Generator(device).manual_seed(len(known))

        def given(z: torch.Tensor, x: torch.Tensor = x) -> torch.Tensor:
            return run.networks.log_likelihood(x, z)

        found = log_likelihoods(given, len(x), run.settings.latent, Annealing(), generator)
        known = np.concatenate([known, found.cpu().numpy()])
        partial = path.with_suffix(".partial.npy")
        np.save(partial, known)
        os.replace(partial, path)
        print(f"{run.settings.name}: {len(known)} of {rows} test rows, {-known.mean():.2f} nats", flush=True)
    run.networks.requires_grad_(True)
    return known[:rows]


def draw(run: Run, images: Digits | Faces, path: Path) -> None:
    """Draw test images above their reconstructions, and samples of the model below."""
    generator = torch.Generator(run.generator.device).manual_seed(0)
    rows = torch.arange(min(SHOWN, len(images)), device=generator.device)
    with torch.no_grad():
        x = images.batch(rows, generator)
        z = torch.randn(2 * SHOWN, run.settings.latent, generator=generator, device=generator.device)
        samples = run.networks.picture(z)
        again = run.networks.picture(run.networks.encode(x, None))
        lines = [run.networks.shown(x), again, samples[:SHOWN], samples[SHOWN:]]
    figure = new_figure(9.0, 3.3)
    figure.patch.set_alpha(0.0)  # the ground of a page may be light or dark
    axes = figure.subplots(len(lines), SHOWN)
    for place in axes.flat:
        place.set_axis_off()
    for line, pictures in zip(axes, lines, strict=True):
        for place, picture in zip(line, pictures.cpu().numpy(), strict=False):
            place.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0)
    save_figure(figure, path)


def spread(run: Run, images: Digits | Faces) -> float:
    """Return the standard deviation of the latent variables over images, the root of the mean over variables of its square."""
    generator = torch.Generator(run.generator.device).manual_seed(0)
    rows = torch.arange(min(SPREAD_ROWS, len(images)), device=generator.device)
    with torch.no_grad():
        z = run.networks.encode(images.batch(rows, generator), generator)
    return float(z.var(dim=0, correction=0).mean().sqrt())


def report(run: Run, images: Digits | Faces, likelihoods: np.ndarray) -> dict[str, object]:
    """Return the line of a run in the table."""
    s, rows = run.settings, len(likelihoods)
    line: dict[str, object] = {
        "images": s.images, "latent": s.latent, "estimator": s.estimator, "strength": f"{s.strength:g}", "seed": s.seed,
        "epochs": run.epoch, "seconds_an_epoch": f"{run.seconds / max(run.epoch, 1):.1f}",
        "training_cost": f"{run.cost:.2f}", "latent_deviation": f"{spread(run, images):.3f}", "test_rows": rows,
    }  # fmt: skip
    line["negative_log_likelihood"] = f"{-likelihoods.mean():.2f}" if rows else ""
    line["standard_error"] = f"{likelihoods.std(ddof=1) / np.sqrt(rows):.2f}" if rows > 1 else ""
    return line


def write_table(lines: list[dict[str, object]], path: Path) -> None:
    """Write the table, and keep the lines of other runs that are in it."""
    key = ("images", "latent", "estimator", "strength", "seed", "epochs")
    kept: dict[tuple[str, ...], dict[str, object]] = {}
    if path.exists():
        with path.open(newline="") as file:
            kept = {tuple(line[name] for name in key): dict(line) for line in csv.DictReader(file)}
    kept |= {tuple(str(line[name]) for name in key): line for line in lines}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(kept.values())


def comparison(found: list[tuple[Run, np.ndarray]], images: Digits | Faces) -> Iterator[str]:
    """Yield the lines of a table for reading, and the differences of the runs of one latent dimension, paired by test rows."""
    heads = f"{'latent':>6}  {'estimator':<13}{'strength':>9}{'seed':>6}{'epochs':>8}"
    yield heads + f"{'s/epoch':>9}{'sd of z':>9}{'rows':>6}{'nats':>9}{'st. error':>11}"
    for run, values in found:
        line, s = report(run, images, values), run.settings
        yield (
            f"{s.latent:>6}  {s.estimator:<13}{s.strength:>9g}{s.seed:>6}{run.epoch:>8}{line['seconds_an_epoch']:>9}"
            f"{line['latent_deviation']:>9}"
            f"{len(values):>6}{line['negative_log_likelihood']:>9}{line['standard_error']:>11}"
        )
    for (one, first), (other, second) in combinations(found, 2):
        a, b = one.settings, other.settings
        if (a.latent, a.seed) != (b.latent, b.seed) or min(len(first), len(second)) < 2:
            continue
        gap = first - second  # log likelihoods: positive where the second needs more nats
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        yield (
            f"latent {a.latent}, seed {a.seed}: {b.estimator} {b.strength:g} needs {gap.mean():+.2f} nats more than "
            f"{a.estimator} {a.strength:g} (standard error {error:.2f}, the same test rows)"
        )


def print_times(runs: list[Run], images: Digits | Faces, steps: int) -> None:
    """Print the median time of a training step of each run, and its ratio to the first run."""
    seconds_a_step(runs, images, 10)
    found = np.median(np.array(seconds_a_step(runs, images, steps)), axis=1)
    for run, seconds in zip(runs, found, strict=True):
        print(f"{run.settings.name}: {1e3 * seconds:.2f} ms a step, {seconds / found[0]:.2f} times the first")


def main(arguments: list[str] | None = None) -> None:
    """Train, evaluate, write the table and the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the images")
    parser.add_argument("--images", choices=LOADERS, default="mnist")
    parser.add_argument("--latent", type=int, nargs="+", help="numbers of latent variables")
    parser.add_argument("--estimators", nargs="+", default=[*KERNEL_ESTIMATORS, "ssm"], metavar="NAME[:STRENGTH]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int, help="1,000 for mnist, 100 for celeba, as in the paper")
    parser.add_argument("--cpu-hours", type=float, default=float("inf"), help="end training after this processor time")
    parser.add_argument(
        "--test-rows", type=int, default=200, help="test images whose likelihood is estimated; 0 for none"
    )
    parser.add_argument(
        "--time-steps", type=int, help="measure so many training steps of each run, and do nothing else"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--out", type=Path, default=Path("wae"), help="folder of checkpoints, table and pictures")
    parser.add_argument("--table", type=Path, help="a text file for the table that is printed")
    options = parser.parse_args(arguments)
    options.latent = options.latent or ([8, 32, 64, 128] if options.images == "mnist" else [32, 64, 100, 128])
    epochs = options.epochs if options.epochs is not None else (1000 if options.images == "mnist" else 100)
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore", DataWarning)  # about the spread of the latent variables in single batches
    settings = settings_of(options)
    training, test = (images.to(options.device) for images in LOADERS[options.images](options.data))
    runs = [Run(each, options.device) for each in settings]
    if options.time_steps:
        print_times(runs, training, options.time_steps)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    train(runs, training, epochs, options.out, options.cpu_hours)
    results = []
    for run in runs:
        draw(run, test, options.out / f"{run.settings.name}.png")
        found = np.zeros(0)
        if isinstance(test, Digits):
            found = test_likelihoods(run, test, min(options.test_rows, len(test)), options.out)
        results.append((run, found))
    write_table([report(run, test, found) for run, found in results], options.out / "results.csv")
    text = "\n".join(comparison(results, test))
    print(text)
    if options.table:
        options.table.write_text(text + "\n")


if __name__ == "__main__":
    main()
