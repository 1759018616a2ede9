"""All tests of changes but slow ones simulate little."""

import pytest


@pytest.fixture(autouse=True)
def quick(request):
    if "slow" not in request.keywords:
        request.getfixturevalue("few_simulations")
