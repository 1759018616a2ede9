"""Open the pages of reports in headless Chromium and use them as a reader does: look, sort, hover, zoom, type and print.

Run ``make check-reports``; it needs ``chromium`` on the path. Pages of every kind of result are made from simulated tables, and
opened at the width of a phone and of a desktop, in light and in dark colours. A page fails if a script fails or writes to the
console, if it asks for anything from elsewhere, if it is wider than the window, if a table does not sort, if a picture does not
show the row under the mouse, zoom or answer to keys, if a control cannot be reached with the tabulator, or if text has less
contrast than level AA of the WCAG asks for. With ``--keep FOLDER`` the pages and screenshots are kept to be looked at.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from playwright.sync_api import Page, sync_playwright

from isopleth import (
    AnomalyDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    DriftMonitor,
    stein_test,
    two_sample_test,
)
from isopleth.datasets import load_breast
from isopleth.tasks import MadeRows

WIDTHS, SCHEMES = (400, 1280), ("light", "dark")

# Text whose contrast with the nearest painted ground is below level AA.
CONTRAST = """() => {
  const parts = c => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = parts(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const weak = [];
  for (const e of document.querySelectorAll("main *, .skip")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e);
    if (style.display === "none") continue;
    const [a, b] = [light(parts(style.color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) weak.push(`${e.tagName} "${e.textContent.slice(0, 30)}" ${ratio.toFixed(2)}`);
  }
  const root = getComputedStyle(document.documentElement), get = n => root.getPropertyValue("--" + n).trim();
  const hex = c => [1, 3, 5].map(k => parseInt(c.slice(k, k + 2), 16));
  for (const name of ["blue", "vermillion", "grey"]) {
    const [a, b] = [light(hex(get(name))), light(hex(get("ground")))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 3) weak.push(`${name} of the pictures ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return weak;
}"""

# Place in the window of a point that has a text, and is in the picture.
POINT = """k => {
  const chart = window.reportCharts[k], box = chart.canvas.getBoundingClientRect(), series = chart.picture.series;
  for (let i = series.length - 1; i >= 0; i--) {
    const n = series[i].notes.length;
    for (let j = Math.floor(n / 2); j < n; j++) {
      const p = chart.getDatasetMeta(i).data[j];
      if (p && isFinite(p.x) && isFinite(p.y)) {
        // The middle of a bar is inside it, its end may not be.
        const x = p.base !== undefined && isFinite(p.base) ? (p.x + p.base) / 2 : p.x;
        if (Math.abs(x - p.base) < 1) continue;
        return { x: box.x + x, y: box.y + p.y, note: series[i].notes[j] };
      }
    }
  }
  return null;
}"""


def make_pages(folder: Path) -> list[Path]:
    """Write a page of every kind of result."""
    rng = np.random.default_rng(0)
    breast = load_breast()
    rows = breast.data.copy()
    rows[3, 2] = 3e6
    y = np.repeat(["healthy", "ill"], 50)
    labelled = rng.normal(size=(100, 3)) + 2.0 * (y == "ill")[:, None]
    before, after = rng.normal(size=(2, 400, 4))
    stream = np.vstack([rng.normal(size=(400, 2)), rng.normal(1.5, size=(100, 2))])
    series = np.repeat([0.0, 3.0], 80) + rng.normal(size=160)
    detector = AnomalyDetector(random_state=0).fit(rows)
    results = {
        "anomalies": detector.anomalies(rows, explain=10),
        "explanation": detector.explain(rows[:3]),
        "compare": two_sample_test(before, after * [1, 1, 2, 1] + [0, 0.7, 0, 0], random_state=0),
        "changes": ChangePointDetector(random_state=0).fit(series).result_,
        "prior": ClassPriorEstimator(random_state=0).fit(labelled, y).estimate(labelled[:60]),
        "monitor": DriftMonitor(expected_run_length=2000, random_state=0).fit(rng.normal(size=(600, 2))).update(stream),
    }
    tables = [pyarrow.table(dict(zip("abcd", rows.T, strict=True))) for rows in (after, before)]
    results["sample"] = MadeRows.of(*tables)
    words = [rng.choice(["Rome", "Oslo", "Bern"], 400, p=p) for p in ([0.3, 0.4, 0.3], [0.7, 0.2, 0.1])]
    mixed = [pyarrow.table({"city": word, "x": rows[:, 0]}) for word, rows in zip(words, (before, after), strict=True)]
    results["compare words"] = two_sample_test(*mixed, random_state=0)
    # Times beside the numbers: on the axes of pictures stand dates.
    days = np.datetime64("2024-01-30", "s") + np.arange(400) * np.timedelta64(6, "h")
    dated = [
        pyarrow.table({"when": days + shift, "x": one[:, 0]})
        for shift, one in ((0, before), (np.timedelta64(9, "D"), after))
    ]
    results["compare times"] = two_sample_test(*dated, random_state=0)
    results["anomalies of times"] = AnomalyDetector(random_state=0).fit(dated[0]).anomalies(dated[0])
    minutes = np.datetime64("2024-12-31T23:10") + np.arange(160) * np.timedelta64(30, "s")
    results["changes at times"] = ChangePointDetector(random_state=0).fit(series, times=minutes).result_
    results["fit"] = stein_test(before, lambda X: -1.3 * X, random_state=0)
    # Two weeks as a reference, then a step: pages of a monitor that knows the clock.
    steps = np.arange(21 * 96)
    rate = 20.0 + 5.0 * np.sin(steps / 96 * 2 * np.pi) + rng.normal(size=len(steps)) + 3.0 * (steps > 17 * 96)
    clock = pyarrow.table({"time": np.datetime64("2025-01-06", "s") + steps * np.timedelta64(15, "m"), "rate": rate})
    reference = DriftMonitor(context="time", expected_run_length=2000, random_state=0).fit(clock[: 14 * 96])
    results["monitor of a context"] = reference.update(clock[14 * 96 :])
    for name, result in results.items():
        result.report(folder / f"{name}.html")
    return [folder / f"{name}.html" for name in (*results, *pages_of_commands(folder))]


def pages_of_commands(folder: Path) -> list[str]:
    """Write the pages of commands about the cells of a table of words, numbers, times and gaps, and return their names."""
    rng = np.random.default_rng(1)
    article = rng.choice(["table", "chair", "lamp"], 300)
    price = np.round(
        np.choose(np.unique(article, return_inverse=True)[1], [90.0, 35.0, 400.0]) + rng.normal(size=300), 2
    )
    units = rng.integers(1, 9, 300)
    days = np.datetime64("2024-03-01") + np.sort(rng.integers(0, 200, 300))
    table = {
        "article": article,
        "price_of_one_piece": price,
        "units": units,
        "sum": np.round(price * units, 2),
        "sent": days,
    }
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    lines[5] = lines[5].replace(lines[5].split(",")[1], "7.77")
    lines[9] = lines[9].replace(lines[9].split(",")[0], "")
    lines[20] = lines[20].replace(lines[20].split(",")[3], "1.0")
    file = folder / "orders.csv"
    file.write_text("\n".join(lines) + "\n")
    commands = {
        "cells": ["cells", str(file)],
        "expect": ["expect", str(file), "--given", "article=lamp"],
        "fill": ["fill", str(file), "--out", str(folder / "filled.csv")],
    }
    for name, words in commands.items():
        made = [sys.executable, "-m", "isopleth", *words, "--quiet", "--report", str(folder / f"{name}.html")]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    return list(commands)


def check_tables(page: Page) -> list[str]:
    """Look whether a desktop shows the last column of tables of up to twelve; larger ones end with columns of the data."""
    outside = page.evaluate(
        """() => [...document.querySelectorAll("table")].map(t => [t.tHead?.rows[0]?.cells, t.closest(".scroll") ?? t])
        .filter(([cells, box]) => cells?.length && cells.length <= 12 &&
          cells[cells.length - 1].getBoundingClientRect().right > box.getBoundingClientRect().right + 1)
        .map(([cells]) => cells[cells.length - 1].textContent.trim())"""
    )
    return [f"the column {name} is out of view" for name in outside]


def check_sorting(page: Page) -> list[str]:
    """Sort the first column of numbers by a click and by the keyboard."""
    head = page.locator("th.n button").first
    if not head.count():
        return []
    cells = "b => [...b.closest('table').tBodies[0].rows].map(r => r.cells[b.parentElement.cellIndex])"
    numbers = f"b => ({cells})(b).map(c => Number(c.dataset.v ?? c.textContent))"
    head.click()
    up = head.evaluate(numbers)
    head.focus()
    page.keyboard.press("Enter")
    down = head.evaluate(numbers)
    if up != sorted(up) or down != sorted(down, reverse=True):
        return ["the table does not sort"]
    return [] if head.evaluate("b => b.parentElement.ariaSort") == "descending" else ["the order is not announced"]


def check_picture(page: Page, k: int) -> list[str]:
    """Hover over a point of a picture, enlarge a part, and step with keys."""
    defects = []
    canvas = page.locator("canvas").nth(k)
    canvas.scroll_into_view_if_needed()
    place = page.evaluate(POINT, k)
    if place is None:
        return [f"picture {k + 1} has no point"]
    page.mouse.move(place["x"] - 2, place["y"])
    page.mouse.move(place["x"], place["y"])
    page.wait_for_timeout(80)
    words = page.locator(".reading").nth(k)
    shown = page.evaluate("k => window.reportCharts[k].tooltip.opacity > 0", k)
    if not shown or not words.inner_text().strip():
        defects.append(f"picture {k + 1} does not show the row under the mouse")
    span = "k => { const s = window.reportCharts[k].scales.x; return s.max - s.min; }"
    whole = page.evaluate(span, k)
    box = canvas.bounding_box()
    assert box
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.4 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"], steps=4)
    page.mouse.up()
    page.wait_for_timeout(80)
    part = page.evaluate(span, k)
    page.locator(".tools").nth(k).get_by_text("Whole picture").click()
    page.wait_for_timeout(80)
    again = page.evaluate(span, k)
    if not part < 0.6 * whole or abs(again - whole) > 1e-9 * whole:
        defects.append(f"picture {k + 1} does not zoom ({whole:.4g}, {part:.4g}, {again:.4g})")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    first = words.inner_text()
    page.keyboard.press("ArrowRight")
    alone = page.evaluate("k => window.reportCharts[k].picture.series.flatMap(s => s.notes).length < 2", k)
    if not first.strip() or (words.inner_text() == first and not alone):
        defects.append(f"picture {k + 1} does not step with keys")
    return defects


def check_tabulator(page: Page) -> list[str]:
    """Reach every control with the tabulator."""
    every = "[...document.querySelectorAll('button, canvas, .scroll, a')]"
    controls = f"{every}.filter(e => e.offsetParent !== null || e.matches('.skip'))"
    wanted = page.evaluate(f"() => {controls}.length")
    page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
    page.locator("body").press("Tab")
    seen = set()
    for _ in range(wanted + 5):
        seen.add(page.evaluate(f"() => {controls}.indexOf(document.activeElement)"))
        page.keyboard.press("Tab")
    reached = len(seen - {-1})
    return [] if reached == wanted else [f"{wanted - reached} of {wanted} controls are not reached by the tabulator"]


def check(browser: Any, path: Path, width: int, scheme: str, keep: Path | None) -> list[str]:
    """Return the defects of a page."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(180_000)  # the machine may be busy
    defects: list[str] = []
    page.on("console", lambda message: defects.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: defects.append(f"script: {error}"))
    page.on("request", lambda request: request.url.startswith("file:") or defects.append(f"asks for {request.url}"))
    page.goto(path.as_uri())
    page.wait_for_timeout(200)
    if keep:
        page.screenshot(path=str(keep / f"{path.stem}-{scheme}-{width}.png"), full_page=True)
    wide = page.evaluate("document.documentElement.scrollWidth")
    defects += [f"{wide} pixels wide"] * (wide > width)
    defects += page.evaluate(CONTRAST)
    if width == max(WIDTHS):
        defects += check_tables(page)
    defects += check_sorting(page)
    pictures = page.locator("canvas").count()
    for k in range(pictures):
        defects += check_picture(page, k)
    defects += check_tabulator(page)
    page.locator("#theme").click()
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    if (ground == "rgb(255, 255, 255)") != (scheme == "dark"):
        defects.append("the button for the colours does not change them")
    page.locator("#theme").click()
    page.emulate_media(media="print")
    if page.evaluate("() => getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)":
        defects.append("the page is not printed on white")
    page.set_viewport_size({"width": 720, "height": 1000})
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    page.wait_for_timeout(100)
    wide = page.evaluate("document.documentElement.scrollWidth")
    defects += [f"{wide} pixels wide on paper"] * (wide > 720)
    printed = page.pdf(path=str(keep / f"{path.stem}-{scheme}.pdf") if keep else None)
    defects += ["the page cannot be printed"] * (len(printed) < 10_000)
    page.close()
    return defects


def main() -> int:
    """Print the defects and return 1 if there are any."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path, help="Keep pages and screenshots in this folder.")
    keep = parser.parse_args().keep
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("There is no Chromium on the path; install it.")
        return 1
    found = 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
        pages = make_pages(keep or Path(folder))
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for path in pages:
            for width in WIDTHS:
                for scheme in SCHEMES:
                    for defect in check(browser, path, width, scheme, keep):
                        found += 1
                        print(f"{path.name} at {width} pixels, {scheme}: {defect}", flush=True)
        browser.close()
    print(f"{len(pages)} pages, {len(WIDTHS)} widths, {len(SCHEMES)} themes: {found} defects")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
