"""Numbers that are codes of missing cells."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.tasks.description import _code


@pytest.mark.parametrize("code", [-1.0, *(sign * (10.0**k - 1.0) for k in range(1, 6) for sign in (1, -1))])
def test_numbers_of_nines_and_minus_one_are_codes_where_no_other_value_is_near(code):
    others = code - np.sign(code) * (2.0 * abs(code) + 5.0) * np.array([1.0, 1.2, 1.3])
    assert _code(np.append(others, [code, code])) == (code, 2)
    assert _code(np.append(others, code + 0.5)) is None
    assert _code(np.append(others, [code, 0.9 * code, code])) is None
