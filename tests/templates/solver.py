"""Template of a density with one kernel at each row. Copy it to src/isopleth/density/, and replace what is marked `todo`.

A solver says which coefficients the kernels get; frames, length scales, words, missing cells, draws and models are the same for
all. It is a complete density, the likeliest mixture of kernels after some steps of the EM algorithm. Models with it can be saved
once `io/registry.py` names both classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from isopleth.core.arrays import Array, namespace
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.threads import check_stopped
from isopleth.density.row_kernels import RowKernelDensity
from isopleth.density.solver import RowSolver
from isopleth.kernels import Kernel
from isopleth.operators import DEFAULT_N_JOBS, Operator


@dataclass(frozen=True)
class SolverTemplate(RowSolver):
    """todo: what the coefficients are."""

    steps: int = 1  # todo: parameters, with defaults since those of the base class have some

    squared: ClassVar[bool] = False  # todo: True if the density is the square of the sum of kernels

    def coefficients(
        self, kernel: Kernel, z: Array, shares: Array, matrix: Array = None
    ) -> tuple[Array, dict[str, Any]]:
        """todo: return positive coefficients of kernels at the distinct rows `z`, whose weights have the sum 1.

        Rows and weights are of any array library. Products with the kernel matrix stay within the memory limit, and `matrix` is
        this matrix where it is known already. Facts of the fit, such as the residual reached, are fitted attributes.
        """
        op = Operator(kernel, z, budget=self.budget)
        op = op.store() if matrix is None else op.keep(matrix)
        alpha = shares
        for _ in range(self.steps):
            check_stopped()
            alpha = alpha * op.matvec(shares / op.matvec(alpha))
        return alpha / namespace(alpha).sum(alpha), {}


class DensityTemplate(RowKernelDensity):
    """todo: docstring as that of KDE: equation, parameters, attributes, an example that runs."""

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        length_scale: Any = "auto",
        frame: Any = "auto",
        bounds: Any = None,
        categorical: Any = None,
        category_scale: Any = "frequency",
        steps: int = 1,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.frame = frame
        self.bounds = bounds
        self.categorical = categorical
        self.category_scale = category_scale
        self.steps = steps
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    # todo: constraints of the parameters of your own, as those of KDE.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RowKernelDensity._parameter_constraints,
        "steps": [int],
    }

    def _solver(self) -> SolverTemplate:
        return SolverTemplate(Budget.of(self), self.steps)
