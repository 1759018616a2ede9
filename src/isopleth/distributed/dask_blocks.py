"""Partitions of Dask collections as blocks of rows of all kinds: frames with words and gaps, and arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from isopleth.core.errors import InputError
from isopleth.distributed.dask_parts import check_collection, computed_sums, is_frame
from isopleth.distributed.row_sample import M, asked_of
from isopleth.tables.given import refuse_names


class DaskBlocks:
    """Partitions of a ``dask.array`` or ``dask.dataframe``, and of a target beside it, computed on the current client."""

    def __init__(self, tables: Sequence[Any], what: str = "X") -> None:
        self.what = what
        self._blocks = [_blocks(tables[0], what)]
        for target in tables[1:]:
            if getattr(target, "ndim", None) != 1 or not hasattr(target, "to_delayed"):
                raise InputError(
                    f"the target of {what} is {type(target).__name__}; expected a one-dimensional dask.array, a column of a "
                    "dask.dataframe, or the name of a column."
                )
            self._blocks.append(list(np.ravel(target.to_delayed())))
        if len({len(blocks) for blocks in self._blocks}) > 1:
            counts = " and ".join(str(len(blocks)) for blocks in self._blocks)
            raise InputError(
                f"{what} and its target have {counts} partitions; expected one value a row, partitioned alike."
            )

    def total(self, of_block: Callable[..., M], *shared: Any) -> M:
        """Return the merged ``of_block(block, number, *shared)`` of all blocks, eight neighbours at a time."""
        # One node of the graph, which goes to a worker once and not with every partition.
        held = delayed(shared, pure=False, traverse=False)
        ask, blocks = delayed(asked_of, pure=False), enumerate(zip(*self._blocks, strict=True))
        total: M = computed_sums([ask(list(block), i, of_block, held) for i, block in blocks])
        return total


def _blocks(rows: Any, what: str) -> list[Delayed]:
    """Return the partitions of a collection, with all columns of an array in one chunk."""
    check_collection(rows, what)
    if is_frame(rows):
        refuse_names(list(rows.columns), what)
        return list(rows.to_delayed())
    return list(np.ravel(rows.rechunk({1: -1}).to_delayed()))
