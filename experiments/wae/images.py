"""Read the images that auto-encoders are trained on: MNIST from one file, CelebA from its folder of pictures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

MNIST_SOURCE = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"
CELEBA_SOURCE = "the folder img_align_celeba of https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"

# CelebA's aligned pictures have 178 x 218 pixels; the middle square of this side is reduced to SIDE pixels.
CROP, SIDE = 140, 64


@dataclass(frozen=True)
class Digits:
    """Grey values of MNIST as probabilities of white pixels.

    Parameters
    ----------
    values : Tensor of shape (n, 784), uint8
        Grey values, 0 to 255.
    """

    values: Tensor

    def __len__(self) -> int:
        return len(self.values)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Return black and white images, each pixel drawn anew with its grey value as the probability of white."""
        return torch.bernoulli(self.values[rows].float().div_(255.0), generator=generator)

    def to(self, device: str) -> Digits:
        """Return the same images on a device."""
        return Digits(self.values.to(device))


def load_digits(folder: Path) -> tuple[Digits, Digits]:
    """Return the training and the test images of MNIST, from ``mnist.npz`` anywhere below `folder`."""
    path = next(iter(sorted(folder.rglob("mnist.npz"))), None)
    if path is None:
        sys.exit(f"no file mnist.npz below {folder}; it comes from {MNIST_SOURCE}.")
    with np.load(path) as file:
        train, test = (torch.from_numpy(file[name].reshape(len(file[name]), -1)) for name in ("x_train", "x_test"))
    return Digits(train), Digits(test)


@dataclass(frozen=True)
class Faces:
    """Pictures of CelebA, read from their files when they are needed.

    Parameters
    ----------
    files : sequence of Path
        Pictures of at least CROP x CROP pixels.
    device : str
        Where batches are put.
    """

    files: Sequence[Path]
    device: str = "cpu"

    def __len__(self) -> int:
        return len(self.files)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Return pictures of shape (len(rows), 3, SIDE, SIDE), values from -1 to 1. Nothing is drawn."""
        return torch.stack([read_face(self.files[row]) for row in rows.tolist()]).to(self.device)

    def to(self, device: str) -> Faces:
        """Return the same pictures with batches on a device."""
        return Faces(self.files, device)


def read_face(path: Path) -> Tensor:
    """Return the middle of a picture as a tensor of shape (3, SIDE, SIDE), values from -1 to 1."""
    with Image.open(path) as picture:
        width, height = picture.size
        if min(width, height) < CROP:
            sys.exit(
                f"{path} has {width} x {height} pixels; expected at least {CROP} x {CROP}, as CelebA's pictures have."
            )
        left, top = (width - CROP) // 2, (height - CROP) // 2
        middle = picture.convert("RGB").crop((left, top, left + CROP, top + CROP))
        pixels = np.asarray(middle.resize((SIDE, SIDE), Image.Resampling.BILINEAR), dtype=np.float32)
    return torch.from_numpy(pixels).permute(2, 0, 1).div(127.5).sub(1.0)


def load_faces(folder: Path) -> tuple[Faces, Faces]:
    """Return the training and the test pictures of CelebA below `folder`.

    ``list_eval_partition.txt`` says which picture is for training (0) and which for testing (2), as published. Without this
    file, the last tenth of the pictures, in the order of their names, is for testing.
    """
    files = sorted(folder.rglob("img_align_celeba/**/*.jpg"))
    if len(files) < 2:
        sys.exit(f"no pictures img_align_celeba/*.jpg below {folder}; they come from {CELEBA_SOURCE}.")
    listed = next(iter(sorted(folder.rglob("list_eval_partition.txt"))), None)
    if listed is None:
        first = len(files) - max(1, len(files) // 10)
        return Faces(files[:first]), Faces(files[first:])
    part = dict(line.split() for line in listed.read_text().splitlines() if line.strip())
    return tuple(Faces([file for file in files if part.get(file.name) == which]) for which in ("0", "2"))
