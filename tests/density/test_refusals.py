"""What densities of tables refuse, with the column in the message, and answers at the edge of what they can do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isopleth import KDE, SOSREP, InputError

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame({"x": RNG.normal(size=30), "word": RNG.choice(["a", "b"], 30), "y": RNG.normal(size=30)})
GAPS = ROWS.assign(x=ROWS["x"].where(np.arange(30) % 5 > 0))


def fitted(rows=ROWS, kind=SOSREP, **parameters):
    return kind(frame="scale", **parameters).fit(rows)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: fitted(bounds={"word": (0.0, None)}), "bounds names a column that is no number"),
        (lambda: fitted(landmarks=10), "landmarks needs complete rows of numbers"),
        (lambda: fitted(ROWS[["x"]].assign(x=1.0, gap=np.nan)), "no column of X varies"),
        (lambda: fitted(GAPS).level_set(0.5), "rows with missing cells; fill them first"),
        (
            lambda: fitted(kind=KDE, bounds={"x": (-9.0, None)}).impute(ROWS.assign(x=-9.0)),
            "row 0 .* beyond the bounds",
        ),
        (lambda: fitted().conditional({"x": 0.0, 0: 0.0}), "column .* twice, by name and by number"),
        (lambda: fitted(ROWS.assign(y=1.0)).conditional({"y": 1.0}), "constant at fit"),
        (lambda: fitted(ROWS.assign(y=1.0)).marginal(["y"]), "one value only at fit"),
        (lambda: fitted(ROWS.assign(gap=np.nan)).conditional({"gap": 1.0}), "'gap', which was left out at fit"),
        (lambda: fitted(category_scale="wide"), "category_scale = 'wide'"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_not_defined_is_said(ask, words):
    with pytest.raises(InputError, match=words):
        ask()


def test_a_length_scale_for_each_column_leaves_out_those_of_words():
    one, other = fitted(length_scale=[0.5, 99.0, 2.0]), fitted(length_scale=[0.5, 2.0])
    np.testing.assert_array_equal(one.score_samples(ROWS), other.score_samples(ROWS))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_probabilities_beyond_bounds_and_of_constants_are_certain():
    model = fitted(ROWS.assign(y=1.0), bounds={"x": (-9.0, 9.0)}).conditional({"word": "a"})
    for x, y, share in ((-9.0, 0.9, 0.0), (9.0, 1.0, 1.0)):
        assert model.cdf({"x": x, "y": y}) == {"x": share, "y": share}
