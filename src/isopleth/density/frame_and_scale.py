"""Parameters `frame` and `length_scale` of a density, and what they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from isopleth.core.errors import InputError
from isopleth.density.candidates import frames_by_name
from isopleth.density.column_scales import product_factor
from isopleth.density.search import Search
from isopleth.density.solver import Solver
from isopleth.frames import Frame, Marginal, Scale
from isopleth.kernels import Kernel, get_kernel

# Kernels that are products over columns, for sentences.
_PRODUCTS = "kernel='gaussian' or ProductLaplacian()"
_CELLS = (
    "of a table with words or missing cells each column is mapped by itself, by frame='auto', 'marginal' or 'scale'"
)


@dataclass(frozen=True)
class Asked:
    """Frame and length scale that a user asks for, and the kernel that they are for."""

    frame: Any
    length_scale: Any
    kernel: str | Kernel
    complete_for: str | None = None  # parameter that needs complete rows of numbers, where it is given

    @cached_property
    def scaled(self) -> bool:
        """Tell whether columns are only shifted and scaled."""
        return isinstance(self.frame, Scale) or self.frame == "scale"

    @cached_property
    def marginal(self) -> bool:
        """Tell whether the numbers of a table with words or missing cells go through the marginal frame."""
        of_columns = np.ndim(self.length_scale.base if isinstance(self.length_scale, Search) else self.length_scale)
        return self.frame in ("auto", "marginal", Marginal()) and not of_columns

    @cached_property
    def answers_cells(self) -> bool:
        """Tell whether a fitted density answers for missing cells, which needs a kernel that is a product over columns."""
        try:
            return self.complete_for is None and get_kernel(self.kernel).column_factor is not None
        except InputError:
            return False

    @property
    def cells(self) -> bool:
        """Tell whether words and missing cells can be fitted."""
        return self.answers_cells and (self.scaled or self.frame == "auto" or self.marginal)

    @property
    def instead(self) -> str:
        """Parameter, and its value, with which missing cells could be fitted, for sentences."""
        if self.complete_for is not None:
            return f"{self.complete_for}=None"
        return "frame='auto'" if self.answers_cells and not self.cells else _PRODUCTS

    def frames(self, kernel: Kernel, solver: Solver) -> dict[str, Frame] | None:
        """Return the frames of a fit to complete rows by name; None where columns are only shifted and scaled."""
        if self.scaled:
            return None
        frames = frames_by_name(self.frame, kernel.bound_dim)
        why = f"{kernel!r} has no distances of rows" if kernel.by_columns else solver.needs_scale
        if why is None:
            return frames
        self._refuse_frame(why)
        return None

    def check_cells(self) -> None:
        """Refuse a fit to words or missing cells, which parameters exclude, and say which one."""
        if self.cells:
            return
        product_factor(get_kernel(self.kernel), "a fit with categories or missing cells")
        self._refuse_frame(_CELLS)
        if self.complete_for is not None:
            raise InputError(
                f"{self.complete_for} needs complete rows of numbers; leave it out for words and missing cells."
            )

    def check_frame_of_cells(self) -> None:
        """Refuse frames that mix the columns of a table with words or missing cells."""
        if not self.marginal:
            self._refuse_frame(_CELLS)

    def _refuse_frame(self, why: str) -> None:
        """Refuse what has one meaning in frame='scale' and another in the frame that is asked for."""
        of_columns = not isinstance(self.length_scale, Real)  # such length scales have one meaning only
        if not self.scaled and not (self.frame == "auto" and of_columns):
            raise InputError(
                f"frame = {self.frame!r} with length_scale = {self.length_scale!r}: {why}; take frame='scale', where length "
                "scales are in the units of the columns."
            )
