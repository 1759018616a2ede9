"""Rows without a known cell: fits leave them out, and then are fits to the table without them."""

import warnings

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pandas as pd
import pytest

from isopleth import KDE, SOSREP, DataWarning, InputError, read_table

ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)) * [3.0, 1.0], columns=["length", "depth"])
EMPTY = pd.DataFrame([[None, None]] * 2, columns=ROWS.columns, dtype=float)
BOTH = pd.concat([ROWS[:11], EMPTY, ROWS[11:]], ignore_index=True)


@pytest.mark.parametrize(("kind", "form"), [(SOSREP, "frame"), (KDE, "array"), (KDE, "file")])
def test_a_fit_to_complete_numbers_and_empty_rows_is_that_to_the_numbers(kind, form, tmp_path):
    def made(frame):
        if form == "file":
            path = tmp_path / f"{len(frame)}.csv"
            frame.assign(name=[f"name {i}" for i in range(len(frame))]).to_csv(path, index=False)
            return read_table(path)
        return frame if form == "frame" else frame.to_numpy()

    with pytest.warns(DataWarning, match="rows without a known cell are left out: 2"):
        found = kind().fit(made(BOTH))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = kind().fit(made(ROWS))
    rows = made(ROWS)
    np.testing.assert_array_equal(found.score_samples(rows), expected.score_samples(rows))
    np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
    np.testing.assert_array_equal(found.sample(3, random_state=0), expected.sample(3, random_state=0))
    assert type(found.sample(3)) is type(expected.sample(3))
    assert found.level_set(0.5) == expected.level_set(0.5)
    assert len(found.components_) == len(expected.components_)
    assert found.n_features_in_ == expected.n_features_in_
    assert getattr(found, "feature_names_in_", [None])[0] == getattr(expected, "feature_names_in_", [None])[0]
    assert sorted(vars(found)) == sorted(vars(expected))
    found.plot()


def test_weights_of_empty_rows_are_left_out_with_them_and_a_gap_of_weight_zero_is_none():
    weights = np.arange(1.0, 41.0)
    both = np.insert(weights, [11, 11], 5.0)
    with pytest.warns(DataWarning, match="left out: 2"):
        found = KDE().fit(BOTH, sample_weight=both)
    expected = KDE().fit(ROWS, sample_weight=weights)
    np.testing.assert_array_equal(found.score_samples(ROWS), expected.score_samples(ROWS))
    gap = BOTH.fillna({"length": 1.0})
    found = KDE().fit(gap, sample_weight=np.where(gap["depth"].isna(), 0.0, both))
    np.testing.assert_array_equal(found.score_samples(ROWS), expected.score_samples(ROWS))


def test_too_few_rows_with_a_known_cell_are_refused():
    with pytest.raises(InputError, match="no row of X with a positive weight has a known cell"):
        SOSREP().fit(ROWS.assign(depth=np.nan, length=np.nan).to_numpy())
    with pytest.raises(InputError, match="1 sample"), pytest.warns(DataWarning, match="left out: 2"):
        SOSREP().fit(pd.concat([EMPTY, ROWS[:1]]))


def test_the_answer_for_an_empty_row_says_that_the_row_says_nothing():
    density = SOSREP().fit(ROWS)
    with pytest.warns(DataWarning, match="without a known cell say nothing, and have the log density 0: 2") as caught:
        answer = density.score_samples(BOTH)
    assert len(caught) == 1
    assert answer[11:13].tolist() == [0.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        density.score_samples(BOTH.fillna({"length": 0.0}))
