"""Densities that the study of densities compares: ours in each frame, kernels, mixtures, flows and forests."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from isopleth import KDE, SOSREP

# Returns log densities of rows.
LogDensity = Callable[[np.ndarray], np.ndarray]
# Fits to rows in standard deviations of the columns, with a seed.
Method = Callable[[np.ndarray, int], LogDensity]


def ours(estimator: type[Any], frame: str) -> Method:
    """Return one of our densities, with all parameters but the frame as they are by default."""

    def fit(X: np.ndarray, seed: int) -> LogDensity:
        density = estimator(frame=frame, n_jobs=1).fit(X)
        return lambda Q: np.asarray(density.score_samples(Q))

    return fit


def normal(X: np.ndarray, seed: int) -> LogDensity:
    """Fit a normal distribution."""
    from scipy.stats import multivariate_normal

    return multivariate_normal(X.mean(axis=0), np.cov(X.T), allow_singular=False).logpdf


def scipy_kde(X: np.ndarray, seed: int) -> LogDensity:
    """Fit SciPy's density, which scales its kernel by the covariance matrix of the rows."""
    from scipy.stats import gaussian_kde

    density = gaussian_kde(X.T)
    return lambda Q: np.asarray(density.logpdf(Q.T))


def sklearn_kde(X: np.ndarray, seed: int) -> LogDensity:
    """Fit scikit-learn's KernelDensity with the bandwidth of the best of twenty by five folds."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.neighbors import KernelDensity

    n, d = X.shape
    grid = {"bandwidth": n ** (-1.0 / (d + 4)) * np.geomspace(0.05, 2.0, 20)}
    search = GridSearchCV(KernelDensity(rtol=1e-4), grid, cv=KFold(5, shuffle=True, random_state=seed))
    return search.fit(X).best_estimator_.score_samples


def kdepy(X: np.ndarray, seed: int) -> LogDensity:
    """Fit KDEpy's density by Scott's rule; its own rules for bandwidths are for one column."""
    from KDEpy import NaiveKDE

    n, d = X.shape
    density = NaiveKDE(bw=n ** (-1.0 / (d + 4))).fit(X)
    if (density.evaluate(X) < 1e-15).all():  # in 50 columns
        raise ValueError("all densities are below 2e-16, which KDEpy adds to them")
    return lambda Q: np.log(np.maximum(density.evaluate(Q), 1e-300))


def mixture_by_bic(X: np.ndarray, seed: int) -> LogDensity:
    """Fit normal mixtures of 1 to 10 components, ridge 1e-4; take that of the least Bayesian information criterion."""
    from sklearn.mixture import GaussianMixture

    most = max(1, min(10, len(X) // 10))
    models = [GaussianMixture(k, reg_covar=1e-4, random_state=seed).fit(X) for k in range(1, most + 1)]
    return min(models, key=lambda model: model.bic(X)).score_samples


def folded_mixture(X: np.ndarray, seed: int) -> Any:
    """Fit scikit-learn's normal mixtures; three folds choose the number of components and the ridge."""
    from sklearn.mixture import GaussianMixture
    from sklearn.model_selection import GridSearchCV, KFold

    counts = [k for k in (1, 2, 3, 4, 6, 8, 11, 15) if k <= max(1, len(X) // 10)]
    grid = {"n_components": counts, "reg_covar": [1e-6, 1e-4, 1e-3, 1e-2, 1e-1]}
    folds = KFold(3, shuffle=True, random_state=seed)
    search = GridSearchCV(GaussianMixture(random_state=seed), grid, cv=folds, error_score=-1e9)
    return search.fit(X).best_estimator_


def mixture_by_folds(X: np.ndarray, seed: int) -> LogDensity:
    """Fit a normal mixture chosen by three folds."""
    return folded_mixture(X, seed).score_samples


def flow(X: np.ndarray, seed: int, kind: str, seconds: float) -> LogDensity:
    """Train one of zuko's flows on four fifths of the rows until the rest has not gained for a while, or time is up."""
    import torch
    import zuko

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    settings = {"transforms": 3, "hidden_features": (64, 64)}
    model = getattr(zuko.flows, kind)(X.shape[1], **settings)
    rows = torch.tensor(X[np.random.default_rng(seed).permutation(len(X))], dtype=torch.float32)
    held, rows = rows[: len(rows) // 5], rows[len(rows) // 5 :]
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    best, kept, waited, start = -np.inf, None, 0, time.process_time()
    while waited < 60 and time.process_time() - start < seconds:
        for batch in rows[torch.randperm(len(rows))].split(128):
            optimiser.zero_grad()
            loss = -model().log_prob(batch).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
        with torch.no_grad():
            value = float(model().log_prob(held).mean())
        waited += 1
        if value > best:
            best, waited = value, 0
            kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if kept is not None:
        model.load_state_dict(kept)

    def log_density(Q: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(model().log_prob(torch.tensor(Q, dtype=torch.float32)).numpy(), dtype=float)

    return log_density


def forest(X: np.ndarray, seed: int) -> LogDensity:
    """Fit arfpy's adversarial random forest; each leaf is a product of truncated normal distributions."""
    import pandas as pd
    from arfpy import arf
    from scipy.special import logsumexp
    from scipy.stats import truncnorm

    if not hasattr(np, "in1d"):
        setattr(np, "in1d", np.isin)  # noqa: B010  # arfpy calls a function that NumPy 2.4 has removed
    names = [f"x{j}" for j in range(X.shape[1])]
    np.random.seed(seed)  # noqa: NPY002  # arfpy draws from the global generator
    model = arf.arf(pd.DataFrame(X, columns=names), verbose=False, random_state=seed)
    model.forde()
    cover = model.bnds.drop_duplicates(["tree", "nodeid"]).set_index(["tree", "nodeid"])["cvg"]
    leaves = [
        (np.log(cover[key]), leaf.set_index("variable").loc[names])
        for key, leaf in model.params.groupby(["tree", "nodeid"])
        if key in cover.index
    ]

    def log_density(Q: np.ndarray) -> np.ndarray:
        terms = np.full((len(leaves), len(Q)), -np.inf)
        for k, (log_cover, leaf) in enumerate(leaves):
            low, high, mean = leaf["min"].to_numpy(), leaf["max"].to_numpy(), leaf["mean"].to_numpy()
            deviation = np.maximum(leaf["sd"].to_numpy(), 1e-6)
            inside = ((low <= Q) & (high >= Q)).all(axis=1)
            if inside.any():
                ends = (low - mean) / deviation, (high - mean) / deviation
                terms[k, inside] = log_cover + truncnorm.logpdf(Q[inside], *ends, mean, deviation).sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(logsumexp(terms, axis=0) - np.log(model.num_trees))

    return log_density


METHODS: dict[str, Method] = {
    "KDE, scale": ours(KDE, "scale"),
    "KDE, auto": ours(KDE, "auto"),
    "SOSREP, scale": ours(SOSREP, "scale"),
    "SOSREP, whiten": ours(SOSREP, "whiten"),
    "SOSREP, smooth": ours(SOSREP, "smooth"),
    "SOSREP, marginal": ours(SOSREP, "marginal"),
    "SOSREP, gp1": ours(SOSREP, "gp1"),
    "SOSREP, gp4": ours(SOSREP, "gp4"),
    "SOSREP, auto": ours(SOSREP, "auto"),
    "SOSREP, deep": ours(SOSREP, "deep"),
    "normal distribution": normal,
    "SciPy gaussian_kde": scipy_kde,
    "scikit-learn KernelDensity, folds": sklearn_kde,
    "KDEpy, Scott": kdepy,
    "mixture, BIC": mixture_by_bic,
    "mixture, folds": mixture_by_folds,
    "zuko NSF, 10 s": partial(flow, kind="NSF", seconds=10.0),
    "zuko NSF, 60 s": partial(flow, kind="NSF", seconds=60.0),
    "zuko MAF, 10 s": partial(flow, kind="MAF", seconds=10.0),
    "arfpy": forest,
}
