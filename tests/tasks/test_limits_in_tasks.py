"""Cells that say a limit of detection, in tests, monitors, detectors and descriptions."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isopleth import (
    KDE,
    LSDD,
    AnomalyDetector,
    CellwiseDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    DataWarning,
    DriftMonitor,
    InputError,
    KernelScore,
    load,
    read_table,
    save,
    two_sample_test,
)
from isopleth.tasks import TableDescription

QUICK = {"n_resamples": 99, "centers": 40}


def intervals(y, limit):
    return pd.arrays.IntervalArray.from_arrays(
        np.where(y < limit, -np.inf, y), np.where(y < limit, limit, y), closed="both"
    )


def sample(rng, n, limit, shift=0.0):
    """A table in which two columns go together, and the first one, lognormal, is hidden below limits of its rows."""
    z = rng.normal(size=(n, 3))
    z[:, 1] += z[:, 0]
    lead = np.exp(z[:, 0] + shift)
    return pd.DataFrame({"lead": intervals(lead, limit), "b": z[:, 1], "c": z[:, 2]})


def unlike_limits(rng, n):
    """Limits that are lower in one half of the rows."""
    return np.where(rng.random(n) < 0.5, 0.3, 0.7)


def test_limits_that_differ_are_no_difference():
    found = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        one, two = sample(rng, 120, 0.3), sample(rng, 100, unlike_limits(rng, 100))
        found.append(two_sample_test(one, two, random_state=seed, **QUICK).pvalue)
    # Taken as gaps, or with half the limit in their place, the limits alone differ in every pair of tables.
    assert np.mean(found) > 0.25
    assert np.mean(np.array(found) <= 0.05) <= 0.25


def test_a_difference_above_the_limits_is_found_and_the_rest_said():
    rng = np.random.default_rng(0)
    one, two = sample(rng, 150, 0.3), sample(rng, 150, unlike_limits(rng, 150), shift=0.8)
    result = two_sample_test(one, two, random_state=0, **QUICK)
    assert result.pvalue <= 0.02
    assert result.limits == {"lead": [(-np.inf, 0.7)]}
    assert "Values that a limit hides in some rows count as equal in all of them: lead below 0.7." in result.text()
    assert json.loads(json.dumps(result.to_dict()))["limits"] == {"lead": [[None, 0.7]]}
    swapped = two_sample_test(two.iloc[::-1], one.iloc[::-1, ::-1], random_state=0, **QUICK)
    assert swapped.pvalue == result.pvalue


def test_a_known_number_that_another_limit_hides_does_not_count():
    rng = np.random.default_rng(1)
    one, two = sample(rng, 80, 0.0), sample(rng, 80, 0.7)
    other = one.copy()
    low = np.asarray(one["lead"].array.left) < 0.7
    other["lead"] = pd.arrays.IntervalArray.from_arrays(
        np.where(low, 0.01, one["lead"].array.left), np.where(low, 0.01, one["lead"].array.right), closed="both"
    )
    assert (
        two_sample_test(one, two, random_state=0, **QUICK).pvalue
        == two_sample_test(other, two, random_state=0, **QUICK).pvalue
    )


def test_one_raised_limit_does_not_hide_a_difference_and_is_none():
    rng = np.random.default_rng(6)
    one, two, moved = (sample(rng, 150, 0.3, shift) for shift in (0.0, 0.0, 0.8))
    for table in (two, moved):
        table.loc[[5, 60], "lead"] = pd.Interval(-np.inf, 50.0, closed="both")
    result = two_sample_test(one, moved, random_state=0, **QUICK)
    assert result.pvalue <= 0.02
    assert "lead" in result.witness.columns()
    assert result.limits == {"lead": [(-np.inf, 0.3)]}
    assert "2 cells have a limit that hides more than half of lead: other numbers inside the limit" in result.text()
    assert result.to_dict()["drawn_limits"] == {"lead": 2}
    swapped = two_sample_test(moved.iloc[::-1], one.iloc[::-1, ::-1], random_state=0, **QUICK)
    assert swapped.pvalue == result.pvalue
    assert two_sample_test(one, two, random_state=0, **QUICK).pvalue > 0.05
    # A limit that many cells have is the common limit.
    many = sample(rng, 150, np.where(np.arange(150) < 20, 50.0, 0.3))
    assert two_sample_test(one, many, random_state=0, **QUICK).limits == {"lead": [(-np.inf, 50.0)]}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_text_with_limits_is_numbers_in_every_library(library):
    rng = np.random.default_rng(7)
    z = rng.normal(size=80)
    lead = np.round(np.exp(z), 2)
    text = ["<0.5" if value < 0.5 else f"{value:.2f}" for value in lead]
    table = library({"lead": text, "z": z.round(3)})
    with pytest.warns(
        DataWarning, match=r"column 'lead' holds numbers with limits: \d+ cells say limits, '<0.5' in row"
    ):
        found = KDE(frame="marginal").fit(table).score_samples(table)
    typed = pd.DataFrame({"lead": intervals(lead, 0.5), "z": z.round(3)})
    np.testing.assert_allclose(found, KDE(frame="marginal").fit(typed).score_samples(typed), rtol=1e-9)


def test_text_of_numbers_beside_text_with_limits_is_numbers():
    rng = np.random.default_rng(8)
    lead = np.round(np.exp(rng.normal(size=120)), 2)
    whole = pd.DataFrame({"lead": [f"{value:.2f}" for value in lead[:60]]})
    limited = pd.DataFrame({"lead": ["<0.5" if value < 0.5 else f"{value:.2f}" for value in lead[60:]]})
    for pair in ((whole, limited), (limited, whole)):
        with pytest.warns(DataWarning, match="holds numbers with limits"):
            assert two_sample_test(*pair, random_state=0, **QUICK).limits == {"lead": [(-np.inf, 0.5)]}


def test_a_monitor_takes_the_limits_of_its_reference_and_refuses_others(tmp_path):
    rng = np.random.default_rng(2)
    reference = sample(rng, 400, 0.5)
    with pytest.warns(DataWarning, match="values below 0.5 count as equal"):
        monitor = DriftMonitor(window=20, expected_run_length=1000, random_state=0).fit(reference)
    save(monitor, tmp_path / "m.isopleth")
    rows = sample(rng, 30, 0.5)
    states = [each.update(rows) for each in (monitor, load(tmp_path / "m.isopleth"))]
    assert repr(states[0]) == repr(states[1])
    with pytest.raises(InputError, match=r"column 'lead' has the limit '<0.9' in row"):
        monitor.update(sample(rng, 30, 0.9))


def test_detectors_and_differences_take_hidden_values_as_equal():
    rng = np.random.default_rng(3)
    table = sample(rng, 200, 0.5)
    known = table.assign(
        lead=np.maximum(np.where(np.isinf(table["lead"].array.left), 0.5, table["lead"].array.left), 0.5)
    )
    with pytest.warns(DataWarning, match="count as equal"):
        scores = AnomalyDetector(random_state=0).fit(table).score_samples(table)
    np.testing.assert_allclose(scores, AnomalyDetector(random_state=0).fit(known).score_samples(known), rtol=1e-9)
    other = sample(rng, 150, 0.5)
    with pytest.warns(DataWarning, match="count as equal"):
        found = LSDD(random_state=0).fit(table, other)
    assert np.isfinite(found.predict(other) if hasattr(found, "predict") else found.squared_l2_).all()
    labels = np.where(table["b"] > 0.0, "x", "y")
    with pytest.warns(DataWarning, match="count as equal"):
        ClassPriorEstimator(random_state=0).fit(table, labels)


def test_what_takes_no_gaps_refuses_limits_of_a_file(tmp_path):
    path = tmp_path / "lead.csv"
    path.write_text("lead,zinc\n" + "".join(f"{'<0.5' if i % 9 == 0 else 0.6 + i / 7},{i % 11}\n" for i in range(60)))
    table = read_table(path, warn=False)
    with pytest.raises(InputError, match="contains NaN in 'lead'"):
        KernelScore().fit(table)
    new = tmp_path / "new.csv"
    new.write_text(path.read_text().replace("<0.5", "<5"))
    with pytest.warns(DataWarning, match="count as equal"):
        fitted = LSDD(random_state=0).fit(table, table)
    with pytest.raises(InputError, match="column 'lead' has the limit '<5' in row 0"):
        fitted.predict(read_table(new, warn=False))


def test_one_giant_limit_is_a_gap_for_a_detector():
    rng = np.random.default_rng(4)
    table = sample(rng, 200, 0.3)
    table.loc[5, "lead"] = pd.Interval(-np.inf, 100.0, closed="both")
    with pytest.warns(DataWarning, match=r"values below 0\.3 count as equal"):
        detector = AnomalyDetector(random_state=0).fit(table)
    assert np.isfinite(detector.score_samples(table)).all()


def test_a_series_changes_where_its_values_do_and_not_where_its_limit_does(tmp_path):
    rng = np.random.default_rng(5)
    y = np.exp(rng.normal(size=300))
    cells = [
        f"<{limit}" if value < limit else f"{value:.4f}"
        for value, limit in zip(y, np.repeat([0.3, 0.8], 150), strict=True)
    ]
    path = tmp_path / "series.csv"
    path.write_text("lead\n" + "\n".join(cells) + "\n")
    table = read_table(path, warn=False)
    with pytest.warns(DataWarning, match="count as equal"):
        found = ChangePointDetector(random_state=0).fit(table)
    assert len(found.change_points_) == 0


@pytest.fixture(scope="module")
def tight():
    rng = np.random.default_rng(6)
    x = rng.normal(size=400)
    lead = np.exp(x + 0.1 * rng.normal(size=400))
    return pd.DataFrame({"lead": intervals(lead, 0.4), "x": x, "z": x + 0.1 * rng.normal(size=400)})


def test_a_limit_is_judged_by_the_probability_of_its_interval(tight):
    wrong = tight.copy()
    row = int(np.argsort(tight["x"].to_numpy())[-60])
    wrong.loc[row, "lead"] = pd.Interval(-np.inf, 0.4, closed="both")
    detector = CellwiseDetector(random_state=0, n_estimators=20).fit(wrong)
    scores = detector.cell_scores_[:, 0]
    hidden = np.isinf(np.asarray(wrong["lead"].array.left))
    assert np.isfinite(scores[hidden]).all()
    assert scores[row] > np.max(np.delete(scores[hidden], np.flatnonzero(hidden) == row))
    found = detector.cells()
    assert found.values[row, 0] == "<0.4"
    usual = found.low[hidden & (np.arange(400) != row), 0]
    assert np.mean(usual == "<0.4") > 0.9
    answers = detector.score_cells(wrong.iloc[:50])
    assert answers.shape == (50, 3)


def test_a_description_counts_limits_and_not_as_missing(tmp_path):
    rng = np.random.default_rng(7)
    y = np.exp(rng.normal(size=300)).round(2)
    cells = ["<0,5" if value < 0.5 else f"{value:.2f}".replace(".", ",") for value in y]
    cells[3] = ""
    path = tmp_path / "lead.csv"
    path.write_text("lead;site\n" + "\n".join(f"{cell};{'ab'[i % 2]}" for i, cell in enumerate(cells)) + "\n")
    found = TableDescription.of(read_table(path, warn=False))
    assert found.missing.tolist() == [1, 0]
    limits = found.limits["lead"]
    assert (limits.cells, limits.limits) == (cells.count("<0,5"), ["<0,5"])
    assert abs(limits.mean / np.delete(y, 3).mean() - 1.0) < 0.02
    assert abs(limits.mean_within / y[y < 0.5].mean() - 1.0) < 0.15
    assert "of lead (" in found.text()
