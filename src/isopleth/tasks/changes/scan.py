"""Scan of block means for changes: a whitened contrast, its null distribution by shuffled chunks, a recursion over segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.fft import dct

from isopleth.core.p_values import simulated_pvalue
from isopleth.tasks.changes.embedding import Blocks, over_blocks
from isopleth.tasks.changes.several_changes import best_places, contrasts_at, without_means

# Number of shuffles, and of neighbouring blocks that they keep together, because these are correlated without a change too.
RUNS = 199
CHUNK = 4
# Most principal components, and blocks needed for each.
_MOST_COMPONENTS = 10
_BLOCKS_A_COMPONENT = 4
# Ridge of the whitening, relative to the mean eigenvalue.
_RIDGE = 0.1
# Fewest and most blocks of a scan, and fewest whole cycles that are scanned as blocks of their own where they are fewer.
LEAST_BLOCKS, MOST_BLOCKS, FEW_CYCLES = 40, 1000, 12
# Innovations are clipped at this many standard deviations.
_FARTHEST = 4.0
# Least length of a segment, as a share of the series and in blocks; and fewest blocks of a segment that is scanned.
_LEAST_SHARE = 0.04
_LEAST_BLOCKS = 4
_FEWEST = 8
# If fewer shuffles than this reach a value, the p-value comes from a fitted tail instead of their share.
_LEAST_EXCEEDING = 1
# Passes over the changes that move each to its best place between its neighbours.
_SWEEPS = 2
# Quantile of the differences between blocks that is compared, and its relative error times the root of the number of blocks.
_TYPICAL, _ERRORS_OF_CONTRASTS = 0.75, 1.5
# Fewest chunks of blocks after joining. If joining would leave fewer, there is no scan if blocks two apart differ this many times
# as much.
_CHUNKS, _MOST_ALIKE = 4, 2.0
# Autocorrelations and shares of noise of the memory that a step is compared with, and twice the nats by which the step has to be
# cheaper.
_MEMORIES = np.array([(0.0, 0.0), *product((0.3, 0.6, 0.8, 0.9, 0.95, 0.98), (0.0, 0.5, 0.8, 0.9, 0.95))])
_CLEARLY = 2.0
# Most changes that are sought at once, and shares of the rate at which one is tested, and each larger number of them: these hold
# much in common, but have alarms of their own.
_MOST_CHANGES, _OF_ONE, _OF_SEVERAL = 8, 0.5, 0.25
# Shuffles after which a change is given up if more than so many have larger contrasts.
_FIRST_RUNS, _TOO_MANY = 19, 2
_EULER = 0.5772156649
# Blocks from which a step is compared with what wanders beside it, stretches of the longer side and fewest of the shorter one in
# which this is done, and least share of the variation of their means that the step explains.
_MANY_BLOCKS, _STRETCHES, _FEWEST_STRETCHES, _LEAST_SHARE_OF_STEP = 80, 20, 4, 0.85


@dataclass(frozen=True)
class Found:
    """A change that a scan found."""

    step: int  # first step after the change
    pvalue: float  # probability that a segment without a change has such a contrast somewhere


class ContrastScan:
    """Contrasts between the means of blocks before and after a place, over whole segments.

    Components are whitened by the differences of neighbouring blocks, which a change hardly affects; the largest squared distance
    of means is compared with shuffles of chunks of blocks, whitened likewise.
    """

    def __init__(
        self,
        parts: np.ndarray,
        blocks: Blocks,
        rng: np.random.Generator,
        alike: float = 0.1,
        remembers: bool = False,
        chunk: int = CHUNK,
        overlaps: bool = False,
    ) -> None:
        self._parts, self._blocks, self._rng = parts, blocks, rng
        # Whether neighbours are alike because windows of noise overlap both: those that a shuffle makes neighbours are not.
        self._overlaps = overlaps
        # Blocks joined in a shuffle, and fewest blocks of a series that is scanned.
        self._chunk, self._fewest = chunk, _CHUNKS * chunk
        self._means = over_blocks(parts, blocks.parts)
        self._widen(alike)
        self._least = max(_LEAST_BLOCKS, int(np.ceil(_LEAST_SHARE * blocks.count)))
        # What a step is compared with: by how much it is explained better in another way, and whether by what wanders beside it.
        self._gradual = [self._drift_ahead] + [self._past_ahead] * remembers
        self._remembers = remembers
        self._wanders = not remembers and len(self._means) >= _MANY_BLOCKS

    @property
    def block(self) -> float:
        """Length in steps of the blocks that are compared."""
        return self._blocks.length

    def followed_by(self, steps: int, *kinds: str) -> dict[str, int]:
        """Return by how many of the `steps` of the series changes of these kinds have to be followed; none in too few blocks."""
        if len(self._means) < self._fewest:
            return {}
        last = int((len(self._means) - self._least) * self._blocks.length)
        return dict.fromkeys(kinds, steps - last)

    def _widen(self, alike: float) -> None:
        """Join blocks in pairs until neighbours differ as much as blocks two apart, since they would understate scatter."""
        while len(self._means) >= _FEWEST:
            near, far = (
                np.quantile(np.sum((self._means[k:] - self._means[:-k]) ** 2, axis=1), _TYPICAL) for k in (1, 2)
            )
            count = self._blocks.count // 2
            if far <= near * (1.0 + alike + _ERRORS_OF_CONTRASTS / np.sqrt(len(self._means))) or (
                count < self._fewest and far <= _MOST_ALIKE * near
            ):
                break
            size, count = 2 * self._blocks.parts, count if count >= self._fewest else 0
            self._parts = self._parts[: count * size]
            self._blocks = Blocks(2.0 * self._blocks.length, count, size)
            self._means = over_blocks(self._parts, size)

    def changes(self, rate: float, known: np.ndarray | None = None) -> list[Found]:
        """Find changes, first in the whole series and then in the segments between them, each at false alarm rate `rate`.

        A change beside `known` ones, steps of which something has changed, must also be found in the segment between these: what
        a deploy changes beside the level is no second change.
        """
        found: dict[int, float] = {}
        waiting = [(0, len(self._means))] if len(self._means) >= self._fewest else []
        while waiting:
            start, end = waiting.pop()
            if end - start < max(2 * self._least, _FEWEST):
                continue
            new = {start + place: pvalue for place, pvalue in self._tested(start, end, rate).items()}
            found |= new
            if new:
                waiting += pairwise([start, *new, end])
        for gradual in self._gradual:
            for place in set(found) - self._abrupt(sorted(found), gradual):
                del found[place]
        if self._wanders:
            for place in set(found) - self._beside_wander(sorted(found)):
                del found[place]
        if known is not None:
            found = self._among_known(found, known, rate)
        return self._placed(found)

    def _among_known(self, found: dict[int, float], known: np.ndarray, rate: float) -> dict[int, float]:
        """Return the changes that are found between their neighbours with the known ones, too; a short segment says nothing."""
        others = [0, *np.round(known / self._blocks.length).astype(int).tolist(), len(self._means)]
        kept = {}
        for place, pvalue in found.items():
            around = others + [one for one in found if one != place]
            start = max(one for one in around if one <= place)
            end = min(one for one in around if one > place)
            short = end - start < max(2 * self._least, _FEWEST)
            beside = {start, end} & set(others[1:-1])
            if not beside or short or self._tested(start, end, rate):
                kept[place] = pvalue
        return kept

    def _abrupt(self, places: list[int], ahead_of_step: Callable[[int, int, int], float]) -> set[int]:
        """Return the places where a step explains more than something gradual; of the others the weakest step is removed first.

        A weak change beside a strong one cuts short the segment in which the strong one is judged.
        """
        kept = [0, *places, len(self._means)]
        while len(kept) > 2:
            around = [kept[i - 1 : i + 2] for i in range(1, len(kept) - 1)]
            gradual = [i for i, segment in enumerate(around) if ahead_of_step(*segment) > 0.0]
            if not gradual:
                break
            del kept[1 + min(gradual, key=lambda i: self._step(*around[i])[1])]
        return set(kept[1:-1])

    def _is_step(self, start: int, place: int, end: int) -> bool:
        """Tell whether something changes at once at a place between its neighbours, and by more than what wanders beside it."""
        if any(ahead_of_step(start, place, end) > 0.0 for ahead_of_step in self._gradual):
            return False
        return not self._wanders or self._share_of_step(start, place, end) >= _LEAST_SHARE_OF_STEP

    def _are_steps(self, bounds: list[int]) -> bool:
        """Tell whether several changes are steps, each between its neighbours and all in the whole segment.

        The segments between neighbours are often too short to show a memory that the whole one shows.
        """
        if not all(self._is_step(*bounds[i : i + 3]) for i in range(len(bounds) - 2)):
            return False
        return not self._remembers or self._past_ahead(*bounds) <= 0.0

    def _step(self, start: int, place: int, end: int) -> tuple[np.ndarray, float]:
        """Return the whitened components of a segment around their means, and how much a step at a place explains of them."""
        rest = _whitened(_components(self._means[start:end])[0][None])[0]
        rest = rest - rest.mean(axis=0)
        before, n = place - start, len(rest)
        return rest, float(np.sum(rest[:before].sum(axis=0) ** 2)) * n / (before * (n - before))

    def _drift_ahead(self, start: int, place: int, end: int) -> float:
        """Return how much more a line or parabola explains of whitened components than a step at a place."""
        (rest, step), before = self._step(start, place, end), place - start
        time = np.arange(len(rest)) - 0.5 * (len(rest) - 1)
        line = float(np.sum((time @ rest) ** 2)) / float(time @ time)
        along = _along_step(rest, before)
        square = time**2 - np.mean(time**2)
        parabola = sum(float(term @ along) ** 2 / float(term @ term) for term in (time, square))
        return max(line, parabola) - step

    def _past_ahead(self, start: int, *bounds: int) -> float:
        """Return how much cheaper memory alone describes a segment than memory and steps, which must clearly win.

        Blocks are compared along the line on which the means between the steps differ most.
        """
        white = _whitened(_components(self._means[start : bounds[-1]])[0][None])[0]
        places = np.array(bounds[:-1]) - start
        parts = np.split(white - white.mean(axis=0), places)
        means = np.array([part.sum(axis=0) / np.sqrt(len(part)) for part in parts])
        alone, with_steps = _costs_of_memory(white @ np.linalg.svd(means)[2][0], places)
        return with_steps - alone + _CLEARLY * len(places)

    def _beside_wander(self, places: list[int]) -> set[int]:
        """Return the places whose steps are larger than what wanders beside them; the least of the others is removed first.

        A recording wanders slowly inside one state, and over many blocks any wander is beyond chance. Among few it is not.
        """
        kept = [0, *places, len(self._means)]
        while len(kept) > 2:
            shares = [self._share_of_step(*kept[i - 1 : i + 2]) for i in range(1, len(kept) - 1)]
            if min(shares) >= _LEAST_SHARE_OF_STEP:
                break
            del kept[1 + int(np.argmin(shares))]
        return set(kept[1:-1])

    def _share_of_step(self, start: int, place: int, end: int) -> float:
        """Return the share of the variation along a step that it explains, less the noise of blocks: a weak step may be steady.

        Means of stretches hold less of that noise. What it adds to their variance is subtracted, up to the error of that.
        """
        before, rest = place - start, self._step(start, place, end)[0]
        line = _along_step(rest, before)
        lengths = before, len(rest) - before
        size = max(1, min(max(lengths) // _STRETCHES, min(lengths) // _FEWEST_STRETCHES))
        both = line[:before], line[before:]
        noise = sum(float(np.sum(np.diff(side) ** 2)) for side in both) / (2.0 * max(len(line) - 2, 1))
        sides = [_stretch_means(side, size) for side in both]
        counts = np.array([len(side) for side in sides])
        freedom = max(int(counts.sum()) - 2, 1)
        within = sum(float(np.sum((side - side.mean()) ** 2)) for side in sides) / freedom
        noise /= size
        between = float(np.prod(counts / counts.sum())) * float(sides[1].mean() - sides[0].mean()) ** 2
        return between / max(between + max(within - noise, noise * float(np.sqrt(2.0 / freedom))), 1e-300)

    def _tested(self, start: int, end: int, rate: float) -> dict[int, float]:
        """Return the places of as many changes of a segment as are beyond chance together, with the p-value of the weakest."""
        rows = _components(self._means[start:end])[0]
        if not rows.any():
            return {}
        white = _whitened(rows[None])[0]
        for places in best_places(white, self._least, _MOST_CHANGES):
            weakest = int(contrasts_at(white, places).argmin())
            share = _OF_ONE if len(places) == 1 else _OF_SEVERAL
            pvalue = min(1.0, self._pvalue_given_others(rows, places, weakest) / share)
            if pvalue <= rate and (len(places) == 1 or self._are_steps([start, *(start + one for one in places), end])):
                return dict.fromkeys(places, pvalue)
        return {}

    def _pvalue_given_others(self, rows: np.ndarray, places: list[int], number: int) -> float:
        """Return the p-value of one of several changes, given the others.

        The others are subtracted before blocks are shuffled: a shuffle of states that come back has large contrasts too. The
        null distribution is that of the best further change in any of their segments.
        """
        others = places[:number] + places[number + 1 :]
        rest = without_means(rows, others)
        contrast = float(contrasts_at(_whitened(rest[None])[0], places)[number])
        if not contrast > 0.0 or np.sum(self._shuffled_contrasts(rest, others, _FIRST_RUNS) >= contrast) > _TOO_MANY:
            return 1.0
        return _pvalue(contrast, self._shuffled_contrasts(rest, others, RUNS))

    def _shuffled_contrasts(self, rows: np.ndarray, places: list[int], runs: int) -> np.ndarray:
        """Return the largest contrast within the segments between places, for each of some shuffles of rows."""
        orders = np.array([self._shuffled(len(rows)) for _ in range(runs)])
        null = _whitened(rows[orders], np.diff(orders) == 1 if self._overlaps else None)
        segments = [one for one in pairwise([0, *places, len(rows)]) if one[1] - one[0] >= 2 * self._least]
        return np.max([_scanned(null[:, start:end], self._least)[1] for start, end in segments], axis=0)

    def _shuffled(self, n: int) -> np.ndarray:
        """Draw an order of n blocks: a ring of blocks is cut into chunks at a random offset, and the chunks are permuted."""
        ring = (np.arange(n) + self._rng.integers(n)) % n
        chunks = [ring[start : start + self._chunk] for start in range(0, n, self._chunk)]
        return np.concatenate([chunks[i] for i in self._rng.permutation(len(chunks))])

    def _placed(self, found: dict[int, float]) -> list[Found]:
        """Move each change to its best place between its neighbours, first to a block and finally to a part of a block."""
        places = np.array([0, *sorted(found), len(self._means)])
        values = [found[place] for place in sorted(found)]
        for _ in range(_SWEEPS):
            for i in range(1, len(places) - 1):
                start, end = places[i - 1], places[i + 1]
                rows = _components(self._means[start:end])[0]
                places[i] = start + int(_scanned(_whitened(rows[None]), self._least)[0][0])
        steps = [self._refined(*places[i - 1 : i + 2]) for i in range(1, len(places) - 1)]
        return [Found(step, value) for step, value in zip(steps, values, strict=True)]

    def _refined(self, start: int, place: int, end: int) -> int:
        """Place a change to a part of a block by moving means over whole blocks, which no phase of a period affects."""
        size = self._blocks.parts
        rows, axes = _components(self._means[start:end])
        white = _whitening(rows[None])[0]
        direction = rows[place - start :].mean(axis=0) - rows[: place - start].mean(axis=0)
        direction = axes @ (white.T @ (white @ direction))
        line = self._parts[start * size : end * size] @ direction
        sums = np.concatenate([[0.0], np.cumsum(line)])
        moving = sums[size:] - sums[:-size]
        moving = moving - 0.5 * (
            moving[: (place - start - 1) * size + 1].mean() + moving[(place - start) * size :].mean()
        )
        # The mean over a block that begins at a part stands for the middle of the block.
        near = np.arange((place - start - 2) * size, (place - start + 2) * size + 1)
        lost = np.concatenate([[0.0], np.cumsum(moving)])[near - size // 2]
        best = near[int(lost.argmin())]
        return round((start + best / size) * self._blocks.length)


def _along_step(rest: np.ndarray, before: int) -> np.ndarray:
    """Return rows along the difference of the means from row `before` on and before it."""
    jump = rest[before:].mean(axis=0) - rest[:before].mean(axis=0)
    return np.asarray(rest @ (jump / max(float(np.linalg.norm(jump)), 1e-300)))


def _stretch_means(line: np.ndarray, size: int) -> np.ndarray:
    """Return the means of stretches of `size` values, or of a few more."""
    return np.array([part.mean() for part in np.array_split(line, len(line) // size)])


def _components(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading principal components of blocks, and their axes."""
    n = len(means)
    rest = means - means.mean(axis=0)
    count = max(2, min(_MOST_COMPONENTS, n // _BLOCKS_A_COMPONENT))
    _, axes = np.linalg.eigh(rest.T @ rest)
    axes = axes[:, ::-1][:, :count]
    return rest @ axes, axes


def _whitening(rows: np.ndarray, neighbours: np.ndarray | None = None) -> np.ndarray:
    """Return W of shape (runs, c, c) with W C W' = 1, C half the covariance of neighbours' differences plus a ridge.

    Of shuffled blocks, `neighbours` of shape (runs, n - 1) says which are neighbours in the series: these are more alike.
    """
    steps = np.diff(rows, axis=1)
    count: Any = steps.shape[1]
    if neighbours is not None:
        steps = steps * neighbours[:, :, None]
        count = neighbours.sum(axis=1)[:, None, None]
    covariance = np.swapaxes(steps, 1, 2) @ steps / (2.0 * count)
    size = covariance.shape[1]
    mean = np.trace(covariance, axis1=1, axis2=2)[:, None, None] / size
    covariance = covariance + (_RIDGE * mean + 1e-12 * np.mean(rows**2)) * np.eye(size)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariance)))


def _whitened(rows: np.ndarray, neighbours: np.ndarray | None = None) -> np.ndarray:
    return np.asarray(rows @ np.swapaxes(_whitening(rows, neighbours), 1, 2))


def _scanned(rows: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places and values of the largest contrasts, at least `least` blocks from either end."""
    n = rows.shape[1]
    rest = rows - rows.mean(axis=1, keepdims=True)
    sums = np.cumsum(rest, axis=1)[:, least - 1 : n - least]
    before = np.arange(least, n - least + 1)
    contrasts = np.einsum("ijk,ijk->ij", sums, sums) * n / (before * (n - before))
    return contrasts.argmax(axis=1) + least, contrasts.max(axis=1)


def _costs_of_memory(line: np.ndarray, places: np.ndarray) -> tuple[float, float]:
    """Return the costs of an autoregression measured with noise, without and with steps, whose places cost as in a description.

    Blocks measure scatter roughly, so its memory hardly shows between neighbours but adds up over many. Cosine coefficients
    are nearly independent, with the spectral density as their variances.
    """
    n = len(line)
    steps = (np.arange(n) >= places[:, None]).astype(np.float64)
    rows = dct(np.vstack([steps, line]), norm="ortho")[:, 1:]
    phi, noise = _MEMORIES[:, :1], _MEMORIES[:, 1:]
    turns = np.cos(np.pi * np.arange(1, n) / n)
    density = noise + (1.0 - noise) * (1.0 - phi**2) / (1.0 - 2.0 * phi * turns + phi**2)
    products = (rows / density[:, None]) @ rows.T
    own, both, square = products[:, :-1, :-1], products[:, :-1, -1:], products[:, -1, -1]
    explained = np.sum(both * np.linalg.solve(own, both), axis=(1, 2))
    fixed = np.log(density).sum(axis=1) + np.log(n) * np.count_nonzero(_MEMORIES, axis=1)
    alone = np.min((n - 1) * np.log(square) + fixed)
    left = np.maximum(square - explained, 1e-12 * square)
    with_steps = np.min((n - 1) * np.log(left) + fixed) + 3.0 * len(places) * np.log(n)
    # Two levels that take turns have a single coefficient.
    signs = (-1.0) ** np.arange(len(places))
    explained = (both[:, :, 0] @ signs) ** 2 / (signs @ own @ signs)
    left = np.maximum(square - explained, 1e-12 * square)
    with_turns = np.min((n - 1) * np.log(left) + fixed) + (2.0 * len(places) + 1.0) * np.log(n)
    return float(alone), float(min(with_steps, with_turns))


def _pvalue(largest: float, null: np.ndarray) -> float:
    """Return the share of shuffles that reach a value; if none does, the tail of a Gumbel distribution of their logarithms."""
    logs = np.log(np.maximum(null, 1e-300))
    spread = max(float(logs.std(ddof=1)) * np.sqrt(6.0) / np.pi, 1e-9)
    away = (np.log(max(largest, 1e-300)) - logs.mean()) / spread + _EULER
    return simulated_pvalue(largest, null, _LEAST_EXCEEDING, float(-np.expm1(-np.exp(-away))))


def clipped(innovations: np.ndarray) -> np.ndarray:
    """Return innovations in units of their root mean square, clipped."""
    sizes = np.maximum(np.sqrt(np.mean(innovations**2, axis=0)), 1e-300)
    return np.asarray(np.clip(innovations / sizes, -_FARTHEST, _FARTHEST))
