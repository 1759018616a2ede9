"""The study of one column given the others."""

import csv
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from experiments import conditional_words, conditionals


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with one table in each layout."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=80)).round(3)
    folder = tmp_path_factory.mktemp("data")
    inside = folder / "toy" / "data"
    inside.mkdir(parents=True)
    np.savetxt(inside / "data.txt", np.column_stack([X, y]))
    np.savetxt(inside / "index_features.txt", [0, 1, 2])
    np.savetxt(inside / "index_target.txt", [3])
    np.savetxt(inside / "n_splits.txt", [2])
    for k in range(2):
        order = rng.permutation(80)
        np.savetxt(inside / f"index_train_{k}.txt", order[:60])
        np.savetxt(inside / f"index_test_{k}.txt", order[60:])
    pd.DataFrame({"y": y, "word": np.where(X[:, 0] > 0, "a", "b"), "x": X[:, 1]}).to_csv(
        folder / "named.csv", index=False
    )
    return folder


def test_tables_are_read_in_both_layouts(data):
    readers = conditionals.tables_of(data, "y")
    assert set(readers) == {"toy", "named"}
    toy, named = readers["toy"](), readers["named"]()
    assert toy.X.shape == (80, 3)
    assert [(len(fit), len(held)) for fit, held in toy.splits] == [(60, 20), (60, 20)]
    assert set(toy.splits[0][0]).isdisjoint(toy.splits[0][1])
    assert list(named.X.columns) == ["word", "x"]
    np.testing.assert_allclose(named.y, toy.y)
    assert conditionals.csv_table("named", data / "named.csv", None).X.columns[0] == "y"


def test_the_crps_of_a_normal_law_is_that_of_its_formula(data):
    split = conditionals.tables_of(data, None)["toy"]().split(0)
    answer = conditionals.by_normal(split)
    quantiles, logs = answer(split)
    mean, deviation = quantiles[:, 49], (quantiles[:, 83] - quantiles[:, 49]) / conditionals.norm.ppf(0.84)
    z = (split.truth - mean) / deviation
    known = deviation * (
        z * (2.0 * conditionals.norm.cdf(z) - 1.0) + 2.0 * conditionals.norm.pdf(z) - 1.0 / np.sqrt(np.pi)
    )
    assert conditionals.crps_of(quantiles, split.truth) == pytest.approx(known.mean(), rel=0.02)
    np.testing.assert_allclose(logs, conditionals.norm.logpdf(split.truth, mean, deviation), atol=0.01)


def test_densities_between_quantiles_are_those_of_the_law():
    quantiles = np.tile(conditionals.norm.ppf(conditionals.LEVELS), (5, 1))
    y = np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
    found = conditionals._cdf(quantiles, y, 1e-9)
    np.testing.assert_allclose(found, conditionals.norm.cdf(y), atol=0.004)


def test_results_are_resumed_and_shown(data, tmp_path):
    out = tmp_path / "found.csv"
    arguments = ["--data", str(data), "--out", str(out), "--splits", "1", "--target", "y"]
    methods = ["law", "normal", "quantile regression", "marginal"]
    for _ in range(2):
        conditionals.main([*arguments, "--methods", *methods])
    assert len(out.read_text().splitlines()) == 1 + 2 * len(methods) * len(conditionals.FIGURES)
    page = conditionals.page(out)
    assert "marginal 2 of 2" in page
    with pytest.raises(SystemExit, match="no table absent"):
        conditionals.main([*arguments, "--tables", "absent"])


def test_targets_of_words_have_a_log_loss_beside_classifiers(data, tmp_path):
    out = tmp_path / "words.csv"
    arguments = [
        "--data",
        str(data),
        "--every-column",
        "--out",
        str(out),
        "--most-rows",
        "70",
        "--tables",
        "named/word",
    ]
    assert {"named/word", "named/y"} <= set(conditionals.tables_of(data, None, every_column=True))
    conditionals.main([*arguments, "--splits", "6", "--methods", "law", "marginal"])
    conditionals.main([*arguments, "--splits", "1", "--methods", "logistic ridge", "forest"])
    page = conditionals.page(out)
    assert page.startswith("1 targets of words")
    with out.open() as file:
        found = [row for row in csv.DictReader(file) if row["figure"] == "log loss"]
    assert {row["method"] for row in found} == {"law", "logistic ridge", "forest", "marginal"}
    law, marginal = (np.mean([float(r["value"]) for r in found if r["method"] == m]) for m in ("law", "marginal"))
    assert law < 0.9 * marginal


def test_a_log_loss_counts_new_words_as_half_a_row(data):
    split = conditionals.csv_table("named", data / "named.csv", "word").split(0)
    P = np.tile([0.25, 0.75], (len(split.truth), 1))
    truth = split.truth.copy()
    truth[:] = "b"
    truth[0] = "unseen"
    loss, wrong = conditionals.word_figures(
        conditional_words.Words(P, np.array(["a", "b"], dtype=object)), replace(split, truth=truth)
    )
    n, new = len(truth), 0.5 / (len(split.y) + 0.5)
    assert loss == pytest.approx(-(np.log(new) + (n - 1) * np.log(0.75 * (1.0 - new))) / n)
    assert wrong == pytest.approx(1 / n)


def test_all_twenty_splits_of_the_public_layout_are_run_beside_the_published_figure(tmp_path):
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.normal(size=(40, 2)), np.arange(40) % 7])
    inside = tmp_path / "data" / "yacht" / "data"
    inside.mkdir(parents=True)
    np.savetxt(inside / "data.txt", rows)
    np.savetxt(inside / "index_features.txt", [0.0, 1.0])  # numbers are written with decimals there
    np.savetxt(inside / "index_target.txt", [2.0])
    np.savetxt(inside / "n_splits.txt", [20.0])
    held = []
    for k in range(20):
        order = rng.permutation(40)
        held.append(set(order[36:].tolist()))
        np.savetxt(inside / f"index_train_{k}.txt", order[:36])
        np.savetxt(inside / f"index_test_{k}.txt", order[36:])
    table = conditionals.tables_of(tmp_path / "data", None)["yacht"]()
    assert [set(places.tolist()) for _, places in table.splits] == held
    out = tmp_path / "out.csv"
    conditionals.main(["--data", str(tmp_path / "data"), "--out", str(out), "--methods", "marginal"])
    with out.open() as file:
        found = [row for row in csv.DictReader(file) if row["figure"] == "log likelihood"]
    assert [int(row["split"]) for row in found] == list(range(20))
    # Whole numbers have a density that is constant over the step of 1: it is the logarithm of a probability.
    assert max(float(row["value"]) for row in found) < 0.0
    line = next(line for line in conditionals.page(out).splitlines() if line.startswith("yacht"))
    assert "-1.25" in line
