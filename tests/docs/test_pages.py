"""The code on the pages runs as printed."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BUILT = {"_build", "api", "gallery"}
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.rst"))
    if not BUILT & set(path.relative_to(DOCS).parts) and ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.skipif(not DOCS.exists(), reason="the pages are not beside an installed package")
def test_there_are_pages_with_lines():
    assert len(PAGES) >= 2


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_the_lines_run(page):
    for extra in ("torch", "dask"):
        if f">>> import {extra}" in page.read_text(encoding="utf-8"):
            pytest.importorskip(extra)
    failed, tried = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, encoding="utf-8"
    )
    assert tried > 0
    assert failed == 0
