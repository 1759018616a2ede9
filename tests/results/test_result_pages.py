"""Pages of results: complete, of limited size, safe with text of strangers, written whole or not at all."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest

from isopleth import AnomalyDetector, ChangePointDetector, InputError, two_sample_test
from isopleth.results import Chart, Content, Series, ShownTable
from isopleth.results.charts import thinned
from isopleth.results.page import MOST_BYTES, Context, render, shown_rows, write_report
from isopleth.tasks import Anomalies, MadeRows
from results.result_cases import CASES, NAMES, result_of
from results.test_results import Cells

each_result = pytest.mark.parametrize("name", CASES)


def data_of(text: str) -> list:
    """Pictures of a page, as the script reads them."""
    return json.loads(re.search(r'<script type="application/json" id="charts">(.*?)</script>', text, re.DOTALL)[1])


def body_of(text: str) -> str:
    """What a reader sees, without scripts and licences."""
    return text[text.index('<main id="main">') + 16 : text.index("</main>")]


@each_result
def test_a_page_has_the_finding_the_table_and_how_it_was_made(name, tmp_path):
    result = result_of(name)
    result.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    body = body_of(text)
    first = result._sentences()[0].replace("'", "&#x27;")
    assert body.index("<h1>") < body.index(first) < body.index("How this page was made")
    if len(next(iter(result._columns().values()))):
        assert body.index(first) < body.index("<table>")
    assert not Cells(body).open
    assert len(text.encode()) < MOST_BYTES
    for picture in data_of(text):
        for series in picture["series"]:
            lengths = {len(series[key]) for key in ("x", "y", "low", "notes", "beyond")} - {0}
            assert len(lengths) == 1
            assert not picture["names"] or lengths == {len(picture["names"])}


@each_result
def test_a_page_names_nothing_from_elsewhere(name, tmp_path):
    result_of(name).report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"<(link|img|iframe|base|object)\b|\ssrc=|\bimport\s*\(|sourceMappingURL", text)
    assert not re.search(r"https?://", body_of(text))


def test_text_of_strangers_stays_text(tmp_path):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    found = result_of("explained anomalies")
    found = replace(found, names=[evil, *NAMES[1:]], explanation=replace(found.explanation, names=[evil, *NAMES[1:]]))
    write_report(found, tmp_path / "page.html", Context(command=evil, source=evil, used={evil: evil}))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert any(evil[:20] in picture["x"] for picture in data_of(text))
    assert text.count("</script>") == 4


@pytest.mark.parametrize("bad", ["page.txt", "page", "none/page.html"])
def test_other_targets_are_refused(bad, tmp_path):
    with pytest.raises(InputError, match=r"page|none"):
        result_of("drift").report(tmp_path / bad)
    assert not list(tmp_path.rglob("*"))


def test_a_page_that_cannot_be_completed_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr("isopleth.results.page.render", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        result_of("drift").report(path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def anomalies(n: int, d: int, words: bool = False) -> Anomalies:
    """A result of `n` simulated rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[:5] *= 1e5
    scores = -np.abs(X).sum(axis=1)
    p = (np.argsort(np.argsort(scores)) + 1.0) / n
    if words:
        X = X.astype(object)
        X[:, 0] = np.where(p < 0.5, "漢字" * 60, "<&>" * 60)
    names = [f"a long name of the column with the number {j}" for j in range(d)]
    return Anomalies(names, X, scores, p, np.where(p <= 1 / 30, -1, 1), p < 1e-4, 0.1, "worth a look")


@pytest.mark.parametrize(
    ("n", "d", "words"),
    [(100_000, 10, False), (2000, 400, False), (20_000, 4, True), (40, 2, False)],
    ids=["long", "wide", "words", "small"],
)
def test_pages_have_at_most_two_megabytes(n, d, words, tmp_path):
    found = anomalies(n, d, words)
    found.report(tmp_path / "page.html")
    size = (tmp_path / "page.html").stat().st_size
    assert 230_000 < size <= MOST_BYTES
    body = body_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert body.count("<tr>") > 30
    if n > 1000:
        assert f"of {n:,} rows" in body


@pytest.mark.slow
def test_a_page_of_a_million_rows_takes_less_than_ten_seconds(tmp_path):
    found = anomalies(1_000_000, 10)
    start = time.process_time()
    found.report(tmp_path / "page.html")
    assert time.process_time() - start < 10.0
    assert (tmp_path / "page.html").stat().st_size <= MOST_BYTES


def test_pages_that_would_be_too_long_are_shortened(tmp_path, monkeypatch):
    monkeypatch.setattr("isopleth.results.page.MOST_BYTES", 600_000)
    anomalies(20_000, 4, True).report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size <= 600_000
    monkeypatch.setattr("isopleth.results.page.MOST_BYTES", 1000)
    with pytest.raises(InputError, match="even without most rows"):
        anomalies(20_000, 4).report(tmp_path / "page.html")


def test_rows_beyond_the_frame_have_arrows_and_true_values():
    X = np.random.default_rng(0).normal(size=(100, 2))
    X[3], X[8] = [3e6, 0.0], [0.0, -40.0]
    scores = -np.abs(X).sum(axis=1)
    labels = np.where(np.arange(100) % 5 == 3, -1, 1)
    page = Anomalies(["income", "age"], X, scores, np.full(100, 0.5), labels, labels < 0, 0.1, "worth a look").content()
    flagged = page.charts[0].series[1]
    arrows = {
        note.split(" (")[0]: int(angle) for note, angle in zip(flagged.notes, flagged.beyond, strict=True) if angle >= 0
    }
    assert arrows == {"row 3": 90, "row 8": 180}
    assert max(flagged.x) < 100.0
    assert any("income=3000000" in note for note in flagged.notes)
    assert "2 rows beyond the frame" in page.charts[0].about


def test_histograms_show_the_columns_that_differ_most():
    page = replace(result_of("two samples"), labels=("before.csv", "after.csv")).content()
    bars, *histograms = page.charts
    assert bars.names[0] == "column 1"
    assert histograms[0].title.startswith("column 1: median from ")
    before, after = histograms[0].series
    assert before.name.startswith("before.csv: median")
    assert sum(before.y[:-1]) == pytest.approx(1.0)
    middles = [np.average(series.x[:-1], weights=series.y[:-1]) for series in (before, after)]
    assert middles[1] - middles[0] == pytest.approx(1.5, abs=0.4)


def test_a_long_curve_keeps_its_extremes_and_gaps():
    values = np.sin(np.arange(100_000) / 500.0)
    values[7003], values[60_000:60_400] = 40.0, np.nan
    steps, kept = thinned(values)
    assert len(steps) < 2100
    assert kept.max(initial=0, where=~np.isnan(kept)) == 40.0 == kept[steps == 7003][0]
    assert np.isnan(kept[(steps >= 60_000) & (steps < 60_400)]).any()
    np.testing.assert_array_equal(kept, values[steps])


def test_sorting_has_all_digits_where_the_text_has_fewer():
    table = ShownTable("t", {"pvalue": [0.123456789, 0.5], "n": [3, 4]}, 2, computed=frozenset({"pvalue"}))
    text = render(Content("a", ["b."], [table]))
    assert "<td class=n data-v=0.123456789>0.1235</td>" in text
    assert "<td class=n>0.5</td>" in text
    assert "<td class=n>3</td>" in text


def test_wide_tables_have_fewer_rows():
    columns = {str(j): np.arange(900) for j in range(100)}
    table = ShownTable("t", columns, 900)
    assert shown_rows(table, 1.0) == 120
    assert shown_rows(table, 0.001) == 5
    assert "The first 120 of 900 rows." in render(Content("a", [], [table]))


def test_numbers_that_are_missing_break_a_curve():
    chart = Chart("c", "x", "y", [Series("s", [0, 1, 2], [1.0, np.nan, np.inf], "line")])
    (picture,) = data_of(render(Content("a", [], [], [chart])))
    assert picture["series"][0]["y"] == [1, None, None]


def test_a_result_without_a_page_of_its_own_has_sentences_and_table(tmp_path):
    page = result_of("explanation").content()
    assert page.title == "Explanation"
    wanted = ["row", "score", "column", "value", "usual", "low", "high", "excess", "rarity"]
    assert list(page.tables[0].columns) == wanted


DAYS = np.datetime64("2024-01-01T00:00") + np.arange(80) * np.timedelta64(1, "D")


def test_changes_stand_at_their_times(tmp_path):
    series = np.repeat([0.0, 6.0], 40) + np.sin(np.arange(80) ** 2)
    ChangePointDetector(random_state=0).fit(series, times=DAYS).result_.report(tmp_path / "page.html")
    for picture in data_of((tmp_path / "page.html").read_text(encoding="utf-8")):
        assert (picture["times"], picture["x"]) == ("x", "time")
        assert picture["series"][0]["x"][:2] == [19723 * 86400, 19724 * 86400]
        assert picture["lines"][0] == [(19723 + 39.5) * 86400, "step 40 (2024-02-10), level"]


def test_columns_of_times_show_times(tmp_path):
    pandas = pytest.importorskip("pandas")
    before, after = (pandas.DataFrame({"when": DAYS + shift, "x": np.arange(80.0) % 7}) for shift in (0, 30 * 1440))
    compared = two_sample_test(before, after, n_resamples=99, random_state=0).content()
    when = next(chart for chart in compared.charts if chart.x_label == "when")
    assert when.times == "x"
    assert when.title.startswith("when: median from 2024-02-09 12:00:00 to 2024-03-10 12:00:00")
    assert when.series[0].notes[1].startswith("X: ")
    assert " between 2024-01-01 and 2024-01-04" in when.series[0].notes[1]
    before.loc[5, "x"] = np.nan
    found = AnomalyDetector(n_estimators=10, random_state=0).fit(before).anomalies(before)
    chart = found.content().charts[0]
    assert (chart.x_label, chart.times) == ("when", "x")
    dots = chart.series[0]
    assert f"when={np.datetime64(round(dots.x[0]), 's').astype('datetime64[D]')}" in dots.notes[0]
    assert found.plot().get_xlabel() == "when"


def test_few_whole_numbers_have_a_bin_each():
    before, after = np.arange(120.0)[:, None] % 4, np.arange(120.0)[:, None] % 5
    page = two_sample_test(before, after, n_resamples=99, random_state=0).content()
    x, y = np.array(page.charts[1].series[1].x), np.array(page.charts[1].series[1].y)
    assert x.tolist() == [-0.5, -0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    np.testing.assert_allclose(y, [0.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.0])


def test_made_times_are_compared_as_numbers():
    one = MadeRows({"when": list(DAYS[:40].tolist())}, {"when": list((DAYS[:40] + np.timedelta64(1, "h")).tolist())})
    assert one.distance["when"] == pytest.approx(1 / 40)
    assert one.content().charts[0].times == "x"
