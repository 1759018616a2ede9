"""The measures of the benchmarks on examples worked out by hand, and the studies on what is made up."""

from __future__ import annotations

import json

import numpy as np
import pytest
from experiments import change_points, change_points_made_up, change_points_times
from experiments.series_data import cover, f1, klcpd, turing


def test_f1_of_nothing_found_is_that_of_the_start_alone():
    """Recall is 1/1 for who marked nothing and 1/2 for who marked one change: precision 1, recall 3/4."""
    assert f1({"a": [], "b": [40]}, []) == pytest.approx(2 * 0.75 / 1.75)
    assert f1({"a": []}, []) == 1.0


def test_precision_is_over_the_union_and_recall_over_each_annotator():
    """Found 0, 12, 70. The union 0, 10, 40 matches 0 and 12: precision 2/3. Recalls 2/2 and 1/2: 3/4."""
    assert f1({"a": [10], "b": [40]}, [12, 70]) == pytest.approx(2 * (2 / 3) * 0.75 / (2 / 3 + 0.75))


def test_the_margin_is_inclusive_and_a_point_serves_one_mark():
    assert f1({"a": [20]}, [25]) == 1.0
    assert f1({"a": [20]}, [26]) == pytest.approx(0.5)
    # Marks 20 and 22 and one point: precision 2/2, recall 2/3.
    assert f1({"a": [20, 22]}, [21]) == pytest.approx(2 * (2 / 3) / (5 / 3))
    # The start itself is within the margin of a mark, but it is taken by the mark at 0.
    assert f1({"a": [3]}, []) == pytest.approx(2 * 0.5 / 1.5)


def test_cover_weighs_the_best_overlaps_by_length():
    """Marked [0, 4) and [4, 10), found [0, 6) and [6, 10): 4/6 and, of [4, 10), the larger of 2/10 and 4/6."""
    assert cover({"a": [4]}, [6], 10) == pytest.approx(0.4 * 4 / 6 + 0.6 * 4 / 6)
    assert cover({"a": [4]}, [], 10) == pytest.approx(0.4 * 0.4 + 0.6 * 0.6)
    assert cover({"a": [], "b": [4]}, [4], 10) == pytest.approx((0.6 + 1.0) / 2)


def test_no_change_scores_what_is_known_on_the_dataset(shared):
    many = turing(shared / "data")
    assert len(many) == 31
    assert np.mean([f1(one.marks, []) for one in many]) == pytest.approx(0.663, abs=5e-4)
    assert np.mean([cover(one.marks, [], len(one.values)) for one in many]) == pytest.approx(0.568, abs=6e-4)
    assert len(klcpd(shared / "data", "beedance")) == 6


def test_the_table_has_the_default_above_no_change(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(change_points, "PICTURED", ("made_up",))
    folder = tmp_path / "cpd" / "tcpd"
    folder.mkdir(parents=True)
    raw = (np.repeat([0.0, 5.0], 30) + np.random.default_rng(0).normal(size=60)).tolist()
    (folder / "made_up.json").write_text(json.dumps({"series": [{"raw": raw}]}))
    (folder / "annotations.json").write_text(json.dumps({"made_up": {"1": [30], "2": [31]}}))
    figure = tmp_path / "curves.png"
    change_points.main(["--data", str(tmp_path), "--parts", "turing", "--out", str(figure)])
    last = capsys.readouterr().out.splitlines()[-1].replace("/", " ").split()
    assert last[0] == "mean"
    assert float(last[3]) == 1.0 > float(last[1])
    assert figure.stat().st_size > 10_000


def test_the_study_of_made_up_series(capsys):
    change_points_made_up.main(["--runs", "2", "--kinds", "short_steps"])
    assert "short_steps" in capsys.readouterr().out


def test_false_alarms_are_those_of_the_file_of_results(tmp_path, capsys):
    results = tmp_path / "results.csv"
    lines = [f"{kind.__name__},0,1.0,1.0,0.0,0.0" for kind in change_points_made_up.KINDS if "none" in kind.__name__]
    lines += ["none_shocks,1,0.5,0.5,2.0,0.0", "none_walk,1,1.0,1.0,0.0,0.0"]
    results.write_text("\n".join(["kind,run,f1,cover,found,true", *lines]) + "\n")
    change_points_made_up.main(["--kinds", "none", "--runs", "1", "--results", str(results)])
    table = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert table["none_shocks"][1:4] == ["2", "0.500", "0.354"]
    assert table["none_walk"][1:4] == ["2", "0.000", "0.000"]
    assert table["mean"][2] == f"{0.5 / (len(lines) - 2):.3f}"


def test_the_times_of_short_series_are_printed(capsys):
    change_points_times.main(["--quick"])
    none, step, memory = capsys.readouterr().out.splitlines()
    assert none.startswith("60 x 1, none")
    assert none.endswith("ChangePoints(none)")
    assert step.endswith("(level))")
    assert memory.startswith("most memory")
