"""Rows without a known cell in the samples of a density difference."""

import numpy as np
import pandas as pd
import pytest

from isopleth import LSDD, DataWarning, InputError, read_table

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(50, 2)), columns=["length", "depth"])
Y = pd.DataFrame(RNG.normal(size=(40, 2)) + [1.0, 0.0], columns=["length", "depth"])


def with_empty(frame, at):
    return pd.concat([frame[:at], frame[:1] * np.nan, frame[at:]], ignore_index=True)


@pytest.mark.parametrize("form", ["frame", "array", "file"])
def test_complete_numbers_with_empty_rows_are_those_without_them(form, tmp_path):
    def made(frame):
        if form == "file":
            path = tmp_path / f"{len(frame)}.csv"
            frame.to_csv(path, index=False)
            return read_table(path)
        return frame if form == "frame" else frame.to_numpy()

    more = made(with_empty(X, 3)), made(with_empty(Y, 9))
    with pytest.warns(DataWarning) as caught:
        found = LSDD(random_state=0).fit(*more)
    said = [str(each.message) for each in caught if each.category is DataWarning]
    assert said == [f"rows of {name} without a known cell are left out: 1." for name in "XY"]
    expected = LSDD(random_state=0).fit(made(X), made(Y))
    assert found.squared_l2() == expected.squared_l2()
    assert found.squared_l2_interval() == expected.squared_l2_interval()
    np.testing.assert_array_equal(found.difference(made(X)), expected.difference(made(X)))
    assert np.array_equal(found.level_set(0.5), expected.level_set(0.5))
    assert sorted(vars(found)) == sorted(vars(expected))
    found.plot()


def test_folds_that_a_user_names_keep_their_places():
    folds = np.arange(50) % 3, np.arange(40) % 3
    more = np.insert(folds[0], 3, 1), folds[1]
    expected = LSDD(cv=folds, random_state=0).fit(X, Y).squared_l2()
    with pytest.warns(DataWarning, match="rows of X"):
        assert LSDD(cv=more, random_state=0).fit(with_empty(X, 3), Y).squared_l2() == expected


def test_gaps_beside_known_cells_are_categories_still_and_a_sample_needs_a_known_cell():
    gap = with_empty(X, 3)
    gap.loc[7, "depth"] = np.nan
    found = LSDD(random_state=0).fit(gap, Y)
    assert np.isfinite(found.difference(gap)).all()
    with pytest.raises(InputError, match="no row of Y with a positive weight has a known cell"):
        LSDD().fit(X.to_numpy(), Y.to_numpy() * np.nan)
