"""Fixtures of the tests of sums and threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info


@pytest.fixture
def many_blas_threads() -> Iterator[None]:
    """More than one BLAS thread, whatever the machine and its environment say."""
    with ThreadpoolController().select(user_api="blas").limit(limits=3):
        if any(library["num_threads"] == 1 for library in threadpool_info() if library["user_api"] == "blas"):
            pytest.skip("needs a BLAS with threads")
        yield
