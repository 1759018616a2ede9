"""How a fit with a kernel at every row divides its memory limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from isopleth.operators.threads import effective_n_jobs
from isopleth.operators.tiles import HOST_TILE, SCRATCH_TILES, scratch, workers_for
from isopleth.operators.vector_blocks import HOST_PAIRS
from isopleth.score.spaces import Space

# Points with their factors, right-hand sides, iterates of solvers and copies for threads, in vectors of coefficients.
VECTORS = 24

# Krylov vectors for which there has to be room beside a stored matrix: with fewer, streamed products are the better choice.
LEAST_BASIS = 100

# Whole matrices that an eigendecomposition holds at once: the matrix, its copy, the eigenvectors and two of work space.
# A Cholesky factor takes the place of the matrix, which may have to be copied once to change the order of its numbers.
EIGEN, CHOLESKY = 5, 2

# Matrices of all pairs, in float64, that a splitting takes beside the stored products, with the work space of an inverse.
SPLITTING = 5


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes that the parts of a fit take, so that the memory limit is given out once.

    - Tiles of streamed products take ``scratch``, at most half of the limit.
    - ``fixed`` is the scratch with all vectors that do not depend on the solver.
    - Stored products take ``pairs`` beside that, if ``stores`` says that they fit with a Krylov basis.
    - What is left is for a Krylov basis of at most ``basis`` vectors.
    - Instead of stored products and a basis, small systems keep the whole matrix, with what its decomposition takes.

    Parameters
    ----------
    limit : float
        The memory limit.
    vector : int
        A vector of coefficients: one number a row and column.
    pairs : int
        The stored products.
    scratch : float
        Of tiles, of all threads.
    beside : int
        Vectors of coefficients that the caller keeps meanwhile.
    """

    limit: float
    vector: int
    pairs: int
    scratch: float
    beside: int

    @classmethod
    def of(cls, space: Space, rows: int, columns: int, beside: int = 0, itemsize: int = 8, host: bool = True) -> Self:
        """For samples of so many rows and columns."""
        limit = space.memory_limit
        workers = workers_for(rows, rows, effective_n_jobs(space.n_jobs))
        tiles = workers * scratch(HOST_TILE, columns, SCRATCH_TILES) + min(rows**2, HOST_PAIRS)
        return cls(
            limit,
            itemsize * rows * columns,
            itemsize * space.pair_numbers * rows**2,
            min(limit / 2, itemsize * tiles) if host else limit / 2,
            beside,
        )

    @property
    def fixed(self) -> float:
        """What there is in any case."""
        return self.scratch + (VECTORS + self.beside) * self.vector

    @property
    def to_store(self) -> float:
        """What a fit with stored products takes at least."""
        return self.fixed + self.pairs + LEAST_BASIS * self.vector

    @property
    def stores(self) -> bool:
        """Whether products are stored; if not, they are streamed."""
        return self.to_store <= self.limit

    @property
    def basis(self) -> int:
        """The most vectors of a Krylov basis."""
        left = self.limit - self.fixed - (self.pairs if self.stores else 0)
        return max(10, int(left // self.vector))

    @property
    def splits(self) -> bool:
        """Whether a splitting fits beside stored products."""
        each = self.pairs / 2
        return self.stores and self.fixed + self.pairs + SPLITTING * each <= self.limit

    def rows_at_once(self, samples: int) -> int:
        """Other rows at which scores of so many samples are taken at once, with matrices that all of them share."""
        # Two numbers a pair for values, one for divergences, and one that a product makes.
        each = 4 * 8 * samples
        return max(1, int((self.limit - self.fixed) // each))
