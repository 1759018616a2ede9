"""Networks of the auto-encoders: dense ones for digits, convolutions for faces."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from experiments.wae.images import SIDE

HIDDEN = 256  # units of each of the two hidden layers
MAPS = 64  # feature maps of the first convolution; each further one has twice as many


def dense(inputs: int, outputs: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return a network with two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN), activation(), nn.Linear(HIDDEN, HIDDEN), activation(), nn.Linear(HIDDEN, outputs)
    )


class DigitNetworks(nn.Module):
    """Auto-encoder of MNIST: q(z|x) is normal with a diagonal covariance, p(x|z) has independent black and white pixels.

    Parameters
    ----------
    latent : int
        Number of latent variables.
    """

    shape: ClassVar[tuple[int, ...]] = (28, 28)

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.encoder = dense(784, 2 * latent)
        self.decoder = dense(latent, 784)

    def encode(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draw latent variables of images, or return their means if there is no generator."""
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        if generator is None:
            return mean
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        return mean + torch.exp(0.5 * log_variance) * noise

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        """Return log p(x|z) of each image, in nats."""
        logits = self.decoder(z)
        return (x * logits).sum(dim=-1) - softplus(logits).sum(dim=-1)

    def cost(self, x: Tensor, z: Tensor) -> Tensor:
        """Return the cost of each reconstruction, minus its log likelihood."""
        return -self.log_likelihood(x, z)

    def picture(self, z: Tensor) -> Tensor:
        """Return images between 0 and 1: the probabilities of white pixels."""
        return torch.sigmoid(self.decoder(z)).reshape(-1, *self.shape)

    def shown(self, x: Tensor) -> Tensor:
        """Return images of the data in the form of :meth:`picture`."""
        return x.reshape(-1, *self.shape)


class FaceNetworks(nn.Module):
    """Auto-encoder of CelebA: convolutions of 5 x 5 pixels with stride 2; the variance of q(z|x) is 1.

    Parameters
    ----------
    latent : int
        Number of latent variables.
    maps : int, default=MAPS
        Feature maps of the first convolution.
    """

    shape: ClassVar[tuple[int, ...]] = (SIDE, SIDE, 3)

    def __init__(self, latent: int, maps: int = MAPS) -> None:
        super().__init__()
        widths = [3, *(maps * 2**k for k in range(4))]
        last = SIDE // 16
        down: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            down += [nn.Conv2d(inputs, outputs, 5, stride=2, padding=2), nn.ReLU()]
        flat = widths[-1] * last**2
        self.encoder = nn.Sequential(*down, nn.Flatten(), nn.Linear(flat, 512), nn.ReLU(), nn.Linear(512, latent))
        up: list[nn.Module] = [nn.Linear(latent, 512), nn.ReLU(), nn.Linear(512, flat), nn.ReLU()]
        up.append(nn.Unflatten(1, (widths[-1], last, last)))
        for inputs, outputs in pairwise(reversed(widths)):
            up += [nn.ConvTranspose2d(inputs, outputs, 5, stride=2, padding=2, output_padding=1), nn.ReLU()]
        self.decoder = nn.Sequential(*up[:-1], nn.Tanh())

    def encode(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draw latent variables of pictures, or return their means if there is no generator."""
        mean = self.encoder(x)
        if generator is None:
            return mean
        return mean + torch.randn(mean.shape, generator=generator, device=mean.device)

    def cost(self, x: Tensor, z: Tensor) -> Tensor:
        """Return the squared distance of each picture to its reconstruction."""
        return (x - self.decoder(z)).square().sum(dim=(1, 2, 3))

    def picture(self, z: Tensor) -> Tensor:
        """Return pictures between 0 and 1, of shape (n, SIDE, SIDE, 3)."""
        return self.shown(self.decoder(z))

    def shown(self, x: Tensor) -> Tensor:
        """Return pictures of the data in the form of :meth:`picture`."""
        return (0.5 * (x + 1.0)).permute(0, 2, 3, 1)
