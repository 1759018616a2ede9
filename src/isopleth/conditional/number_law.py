r"""Law of a number given the other cells of its row: a stack of kernel estimates around trends.

A law is :math:`F(y \mid x) = \sum_i w_i(x) \Phi((S(y) - m(x) - r_i)/h)`: S maps the target (as it is, or by its marginal
frame), m is a trend, r_i is the residual of row i from the trend that does not know row i, w are weights of the rows of the fit
and h is a width. Nine of them, with six widths each, are pooled; the weights of the pool maximise the likelihood of the
recorded cells of the fit, each predicted without its row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import betainc, log_ndtr, ndtr

from isopleth.conditional.completed import WeightedTarget, spread_over
from isopleth.conditional.forest import Forest, Growth, squared
from isopleth.conditional.inputs import Inputs, Sample
from isopleth.conditional.kernel_ridge import KernelRidge
from isopleth.conditional.pools import beta_transform, log_beta_density, pool_weights
from isopleth.conditional.ridge import Ridge
from isopleth.conditional.trends import HeldGroups, TrendRows, Trends, fit_to_groups, weights_between
from isopleth.core.censored_regression import CensoredRegression
from isopleth.core.laws import EmpiricalLaw, interpolated, logarithmic_beyond_one
from isopleth.core.threads import check_stopped
from isopleth.frames.marginal import Marginal, MarginalMap

# Widths of kernels over the deviation of their centres.
WIDTHS = np.array([0.03, 0.07, 0.15, 0.3, 0.5, 0.8])
# Width of the kernels of repeated values, which stay sharp; they occur so often, and in such a share of the rows.
_SHARP, _OFTEN, _SHARE = 1e-4, 5, 0.02
# Rows whose cells choose the weights of the pool.
_JUDGED = 2000
# Nodes that the centres are rounded to, and places at which the tables of distribution functions hold values.
_NODES, _GRID = 256, 256
# Deviations of the target that are one of the wide law.
_WIDE = 8.0
# Scores on each side of an empty stretch that say in which unit it is measured.
_BESIDE = 0.25
# Scores beyond those of the values that a table of the marginal frame holds.
_REACH = 1e4
# Deviation of equal numbers, as a share of their size.
_NOTHING = 1e-9
# Deviations beyond which no kernel has any mass.
_FAR = 1e6
# Nats below which kernels underflow.
_UNDERFLOW = 745.0
# Laws of a smaller weight are left out where many rows are answered.
_NEGLIGIBLE = 1e-4
# Least half width of a cell, in deviations of the target.
_LEAST_CELL = 0.0025


_FINE = 81  # places of a row at which its distribution function is inverted


class Law(NamedTuple):
    """One law of the stack."""

    group: int  # number of its frame and trend
    kernel: str  # "equal", or the target of the forest that weighs: "target" or "residual"
    power: int = 1


# Frames and trends: marginal frame without trend, line in the target as it is, line in the marginal frame, and in it the mean
# of the forest and of the line with kernels.
PLAIN, LINE, CURVED_LINE, BLEND = range(4)
LAWS = (
    Law(PLAIN, "equal"),
    Law(LINE, "equal"),
    Law(CURVED_LINE, "equal"),
    Law(PLAIN, "target"),
    Law(PLAIN, "target", 2),
    Law(CURVED_LINE, "residual"),
    Law(CURVED_LINE, "residual", 2),
    Law(BLEND, "target", 2),
    Law(BLEND, "equal"),
)
# Whether the laws of a frame and trend follow a line beyond the data.
FOLLOWS = np.array([False, True, True, False])


@dataclass(frozen=True)
class ScoreTable:
    """The marginal frame of the target as a table, linear between 4,000 places: it is asked for at millions of values."""

    values: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, frame: MarginalMap, y: np.ndarray) -> Self:
        """Tabulate a map at quantiles and between them; beyond the values it goes on as it does on average over its last unit."""
        low, high = float(y.min()), float(y.max())
        values = np.unique(np.concatenate([np.quantile(y, np.linspace(0.0, 1.0, 1500)), np.linspace(low, high, 1500)]))
        scores = frame.forward(values[:, None])[:, 0]
        rising = np.concatenate([[True], np.diff(np.maximum.accumulate(scores)) > 1e-12])
        values, scores = values[rising], scores[rising]
        some = np.unique(np.quantile(y, np.linspace(0.0, 1.0, 1500), method="inverted_cdf"))
        scores = scores + np.interp(values, some, _empty_stretches(some, frame.forward(some[:, None])[:, 0]))
        last = scores[[0, -1]] + [1.0, -1.0]
        slopes = np.abs(values[[0, -1]] - np.interp(last, scores, values))
        slopes = np.where(slopes > 0.0, slopes, (high - low) or 1.0)
        return cls(
            np.concatenate([[values[0] - _REACH * slopes[0]], values, [values[-1] + _REACH * slopes[1]]]),
            np.concatenate([[scores[0] - _REACH], scores, [scores[-1] + _REACH]]),
        )

    @classmethod
    def even(cls, y: np.ndarray, weights: np.ndarray) -> Self:
        """Return deviations from the mean as scores."""
        share = weights / weights.sum()
        scores = np.array([-_REACH, _REACH])
        return cls(share @ y + scores * _deviation(y, share), scores)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Return the scores of values; beyond the table the value farthest out stands for all."""
        return np.interp(y, self.values, self.scores)

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Return the values of scores."""
        return np.interp(z, self.scores, self.values)


def _empty_stretches(y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return what is added to the scores z of ascending values y, so that kernels do not reach from one group into another.

    Ranks have no empty stretches: the scores of the dearest chair and of the cheapest table are next to each other, whatever lies
    between their prices. A stretch counts as long as it is in the units of the values beside it, and beyond one unit by the
    logarithm; only what exceeds three times the distance of the scores is added, so that nothing changes where there is no group.
    """
    before, after = np.minimum(_BESIDE, z - z[0])[:-1], np.minimum(_BESIDE, z[-1] - z)[1:]
    steps = np.diff(y)
    lengths = np.zeros(len(steps))
    for side, end in (
        (before, np.interp(z[:-1] - before, z, y) - y[:-1]),
        (after, np.interp(z[1:] + after, z, y) - y[1:]),
    ):
        t = steps * side / np.maximum(np.abs(end), 1e-300)
        lengths += side * logarithmic_beyond_one(t)
    lengths /= np.maximum(before + after, 1e-300)
    added = np.concatenate([[0.0], np.cumsum(np.maximum(lengths - 3.0 * np.diff(z), 0.0))])
    return np.asarray(added - np.interp(0.0, z, added))


@dataclass(frozen=True)
class Group:
    """Centres of one frame and trend, and nodes that they are rounded to."""

    centers: np.ndarray  # (n,): S(y_i) - m_i
    widths: np.ndarray  # (n, H): of the kernel of each centre
    node: np.ndarray  # (n,): node of each centre
    nodes: np.ndarray  # (Q,)
    node_widths: np.ndarray  # (Q, H)
    mass: np.ndarray  # (Q,): weight of each node among equal weights of the rows
    share: np.ndarray  # (n,): weights of the rows, of sum 1
    one: np.ndarray  # (n,): that of one of the equal rows that a row stands for
    grid: np.ndarray  # (G,)

    @classmethod
    def of(cls, centers: np.ndarray, weights: np.ndarray, copies: np.ndarray, atoms: np.ndarray) -> Self:
        """Round centres to nodes of equal counts; repeated values, `atoms`, are nodes of their own."""
        share = weights / weights.sum()
        deviation = _deviation(centers, share)
        widths = np.where(atoms[:, None], _SHARP, WIDTHS) * deviation
        order = np.lexsort([centers, atoms])
        plain = int((~atoms).sum())
        first = np.arange(plain) * min(_NODES, plain) // max(plain, 1)
        _, value = np.unique(centers[order[plain:]], return_inverse=True)
        node = np.empty(len(centers), dtype=np.intp)
        node[order] = np.concatenate([first, value + (int(first[-1]) + 1 if plain else 0)])
        mass = np.bincount(node, share)
        nodes = np.bincount(node, share * centers) / mass
        node_widths = np.empty((len(nodes), len(WIDTHS)))
        node_widths[node] = widths
        grid = _grid(nodes, node_widths, deviation)
        return cls(centers, widths, node, nodes, node_widths, mass, share, share / copies, grid)

    @property
    def deviation(self) -> float:
        """Unit of the widths."""
        return _deviation(self.centers, self.share)

    def table(self, weights: np.ndarray) -> np.ndarray:
        """Return the distribution functions about the nodes at the grid, (Q, G), with weights of the widths."""
        out = np.zeros((len(self.nodes), len(self.grid)))
        steps = self.grid - self.nodes[:, None]
        for k in np.flatnonzero(weights > 0.0):
            out += weights[k] * ndtr(steps / self.node_widths[:, [k]])
        return out


def _grid(nodes: np.ndarray, widths: np.ndarray, deviation: float) -> np.ndarray:
    """Return places where a distribution function about nodes is tabulated: at quantiles, evenly, and beside repeated values."""
    reach = 4.5 * WIDTHS[-1] * deviation
    low, high = nodes.min() - reach, nodes.max() + reach
    ordered = np.sort(nodes)
    parts = [
        np.interp(np.linspace(0.0, len(nodes) - 1.0, _GRID // 2), np.arange(len(nodes)), ordered),
        np.linspace(low, high, _GRID // 4),
        np.clip(np.median(nodes) + np.linspace(-3.0, 3.0, _GRID // 4) * deviation, low, high),
    ]
    sharp = np.unique(nodes[widths[:, 0] < 2.0 * _SHARP * deviation])
    parts += [sharp + k * _SHARP * deviation for k in (-3.0, -1.0, 0.0, 1.0, 3.0)]
    return np.unique(np.concatenate(parts))


class KernelCells(NamedTuple):
    """Distribution functions below cells, and the probabilities of the cells, of shape (n, H) or (n,)."""

    below: np.ndarray
    mass: np.ndarray


def kernel_cells(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the normal distribution function at `low`, and the probability up to `high` without loss of digits far out."""
    flipped = low > 0.0
    sign = np.where(flipped, -1.0, 1.0)
    a, b = ndtr(sign * low), ndtr(sign * high)
    return np.where(flipped, 1.0 - a, a), np.abs(b - a)


def local_cells(
    group: Group, W: csr_array, low: np.ndarray, high: np.ndarray, powers: tuple[int, ...], copies: np.ndarray
) -> list[KernelCells]:
    """Return cells between `low` and `high`, of shape (n,), under weights W and powers of them, exactly, for each width."""
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    n, centers, widths = W.shape[0], group.centers[W.indices], group.widths[W.indices]
    shares = [W.data if power == 1 else squared(W, copies).data for power in powers]
    out = [KernelCells(np.empty((n, len(WIDTHS))), np.empty((n, len(WIDTHS)))) for _ in powers]
    a, b = low[row] - centers, high[row] - centers
    for k in range(len(WIDTHS)):
        below, mass = kernel_cells(a / widths[:, k], b / widths[:, k])
        for cells, share in zip(out, shares, strict=True):
            cells.below[:, k] = np.bincount(row, share * below, n)
            cells.mass[:, k] = np.bincount(row, share * mass, n)
    return out


@dataclass(frozen=True)
class EqualLaw:
    """Law of all centres of a group with equal weights, as tables of distribution functions and log densities."""

    grid: np.ndarray  # (G,)
    cdf: np.ndarray  # (G, H)
    log_density: np.ndarray  # (G, H)

    @classmethod
    def of(cls, group: Group) -> Self:
        """Tabulate it far beyond the centres, where only such laws tell one value from another."""
        widest = float(group.node_widths.max())
        near = [group.grid, np.linspace(group.grid[0], group.grid[-1], _GRID)]
        middle = 0.5 * (group.grid[1:] + group.grid[:-1])
        far = widest * np.linspace(0.5, 30.0, 60)
        grid = np.unique(np.concatenate([*near, middle, group.grid[0] - far, group.grid[-1] + far]))
        cdf, log_density = np.empty((2, len(grid), len(WIDTHS)))
        for k in range(len(WIDTHS)):
            t = (grid[:, None] - group.nodes) / group.node_widths[:, k]
            cdf[:, k] = ndtr(t) @ group.mass
            logs = -0.5 * t * t + np.log(group.mass / group.node_widths[:, k] / np.sqrt(2.0 * np.pi))
            top = logs.max(axis=1)
            log_density[:, k] = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
        return cls(grid, cdf, log_density)

    def cells(self, group: Group, low: np.ndarray, high: np.ndarray, own: np.ndarray | None) -> KernelCells:
        """Return cells between `low` and `high`; without the centres `own` of rows of the fit."""
        place_low, place_high, place = (
            np.interp(u, self.grid, np.arange(len(self.grid))) for u in (low, high, 0.5 * (low + high))
        )
        below, above = _at_places(self.cdf, place_low), _at_places(self.cdf, place_high)
        density = np.exp(_at_places(self.log_density, place))
        narrow = (high - low)[:, None] < 0.5 * group.node_widths.min(axis=0)
        mass = np.where(narrow, (high - low)[:, None] * density, np.maximum(above - below, 0.0))
        if own is not None:
            share = group.one[own, None]
            here = [((end - group.centers[own])[:, None]) / group.widths[own] for end in (low, high)]
            own_below, own_mass = kernel_cells(*here)
            below = np.clip((below - share * own_below) / (1.0 - share), 0.0, 1.0)
            mass = np.maximum(mass - share * own_mass, 0.0) / (1.0 - share)
        return KernelCells(below, mass)


def _at_places(table: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return lines of a table between which a fractional place is."""
    first = np.minimum(place.astype(np.intp), len(table) - 2)
    part = (place - first)[:, None]
    return np.asarray((1.0 - part) * table[first] + part * table[first + 1])


class At(NamedTuple):
    """Trends and weights of some rows for their laws, and how far laws without a line are to be trusted."""

    trends: np.ndarray  # (4, n)
    kernels: dict[str, csr_array]
    trust: np.ndarray  # (n,)
    own: np.ndarray | None = None  # places among the rows of the fit, whose laws do not know them

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.trust)


@dataclass(frozen=True)
class NumberLaw:
    """Fitted stack of the laws of a number."""

    inputs: Inputs
    scores: ScoreTable
    lines: tuple[Ridge, Ridge]
    smooth: KernelRidge
    blend: float  # its share in the trend that it makes with the mean of the forest
    forests: dict[str, Forest]
    groups: tuple[Group, ...]
    equal: tuple[EqualLaw, ...]
    weights: np.ndarray  # (laws, H): of the pool
    beta: tuple[float, float]
    reach: tuple[float, float, float]  # least and largest value of the line at rows of the fit, and its deviation
    half_cell: float  # half the step in which the target is recorded
    unit: float  # deviation of the target
    repeated: np.ndarray  # values that many rows share, ascending
    # Least and largest value that the target can have: its extremes where many rows share them, infinite otherwise.
    limits: tuple[float, float]
    loo_trends: np.ndarray  # (4, n): trends at the rows of the fit that do not know them
    target: np.ndarray  # (p,): known numbers of the rows, and points of intervals
    origin: np.ndarray  # (p,): row of each
    points: np.ndarray  # (p,): number of points of the row of each
    rare: float  # weight of the wide law, that of one row
    censored: CensoredRegression | None  # by which intervals have their points
    levels: tuple[int, np.ndarray] | None = None  # input of trees between whose levels rows are, and these

    # ---- fit -------------------------------------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        sample: Sample,
        n_numeric: int,
        step: float,
        growth: Growth,
        residual_forest: bool = True,
        held: HeldGroups | None = None,
    ) -> Self:
        """Fit to distinct rows; `step` is that in which the target is recorded, 0 for none.

        The law is judged by rows that it does not know, one at a time or, with `held`, by whole groups. The laws of groups are
        in the unit of the target: its marginal frame would not know what is between the groups.
        """
        w = sample.weights
        middle = _middle(sample.target, sample.upper)
        ranked = EmpiricalLaw.of(middle, w)
        known = np.interp(middle, ranked.values, ranked.scores)[:, None]
        inputs, X, A = sample.inputs(n_numeric, known, levels=None if held is None else held.column)
        between = None if held is None or held.column is None else inputs.place_in_trees(held.column)
        points = WeightedTarget.of(A, sample.target, sample.upper, w)
        y, mass = points.values, points.weights
        scores = ScoreTable.of(Marginal().fit(y[:, None], mass), y) if held is None else ScoreTable.even(y, mass)
        z = scores(y)
        fitted = TrendRows(X, A, points.means_by_row(y), points.means_by_row(z), w, sample.copies)
        trends, unseen = (
            Trends.fit(fitted, growth, residual_forest)
            if held is None
            else fit_to_groups(fitted, held, between, growth, residual_forest)
        )
        blend, mean = unseen.blended(fitted)
        # Levels of the target that are left out say what is between them.
        atoms = is_repeated(y, mass) & points.known & (held is None or held.column is not None)
        none = np.zeros(len(y), dtype=bool)
        centers = (z, points.about(y, unseen.line), points.about(z, unseen.curve), z - mean[points.origin])
        copies = sample.copies[points.origin]
        groups = tuple(Group.of(c, mass, copies, atoms if g == PLAIN else none) for g, c in enumerate(centers))
        loo = np.stack([np.zeros(len(w)), fitted.y - unseen.line, fitted.z - unseen.curve, mean])
        share = mass / mass.sum()
        trend = trends.line.predict(A)
        law = cls(
            inputs,
            scores,
            (trends.line, trends.curve),
            trends.smooth,
            blend,
            trends.forests,
            groups,
            tuple(EqualLaw.of(group) for group in groups),
            np.full((len(LAWS), len(WIDTHS)), 1.0 / (len(LAWS) * len(WIDTHS))),
            (1.0, 1.0),
            (float(trend.min()), float(trend.max()), _deviation(trend, w / w.sum())),
            0.5 * step,
            _deviation(y, share),
            np.unique(y[atoms]),
            _limits(y, atoms),
            loo,
            y,
            points.origin,
            points.copies,
            1.0 / (1.0 + w.sum()),
            points.law,
            None if held is None or between is None else (between, held.levels),
        )
        if held is None:
            n = len(w)
            judged = np.arange(n) if n <= _JUDGED else np.sort(np.random.default_rng(0).permutation(n)[:_JUDGED])
            at = law.of_fit(judged)
        else:
            judged = held.judged
            kernels = {name: law._spread(csr_array(W[judged])) for name, W in unseen.kernels.items()}
            at = At(loo[:, judged], kernels, np.ones(len(judged)))
        return law._pooled(at, sample.target[judged], sample.upper[judged], w[judged])

    def _pooled(self, at: At, a: np.ndarray, b: np.ndarray, w: np.ndarray) -> Self:
        """Return the stack with the weights of its laws, and its calibration, by cells that are predicted without their rows."""
        half = np.where(a == b, max(self.half_cell, _LEAST_CELL * self.unit), 0.0)
        ends = (self._within_limits(a - half), self._within_limits(b + half))
        below, mass = (part.reshape(at.n, -1) for part in self._parts(at, *ends))
        weights = pool_weights(mass, w)
        under, above = np.clip(below @ weights, 0.0, 1.0), np.clip((below + mass) @ weights, 0.0, 1.0)
        return replace(self, weights=weights.reshape(self.weights.shape), beta=beta_transform(under, above, w))

    # ---- rows ------------------------------------------------------------------------------------------------------------

    def of_fit(self, places: np.ndarray) -> At:
        """Return what the laws of rows of the fit need, from trees, lines and centres that do not know them."""
        kernels = {name: self._spread(forest.out_of_bag(places)) for name, forest in self.forests.items()}
        return At(self.loo_trends[:, places], kernels, np.ones(len(places)), places)

    def at(self, rows: np.ndarray) -> At:
        """Return what the laws of rows need, whose cells are encoded as those of the fit."""
        X, A = self.inputs.of_trees(rows), self.inputs.of_lines(rows)
        kernels = {name: self._spread(self._weights_at(forest, X)) for name, forest in self.forests.items()}
        line, curve = (part.predict(A) for part in self.lines)
        mean = kernels["target"] @ self.groups[PLAIN].centers
        mean = mean + self.blend * (curve + self.smooth.predict(A) - mean)
        trends = np.stack([np.zeros(len(rows)), line, curve, mean])
        low, high, deviation = self.reach
        beyond = np.maximum(np.maximum(low - line, line - high), 0.0) / deviation
        return At(trends, kernels, np.exp(-beyond))

    def _weights_at(self, forest: Forest, X: np.ndarray) -> csr_array:
        if self.levels is None:
            return forest.weights_at(X)
        at, levels = self.levels
        return weights_between(forest, X, at, levels, np.arange(len(levels)))

    def _spread(self, W: csr_array) -> csr_array:
        return spread_over(W, self.origin, self.points)

    def _kernel(self, at: At, law: Law) -> csr_array:
        return at.kernels.get(law.kernel, at.kernels["target"])

    def _shares(self, at: At) -> np.ndarray:
        """Return the weight of each law at each row, (n, laws), relative to that in the pool: lines lead beyond the data."""
        factor = np.where(FOLLOWS[[law.group for law in LAWS]], 1.0, at.trust[:, None])
        total = factor @ self.weights.sum(axis=1)
        return np.asarray(factor / np.maximum(total, 1e-300)[:, None])

    def scale(self, group: int, y: np.ndarray) -> np.ndarray:
        """Return values of the target in the coordinates of a group, before its trend is taken off."""
        return y if group == LINE else self.scores(y)

    def unscale(self, group: int, s: np.ndarray) -> np.ndarray:
        """Return the values of coordinates of a group."""
        return s if group == LINE else self.scores.inverse(s)

    # ---- exact cells -------------------------------------------------------------------------------------------------------

    def _parts(self, at: At, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells from `low` to `high` of rows under each law and width, (n, laws, H): distribution below, and mass."""
        below, mass = np.empty((2, at.n, len(LAWS), len(WIDTHS)))
        done: set[int] = set()
        for i, law in enumerate(LAWS):
            if i in done:
                continue
            group = self.groups[law.group]
            a, b = (self.scale(law.group, end) - at.trends[law.group] for end in (low, high))
            if law.kernel == "equal" and "equal" not in at.kernels:
                same, found = [i], [self.equal[law.group].cells(group, a, b, at.own)]
            else:  # powers of the same weights share the kernels
                same = [j for j, other in enumerate(LAWS) if other[:2] == law[:2]]
                found = local_cells(group, self._kernel(at, law), a, b, tuple(LAWS[j].power for j in same), self.points)
            for j, cells in zip(same, found, strict=True):
                below[:, j], mass[:, j] = cells
            done.update(same)
        return below, mass

    def _within_limits(self, ends: np.ndarray) -> np.ndarray:
        """Return ends of cells such that what kernels have beyond a limit counts as the limit."""
        least, most = self.limits
        far = _FAR * self.unit
        ends = np.clip(ends, self.target.min() - far, self.target.max() + far)  # those of intervals may be infinite
        ends = np.where(ends <= least, least - far, ends) if np.isfinite(least) else ends
        return np.where(ends >= most, most + far, ends) if np.isfinite(most) else ends

    def cells(self, at: At, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distribution function at `low`, and the logarithm of the probability from `low` to `high`."""
        check_stopped()
        weights = self.weights * self._shares(at)[:, :, None]
        low, high = (self._within_limits(end) for end in (low, high))
        below, mass = (np.einsum("nlh,nlh->n", part, weights) for part in self._parts(at, low, high))
        wide, of_wide = kernel_cells(*map(self._wide, (low, high)))
        below, mass = (1.0 - self.rare) * below + self.rare * wide, (1.0 - self.rare) * mass + self.rare * of_wide
        below = np.clip(below, 0.0, 1.0)
        above = np.clip(below + mass, 0.0, 1.0)
        a, b = self.beta
        whole = betainc(a, b, above) - betainc(a, b, below)
        with np.errstate(divide="ignore"):
            thin = np.log(mass) + log_beta_density(below + 0.5 * mass, a, b)
            logs = np.where(mass > 1e-3 * np.minimum(below, 1.0 - below), np.log(np.maximum(whole, 0.0)), thin)
            logs = np.where(np.isfinite(logs), logs, thin)
        # Where all kernels underflow, the distance from the data orders values.
        nearest = np.clip(0.5 * (low + high), self.target.min(), self.target.max())
        far = log_ndtr(-np.abs(0.5 * (low + high) - nearest) / (WIDTHS[-1] * self.unit)) - _UNDERFLOW
        logs = np.where(np.isfinite(logs), logs, far)
        return betainc(a, b, below), np.minimum(logs, 0.0)

    # ---- inside limits -----------------------------------------------------------------------------------------------------

    def points_within(
        self, rows: np.ndarray, low: np.ndarray, high: np.ndarray, levels: np.ndarray
    ) -> np.ndarray | None:
        """Return quantiles of the censored regression within intervals, (n, k); None where no target was an interval."""
        return None if self.censored is None else self.censored.between(self.inputs.of_lines(rows), low, high, levels)

    def known_within(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the share of the centres within intervals that are known numbers: so much do kernels say about the inside."""
        order = np.argsort(self.target, kind="stable")
        share = self.groups[PLAIN].share[order]
        total, known = (np.append(0.0, np.cumsum(part)) for part in (share, share * (self.points[order] == 1.0)))
        ordered = self.target[order]
        first, last = np.searchsorted(ordered, low, side="right"), np.searchsorted(ordered, high, side="left")
        mass = np.maximum(total[last] - total[first], 0.0)
        return np.where(mass > 0.0, (known[last] - known[first]) / np.maximum(mass, 1e-300), 0.0)

    # ---- quantiles -----------------------------------------------------------------------------------------------------------

    def tables(self) -> list[np.ndarray | None]:
        """Return the distribution function about each node on the grid of its group, (Q, G), for laws that have a weight."""
        used = np.where(self.weights > _NEGLIGIBLE, self.weights, 0.0)
        return [self.groups[law.group].table(w) if w.any() else None for law, w in zip(LAWS, used, strict=True)]

    def curves(self, at: At, about: list[np.ndarray | None]) -> tuple[np.ndarray, np.ndarray]:
        """Return places of each row and its distribution function there, (n, K) each, from which it can be inverted.

        Centres are rounded to nodes, and distribution functions of each frame and trend are tabulated (error up to .01); `about`
        are the tables of :meth:`tables`.
        """
        tables = self._tables(at, about)
        beside = self._beside_repeated()
        y = np.concatenate([self._first_places(at, g) for g in tables], axis=1)
        for turn in range(3):
            y = np.sort(np.concatenate([y, np.tile(beside, (at.n, 1))], axis=1), axis=1)
            F = self._mixture(at, tables, y)
            if turn < 2:
                y = interpolated(np.tile(_LEVELS, (at.n, 1)), F, y)
        y = np.clip(self._at_repeated(y), *self.limits)
        return y, betainc(*self.beta, np.clip(F / np.maximum(F[:, -1:], 0.5), 0.0, 1.0))

    def _beside_repeated(self) -> np.ndarray:
        """Return places on both sides of the repeated values, between which their kernels are."""
        z, reach = self.scores(self.repeated), 3.5 * _SHARP * self.groups[PLAIN].deviation
        return self.scores.inverse(np.concatenate([z - reach, z + reach]))

    def _at_repeated(self, y: np.ndarray) -> np.ndarray:
        """Return places with those within the kernels of a repeated value moved to the value itself."""
        if not len(self.repeated):
            return y
        middles = 0.5 * (self.repeated[1:] + self.repeated[:-1])
        nearest = self.repeated[np.searchsorted(middles, y)]
        reach = 4.0 * _SHARP * self.groups[PLAIN].deviation
        return np.where(np.abs(self.scores(y) - self.scores(nearest)) <= reach, nearest, y)

    def _tables(self, at: At, about: list[np.ndarray | None]) -> dict[int, np.ndarray]:
        """Return the distribution functions of rows on the grid of each group, times the weight of the group."""
        shares = self._shares(at)
        out: dict[int, np.ndarray] = {}
        for i, (law, table) in enumerate(zip(LAWS, about, strict=True)):
            if table is None:
                continue
            group = self.groups[law.group]
            if law.kernel == "equal":
                found = shares[:, [i]] * (group.mass @ table)
            else:
                W = self._kernel(at, law)
                W = squared(W, self.points) if law.power == 2 else W
                found = (shares[:, [i]] * _on_nodes(W, group)) @ table
            out[law.group] = out[law.group] + found if law.group in out else found
        return out

    def _first_places(self, at: At, g: int) -> np.ndarray:
        """Return values at quantiles of the centres of a group about the trend of each row."""
        group = self.groups[g]
        places = np.interp(np.linspace(0.0, 1.0, 25), np.linspace(0.0, 1.0, len(group.nodes)), np.sort(group.nodes))
        places = np.concatenate([group.grid[:1], places, group.grid[-1:]])
        return self.unscale(g, at.trends[g][:, None] + places)

    def _mixture(self, at: At, tables: dict[int, np.ndarray], y: np.ndarray) -> np.ndarray:
        """Return the pooled distribution function of rows at places y, (n, K)."""
        rare = self.rare
        out, rows = rare / (1.0 - rare) * ndtr(self._wide(y)), np.arange(at.n)[:, None]
        for g, table in tables.items():
            grid = self.groups[g].grid
            u = self.scale(g, y) - at.trends[g][:, None]
            place = np.interp(u, grid, np.arange(len(grid)))
            first = np.minimum(place.astype(np.intp), len(grid) - 2)
            part = place - first
            out += (1.0 - part) * table[rows, first] + part * table[rows, first + 1]
        return np.clip((1.0 - rare) * out, 0.0, 1.0)

    def _wide(self, y: np.ndarray) -> np.ndarray:
        """Return values in deviations of a wide normal law, which has the share of one row: no value is impossible."""
        mean = self.groups[LINE].share @ self.target
        return np.asarray((y - mean) / (_WIDE * self.unit))


# Levels at which the distribution function of a row is inverted, denser in the tails.
_LEVELS = ndtr(np.linspace(-4.2, 4.2, _FINE))
_LEVELS[0], _LEVELS[-1] = 0.0, 1.0


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the middles of intervals, and the end of those with one."""
    low = np.where(np.isfinite(low), low, high)
    return np.asarray(0.5 * low + 0.5 * np.where(np.isfinite(high), high, low))


def _limits(y: np.ndarray, atoms: np.ndarray) -> tuple[float, float]:
    """Return the extremes of a column that many rows share, beyond which it has nothing."""
    low, high = y.argmin(), y.argmax()
    return float(y[low]) if atoms[low] else -np.inf, float(y[high]) if atoms[high] else np.inf


def _deviation(x: np.ndarray, share: np.ndarray) -> float:
    """Return the standard deviation of numbers with shares of sum 1; next to nothing where all are equal."""
    return float(np.sqrt(share @ (x - share @ x) ** 2)) or _NOTHING * (float(np.abs(x).max()) or 1.0)


def is_repeated(y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return a mask of the values that repeat themselves in a share of the rows, which stay sharp in laws."""
    _, place = np.unique(y, return_inverse=True)
    share = np.bincount(place, w) / w.sum()
    return np.asarray((share >= max(_OFTEN / w.sum(), _SHARE))[place])


def _on_nodes(W: csr_array, group: Group) -> np.ndarray:
    """Return the sums of weights of centres by node, (n, Q)."""
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    Q = len(group.nodes)
    return np.bincount(row * Q + group.node[W.indices], W.data, W.shape[0] * Q).reshape(-1, Q)
