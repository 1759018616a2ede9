"""Train an auto-encoder whose entropy gradient comes from an estimated score; training can stop and go on after each epoch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from experiments.wae.networks import DigitNetworks, FaceNetworks, dense
from isopleth import KernelScore
from isopleth.score import KEF, SSGE, NuMethod, Stein
from isopleth.torch import entropy_surrogate

BATCH, RATE = 64, 1e-4
NETWORKS: dict[str, type[DigitNetworks] | type[FaceNetworks]] = {"mnist": DigitNetworks, "celeba": FaceNetworks}


class Images(Protocol):
    """Images from which batches are drawn."""

    def __len__(self) -> int: ...

    def batch(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Return the images of some rows."""
        ...


# Estimators of the score for a strength, all but the last two with the inverse multiquadric at the median distance. The
# strength is the ridge, the share of the eigenvalues or the number of steps.
KERNEL_ESTIMATORS: dict[str, Callable[[float], Any]] = {
    "stein": lambda strength: Stein(alpha=strength, n_jobs=1),
    "ssge": lambda strength: SSGE(count=strength, n_jobs=1),
    "kef": lambda strength: KEF(alpha=strength, solver="cg", tol=1e-4, n_jobs=1),
    "nu": lambda strength: NuMethod(steps=round(strength), n_jobs=1),
    "kernel-score": lambda strength: KernelScore(n_jobs=1),
    "default": lambda strength: None,  # the default of entropy_surrogate, a sum of the scores of simple models
}
STRENGTHS = {"stein": 1e-4, "ssge": 0.97, "kef": 1e-4, "nu": 70.0, "kernel-score": 0.0, "default": 0.0, "ssm": 0.0}


@dataclass(frozen=True)
class Settings:
    """Everything that decides a run but the images.

    Parameters
    ----------
    images : {"mnist", "celeba"}
        The kind of images.
    estimator : str
        A name in STRENGTHS.
    strength : float
        Strength of the regularisation; 0 for estimators that have none.
    latent : int
        Number of latent variables.
    seed : int
        Seed of the first weights, the batches and the noise. Runs of one seed see the same batches.
    """

    images: str
    estimator: str
    strength: float
    latent: int
    seed: int = 0

    @property
    def name(self) -> str:
        """A name for files."""
        strength = f"-{self.strength:g}" if self.strength else ""
        return f"{self.images}-{self.latent}-{self.estimator}{strength}-seed{self.seed}"


class KernelEntropy:
    """Entropy from the kernel score of each batch."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def surrogate(self, z: Tensor) -> Tensor:
        """Return a number with the gradient of the entropy of `z`."""
        return entropy_surrogate(z, self.estimator, n_jobs=1)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Do nothing: each batch is fitted anew."""


class SlicedEntropy:
    """Entropy from a score network that is trained beside the auto-encoder by sliced score matching.

    One step a batch on the mean of :math:`v^\\top \\nabla s(z)\\, v + |s(z)|^2/2`, v standard normal.

    Parameters
    ----------
    latent : int
        Number of latent variables.
    generator : torch.Generator
        Source of the projections v.
    """

    def __init__(self, latent: int, generator: torch.Generator) -> None:
        self.network = dense(latent, latent, nn.Tanh).to(generator.device)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=RATE, fused=True)
        self.generator = generator

    def loss(self, z: Tensor) -> Tensor:
        """Return the sliced score matching loss of the network at `z`."""
        z = z.detach().requires_grad_(True)
        scores = self.network(z)
        v = torch.randn(z.shape, generator=self.generator, device=z.device)
        (along,) = torch.autograd.grad((scores * v).sum(), z, create_graph=True)
        return ((along * v).sum(dim=1) + 0.5 * scores.square().sum(dim=1)).mean()

    def surrogate(self, z: Tensor) -> Tensor:
        """Take a step of the network and return a number with the gradient of the entropy of `z`."""
        self.optimiser.zero_grad()
        self.loss(z).backward()
        self.optimiser.step()
        with torch.no_grad():
            scores = self.network(z)
        return -(scores * z).sum() / len(z)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        return {"network": self.network.state_dict(), "optimiser": self.optimiser.state_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a checkpoint."""
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])


class Run:
    """An auto-encoder in training.

    The loss is the mean cost of the reconstructions plus the Kullback-Leibler divergence of the distribution q(z) of the latent
    variables from the standard normal prior, :math:`-H(q) + \\mathbb{E}\\,|z|^2/2` up to a constant.

    Parameters
    ----------
    settings : Settings
        What to train.
    device : str, default="cpu"
        Where to train.
    """

    def __init__(self, settings: Settings, device: str = "cpu") -> None:
        self.settings = settings
        torch.manual_seed(settings.seed)
        self.networks = NETWORKS[settings.images](settings.latent).to(device)
        self.optimiser = torch.optim.Adam(self.networks.parameters(), lr=RATE, fused=True)
        self.generator = torch.Generator(device).manual_seed(settings.seed)
        self.entropy: KernelEntropy | SlicedEntropy
        if settings.estimator == "ssm":
            projections = torch.Generator(device).manual_seed(settings.seed + 1)
            self.entropy = SlicedEntropy(settings.latent, projections)
        else:
            self.entropy = KernelEntropy(KERNEL_ESTIMATORS[settings.estimator](settings.strength))
        self.epoch, self.seconds, self.cost = 0, 0.0, float("nan")

    def step(self, x: Tensor) -> float:
        """Take one step on a batch and return the mean cost of its reconstructions."""
        z = self.networks.encode(x, self.generator)
        cost = self.networks.cost(x, z).mean()
        loss = cost + 0.5 * z.square().sum() / len(z) - self.entropy.surrogate(z)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return float(cost.detach())

    def train_epoch(self, images: Images) -> None:
        """Take one step for each batch of images in random order; an incomplete batch is left out."""
        start = time.process_time()
        order = torch.randperm(len(images), generator=self.generator, device=self.generator.device)
        size = min(BATCH, len(images))
        batches = order[: len(order) // size * size].split(size)
        self.cost = sum(self.step(images.batch(rows, self.generator)) for rows in batches) / len(batches)
        self.epoch += 1
        self.seconds += time.process_time() - start

    def save(self, path: Path) -> None:
        """Write a checkpoint; it is either complete or not there."""
        partial = path.with_suffix(".partial")
        state = {
            "networks": self.networks.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "entropy": self.entropy.state(),
            "generator": self.generator.get_state(),
            "progress": (self.epoch, self.seconds, self.cost),
        }
        if isinstance(self.entropy, SlicedEntropy):
            state["projections"] = self.entropy.generator.get_state()
        torch.save(state, partial)
        os.replace(partial, path)

    def load(self, path: Path) -> None:
        """Go back to a checkpoint."""
        state = torch.load(path, map_location=self.generator.device, weights_only=True)
        self.networks.load_state_dict(state["networks"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.entropy.restore(state["entropy"])
        self.generator.set_state(state["generator"].cpu())
        if isinstance(self.entropy, SlicedEntropy):
            self.entropy.generator.set_state(state["projections"].cpu())
        self.epoch, self.seconds, self.cost = state["progress"]


def seconds_a_step(runs: list[Run], images: Images, steps: int) -> list[list[float]]:
    """Return the processor seconds of training steps of each run, taken in turn so that all meet the same load.

    On a device other than the CPU they are seconds of the clock, up to the end of the step's work.
    """
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(steps):
        for run, seconds in zip(runs, found, strict=True):
            device = run.generator.device
            rows = torch.randint(len(images), (BATCH,), generator=run.generator, device=device)
            clock = time.process_time if device.type == "cpu" else time.perf_counter
            start = clock()
            run.step(images.batch(rows, run.generator))  # returns a number, so the device has finished
            if device.type == "cuda":
                torch.cuda.synchronize()
            seconds.append(clock() - start)
    return found
