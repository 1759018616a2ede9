"""The density difference as its equations say, by dense loops and solves."""

from __future__ import annotations

import numpy as np


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1)


def psi(x: np.ndarray, centers: np.ndarray, sigma: float) -> np.ndarray:
    """Return the functions, of shape (n, b)."""
    return np.exp(-squared_distances(x, centers) / (2.0 * sigma**2))


def volume(dim: int, sigma: float) -> float:
    return float((np.pi * sigma**2) ** (dim / 2.0))


def gram(centers: np.ndarray, sigma: float) -> np.ndarray:
    """Return the inner products with their factor."""
    return volume(centers.shape[1], sigma) * np.exp(-squared_distances(centers, centers) / (4.0 * sigma**2))


def h_of(x: np.ndarray, y: np.ndarray, centers: np.ndarray, sigma: float) -> np.ndarray:
    return psi(x, centers, sigma).mean(axis=0) - psi(y, centers, sigma).mean(axis=0)


def theta(x: np.ndarray, y: np.ndarray, centers: np.ndarray, sigma: float, ridge: float) -> np.ndarray:
    matrix = gram(centers, sigma) + ridge * np.eye(len(centers))
    return np.linalg.solve(matrix, h_of(x, y, centers, sigma))


def fold_loss(
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    centers: np.ndarray,
    sigma: float,
    ridge: float,
) -> float:
    """The loss in a held-out fold."""
    t = theta(*train, centers, sigma, ridge)
    return float(t @ gram(centers, sigma) @ t - 2.0 * t @ h_of(*test, centers, sigma))


def cross_fitted(
    train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray], sigma: float, ridge: float
) -> float:
    """h'Mk with all training rows as centres, h over the held-out rows, k over the others but the centre itself."""
    x, y = train
    centers = np.concatenate([x, y])
    k = np.empty(len(centers))
    for i, center in enumerate(centers):
        own_x, own_y = x, y
        if i < len(x):
            own_x = np.delete(x, i, axis=0)
        else:
            own_y = np.delete(y, i - len(x), axis=0)
        k[i] = h_of(own_x, own_y, center[None], sigma)[0]
    matrix = gram(centers, sigma)
    inverse = np.linalg.inv(matrix + ridge * np.eye(len(centers)))
    return float(h_of(*test, centers, sigma) @ (2.0 * inverse - inverse @ matrix @ inverse) @ k)


def covariance(x: np.ndarray, centers: np.ndarray, sigma: float, ddof: int) -> np.ndarray:
    return np.atleast_2d(np.cov(psi(x, centers, sigma), rowvar=False, ddof=ddof))
