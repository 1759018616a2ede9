"""Draws from a fitted density or score by Markov chains."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from isopleth.core.errors import InputError, whole_number
from isopleth.core.progress import Progress
from isopleth.core.threads import check_stopped
from isopleth.sampling.chains import Chains
from isopleth.sampling.steps import Adapted, Annealed, Hamiltonian, Jump, Langevin, Step, UnadjustedLangevin
from isopleth.sampling.target import State, Whitened, target_of

METHODS = ("auto", "mala", "hmc", "ula", "annealed")

_STEPS: dict[str, type[Step]] = {"mala": Langevin, "hmc": Hamiltonian, "ula": UnadjustedLangevin}

# Steps between two draws that are kept (Langevin steps are short), and steps of the warm-up.
_THIN = {"mala": 10, "hmc": 1, "ula": 20, "annealed": 1}
_WARM_UP = {"mala": 200, "hmc": 200, "ula": 200, "annealed": 40}

# First step size, before it is adapted.
_FIRST = 0.3

# Fewest draws of each chain, so that the diagnostics are known even if few rows are asked for.
FEWEST_DRAWS = 100


def sample(
    model: Any,
    n_samples: int = 1000,
    *,
    method: str = "auto",
    chains: int = 16,
    warm_up: int | None = None,
    thin: int | None = None,
    step_size: float | None = None,
    jumps: bool = True,
    widest: float = 4.0,
    levels: int = 8,
    random_state: Any = None,
    verbose: bool | int = False,
) -> Chains:
    r"""Draw from a fitted density, score or :class:`Target` by Markov chains.

    Chains start at rows of the data and move together, in coordinates in which the covariance of the data is the identity. The
    step size is adapted in the warm-up and fixed afterwards.

    Parameters
    ----------
    model : fitted estimator or Target
        :class:`~isopleth.SOSREP`, :class:`~isopleth.KDE` or a score estimator that is fitted to complete rows of numbers, or a
        :class:`Target`.
    n_samples : int, default=1000
        Number of rows of the result, :attr:`Chains.rows`.
    method : {"auto", "mala", "hmc", "ula", "annealed"}, default="auto"
        The sampler. "mala": Metropolis-adjusted Langevin steps. "hmc": Hamiltonian Monte Carlo. "ula": Langevin steps without
        adjustment, which need no log density and are slightly too wide. "annealed": each draw is the end of a pass of Langevin
        steps from wide length scales to the fitted one, for densities with separate modes [1]_. "auto" is "mala" if there
        is a log density and "ula" otherwise.
    chains : int, default=16
        Number of chains.
    warm_up : int, optional
        Number of steps in which the step size is adapted; they are not part of the result. By default 200, and 40 passes of
        "annealed".
    thin : int, optional
        Number of steps between two draws; by default 10 for "mala", 20 for "ula", and 1 for the others.
    step_size : float, optional
        Step size; it is then not adapted. A normal density in the coordinates of the chains has variance 1.
    jumps : bool, default=True
        Whether "mala" and "hmc" propose, before each draw, a jump to a draw from a kernel density of the data, which is accepted
        or rejected so that the limit stays exact. Jumps bring chains from mode to mode.
    widest : float, default=4.0
        The largest multiple of the fitted length scale, for "annealed".
    levels : int, default=8
        Number of length scales from `widest` to 1, for "annealed".
    random_state : int, RandomState or None
        Seed.
    verbose : bool or int, default=False
        Whether to show a progress bar on standard error.

    Returns
    -------
    Chains
        The draws with R-hat, effective sample sizes and acceptance.

    Raises
    ------
    InputError
        If a parameter is invalid, the model has nothing to draw from, or the method needs a log density or length scales that
        it does not have.

    Warns
    -----
    ConvergenceWarning
        If R-hat is above 1.05, a bulk or tail effective sample size below 100, or less than a fifth of the steps accepted.

    Notes
    -----
    "mala" and "hmc" have the fitted density as their exact limit. "annealed" is adjusted at each length scale if there is a log
    density, but a pass has the fitted density as its limit only if it is long; the weights of the modes are approximate.

    References
    ----------
    .. [1] Y. Song, S. Ermon, "Generative modeling by estimating gradients of the data distribution", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP
    >>> from isopleth.sampling import sample
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> chains = sample(SOSREP(kernel="matern52", frame="scale").fit(rows), 2000, random_state=0)
    >>> chains.rows.shape
    (2000, 2)
    >>> bool(chains.r_hat.max() < 1.05 and chains.effective_sample_size.min() > 400)
    True
    """
    _check(n_samples, method, chains, warm_up, thin, step_size, widest, levels)
    target = target_of(model)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    whitened = Whitened.of(target)
    state = whitened.evaluate(whitened.starts(int(chains), rng))
    method = _method(method, target, state)
    state = _only_usable(state)
    adjusted = state.log_density is not None and method != "ula"
    first = _FIRST if step_size is None else float(step_size)
    advance: Adapted | Annealed
    if method == "annealed":
        advance = Annealed(whitened, np.geomspace(widest, 1.0, int(levels)), adjusted, first)
    else:
        advance = Adapted(whitened, _STEPS[method](first))
    thin = _THIN[method] if thin is None else int(thin)
    warm_up = _WARM_UP[method] if warm_up is None else int(warm_up)
    draws = max(FEWEST_DRAWS, math.ceil(n_samples / chains))
    run = _Run(advance, Jump(whitened, rng) if jumps and method in ("mala", "hmc") else None, rng)
    with Progress(f"draws by {method}", warm_up + draws * thin, verbose) as tick:
        state = run.warm_up(state, warm_up, thin, step_size is None, tick)
        places, acceptance, jumped = run.draws(state, draws, thin, tick)
    rows = target.leave(whitened.rows(places.reshape(-1, places.shape[2]))).reshape(int(chains), draws, -1)
    found = Chains(
        draws=rows,
        n_samples=int(n_samples),
        method=method,
        exact=adjusted and method != "annealed",
        acceptance=acceptance,
        jumps=jumped,
        step_size=advance.step_size,
        n_evaluations=whitened.calls.places,
    )
    found.warn()
    return found


@dataclass
class _Run:
    """Steps of all chains, and perhaps a jump before each draw."""

    advance: Adapted | Annealed
    jump: Jump | None
    rng: np.random.Generator

    def warm_up(self, state: State, steps: int, thin: int, adapts: bool, tick: Callable[[], None]) -> State:
        """Return the state after the warm-up."""
        self.advance.warming = adapts
        for i in range(steps):
            check_stopped()
            if self.jump is not None and i % thin == 0:
                state = self.jump(state, self.rng).state
            state = self.advance(state, self.rng).state
            tick()
        self.advance.warming = False
        return state

    def draws(
        self, state: State, count: int, thin: int, tick: Callable[[], None]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the places, of shape (chains, draws, d), and the mean acceptance of the steps and of the jumps of each chain."""
        places = np.empty((len(state.u), count, state.u.shape[1]))
        total, jumped = np.zeros(len(state.u)), np.zeros(len(state.u))
        for i in range(count):
            if self.jump is not None:
                state, acceptance = self.jump(state, self.rng)
                jumped += acceptance
            for _ in range(thin):
                check_stopped()
                state, acceptance = self.advance(state, self.rng)
                total += acceptance
                tick()
            places[:, i] = state.u
        return places, total / (count * thin), None if self.jump is None else jumped / count


def _method(method: str, target: Any, state: State) -> str:
    """Return the sampler that `method` stands for."""
    if method == "auto":
        return "ula" if state.log_density is None else "mala"
    if method in ("mala", "hmc") and state.log_density is None:
        raise InputError(
            f"method={method!r} needs a log density, and this score has none; take method='ula', or fit a score with "
            "space='curl_free'."
        )
    if method == "annealed" and target.wider is None:
        raise InputError(
            "method='annealed' needs wider length scales, which this target does not have; take another method."
        )
    return method


def _only_usable(state: State) -> State:
    """Return the state with chains at unusable places moved to usable ones."""
    usable = np.flatnonzero(state.usable())
    if not len(usable):
        raise InputError("the density is 0 or not finite at every start row, so no chain can start.")
    chosen = np.arange(len(state.u))
    lost = np.setdiff1d(chosen, usable)
    chosen[lost] = usable[np.arange(len(lost)) % len(usable)]
    log_density = None if state.log_density is None else state.log_density[chosen]
    return State(state.u[chosen], log_density, state.gradient[chosen])


def _check(
    n_samples: Any, method: Any, chains: Any, warm_up: Any, thin: Any, step_size: Any, widest: Any, levels: Any
) -> None:
    """Refuse parameters of a run that are of a wrong type or range."""
    if method not in METHODS:
        raise InputError(f"method = {method!r}: expected one of {', '.join(map(repr, METHODS))}.")
    whole = {"n_samples": (n_samples, 1), "chains": (chains, 1), "levels": (levels, 2)}
    whole |= {} if warm_up is None else {"warm_up": (warm_up, 0)}
    whole |= {} if thin is None else {"thin": (thin, 1)}
    for name, (value, least) in whole.items():
        whole_number(name, value, least)
    if step_size is not None and not (_is_number(step_size) and 0 < step_size < math.inf):
        raise InputError(f"step_size = {step_size!r}: expected a positive number, or None to adapt it.")
    if not (_is_number(widest) and 1 < widest < math.inf):
        raise InputError(f"widest = {widest!r}: expected a number above 1.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
