"""Estimate the likelihood of a model with normal latent variables by annealed importance sampling.

    python -m experiments.wae.likelihood

prints the estimates for a linear decoder with normal noise beside its likelihood in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

ACCEPTED = 0.9  # share of accepted transitions that the steps are adapted to
FIRST_STEP = 0.1  # where the adaptation starts
# Each transition has its own random length: with one length for all, chains whose posterior is nearly normal come back to where
# they were.
LENGTHS = (0.5, 1.2)

# log p(x|z) of z of shape (chains, rows, d), of shape (chains, rows)
LogLikelihood = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Annealing:
    """Settings of annealed importance sampling; the defaults are the paper's.

    Parameters
    ----------
    chains : int
        Independent chains for each row.
    temperatures : int
        Number of transitions of a chain.
    leapfrogs : int
        Leapfrog steps of a transition.
    """

    chains: int = 5
    temperatures: int = 1000
    leapfrogs: int = 10

    def powers(self, temperatures: int) -> np.ndarray:
        """Return increasing powers of the likelihood from 0 to 1, denser near 0, where the posterior changes fast."""
        return np.linspace(0.0, 1.0, temperatures + 1) ** 4


def log_likelihoods(
    log_likelihood: LogLikelihood, rows: int, dim: int, annealing: Annealing, generator: torch.Generator
) -> Tensor:
    r"""Return estimates of :math:`\log \int p(x|z)\, N(z; 0, I)\, dz` for several rows at once.

    A chain starts in the prior and goes through densities proportional to :math:`p(z)\, p(x|z)^{\beta_t}` by Hamiltonian
    transitions. The mean over chains of :math:`\prod_t p(x|z_{t-1})^{\beta_t - \beta_{t-1}}` is an unbiased estimate of the
    likelihood, so its logarithm is too small on average. The steps of the transitions are adapted in a first pass with a fifth
    of the temperatures and fixed in the second pass, because an estimate from adapting chains would not be unbiased.

    Parameters
    ----------
    log_likelihood : callable
        z of shape (chains, rows, dim) -> log p(x|z) of shape (chains, rows), differentiable.
    rows : int
        Number of rows x.
    dim : int
        Number of latent variables.
    annealing : Annealing
        Chains, temperatures and steps.
    generator : torch.Generator
        Source of random numbers.

    Returns
    -------
    Tensor of shape (rows,)
        Log likelihoods in nats.
    """
    coarse = annealing.powers(max(2, annealing.temperatures // 5))
    fine = annealing.powers(annealing.temperatures)
    _, steps = _pass(log_likelihood, (annealing.chains, rows, dim), coarse, None, annealing.leapfrogs, generator)
    shares = np.interp(fine[1:], coarse[1:], np.arange(len(coarse) - 1))
    lower = torch.as_tensor(np.floor(shares).astype(int), device=steps.device)
    upper = torch.clamp(lower + 1, max=len(steps) - 1)
    part = torch.as_tensor(shares, dtype=steps.dtype, device=steps.device)[:, None] - lower[:, None]
    steps = steps[lower] * (1.0 - part) + steps[upper] * part
    weights, _ = _pass(log_likelihood, (annealing.chains, rows, dim), fine, steps, annealing.leapfrogs, generator)
    return torch.logsumexp(weights, dim=0) - math.log(annealing.chains)


def _pass(
    log_likelihood: LogLikelihood,
    shape: tuple[int, int, int],
    powers: np.ndarray,
    steps: Tensor | None,
    leapfrogs: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Run the chains once.

    Returns the log weights, (chains, rows), and the step of each transition and row, (temperatures, rows); `steps` None adapts
    them.
    """
    device = generator.device
    z = torch.randn(shape, generator=generator, device=device)
    step = torch.full((shape[1],), FIRST_STEP, device=device)
    weights = torch.zeros(shape[:2], device=device)
    taken = []
    likelihood, slope = _value_and_slope(log_likelihood, z)
    for t in range(1, len(powers)):
        weights += (powers[t] - powers[t - 1]) * likelihood
        if steps is not None:
            step = steps[t - 1]
        # The first transitions of an adapting pass find the order of magnitude of the step.
        repeats = 30 if steps is None and t == 1 else 1
        for _ in range(repeats):
            z, likelihood, slope, chance = _transition(
                log_likelihood, z, likelihood, slope, float(powers[t]), step, leapfrogs, generator
            )
            if steps is None:
                gain = 1.0 / (1.0 + 0.1 * len(taken)) if repeats == 1 else 1.0
                step = step * torch.exp(max(gain, 0.3) * (chance.mean(dim=0) - ACCEPTED))
        taken.append(step)
    return weights, torch.stack(taken)


def _value_and_slope(log_likelihood: LogLikelihood, z: Tensor) -> tuple[Tensor, Tensor]:
    z = z.detach().requires_grad_(True)
    with torch.enable_grad():
        value = log_likelihood(z)
        (slope,) = torch.autograd.grad(value.sum(), z)
    return value.detach(), slope


def _transition(
    log_likelihood: LogLikelihood,
    z: Tensor,
    likelihood: Tensor,
    slope: Tensor,
    power: float,
    step: Tensor,
    leapfrogs: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Take a Hamiltonian transition that leaves p(z) p(x|z)^power unchanged; `step` has one length for each row.

    Returns the new state, its log likelihood and slope, and the probability that it was accepted.
    """
    shortest, longest = LENGTHS
    shares = torch.rand(z.shape[:2], generator=generator, device=z.device)
    length = (step * (shortest + (longest - shortest) * shares))[..., None]
    momentum = torch.randn(z.shape, generator=generator, device=z.device)

    def energy(place: Tensor, value: Tensor, speed: Tensor) -> Tensor:
        return 0.5 * (place.square().sum(dim=-1) + speed.square().sum(dim=-1)) - power * value

    start = energy(z, likelihood, momentum)
    place, value, inclination = z, likelihood, slope
    speed = momentum + 0.5 * length * (power * inclination - place)
    for k in range(leapfrogs):
        place = place + length * speed
        value, inclination = _value_and_slope(log_likelihood, place)
        speed = speed + (0.5 if k == leapfrogs - 1 else 1.0) * length * (power * inclination - place)
    chance = torch.exp((start - energy(place, value, speed)).clamp(max=0.0)).nan_to_num(0.0)
    accepted = torch.rand(chance.shape, generator=generator, device=z.device) < chance
    wide = accepted[..., None]
    return (
        torch.where(wide, place, z),
        torch.where(accepted, value, likelihood),
        torch.where(wide, inclination, slope),
        chance,
    )


@dataclass(frozen=True)
class LinearDecoder:
    """Decoder x = W z + b + noise of variance v, whose likelihood is normal.

    Parameters
    ----------
    weights : Tensor of shape (columns, dim)
        W.
    shift : Tensor of shape (columns,)
        b.
    variance : float
        v.
    """

    weights: Tensor
    shift: Tensor
    variance: float

    def sample(self, rows: int, generator: torch.Generator) -> Tensor:
        """Draw rows x."""
        z = torch.randn(rows, self.weights.shape[1], generator=generator)
        noise = torch.randn(rows, len(self.shift), generator=generator)
        return z @ self.weights.T + self.shift + math.sqrt(self.variance) * noise

    def given(self, x: Tensor) -> LogLikelihood:
        """Return z -> log p(x|z)."""
        constant = -0.5 * len(self.shift) * math.log(2.0 * math.pi * self.variance)

        def log_likelihood(z: Tensor) -> Tensor:
            rest = x - self.shift - z @ self.weights.T
            return constant - 0.5 * rest.square().sum(dim=-1) / self.variance

        return log_likelihood

    def exact(self, x: Tensor) -> Tensor:
        """Return log p(x)."""
        W = self.weights.double()
        covariance = W @ W.T + self.variance * torch.eye(len(W), dtype=torch.float64)
        normal = torch.distributions.MultivariateNormal(self.shift.double(), covariance)
        return normal.log_prob(x.double())


def linear_decoder(dim: int, columns: int, variance: float, generator: torch.Generator) -> LinearDecoder:
    """Return a decoder with standard normal weights divided by the root of `dim`."""
    weights = torch.randn(columns, dim, generator=generator) / math.sqrt(dim)
    return LinearDecoder(weights, torch.randn(columns, generator=generator), variance)


def main() -> None:
    """Print estimated and exact likelihoods of linear decoders."""
    torch.set_num_threads(1)
    print(f"{'latent':>6}{'columns':>9}{'exact':>10}{'estimate':>10}{'mean gap':>10}{'largest gap':>13}")
    for dim, columns in ((8, 50), (32, 100), (128, 200)):
        generator = torch.Generator().manual_seed(dim)
        decoder = linear_decoder(dim, columns, 0.1, generator)
        x = decoder.sample(20, generator)
        found = log_likelihoods(decoder.given(x), len(x), dim, Annealing(), generator)
        gap = (found - decoder.exact(x)).numpy()
        exact, mean = float(decoder.exact(x).mean()), float(found.mean())
        print(
            f"{dim:>6}{columns:>9}{exact:>10.2f}{mean:>10.2f}{gap.mean():>10.3f}{np.abs(gap).max():>13.3f}", flush=True
        )


if __name__ == "__main__":
    main()
