"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("isopleth", deadline=None, max_examples=25, derandomize=True)
hypothesis.settings.load_profile("isopleth")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of reference numbers and real data; tests that want it are skipped without."""
    folder = os.environ.get("ISOPLETH_DATA")
    if not folder:
        pytest.skip("ISOPLETH_DATA names no folder of reference data")
    return Path(folder)
