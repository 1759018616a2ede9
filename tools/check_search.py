"""Ask the built search index questions in users' words, and look for the page that answers among the first three.

Run ``make check-search`` after ``make docs``; it needs Node.js, which runs the search of the pages themselves. The pages were
written with the first ten questions in view. The second ten are titles in other people's
words, chosen after the pages were written.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs" / "_build" / "html"
FIRST = 3

# Questions and the pages that answer them.
IN_VIEW = {
    "which rows are outliers with missing values": {"anomalies"},
    "multivariate Kolmogorov-Smirnov": {"two_samples", "coming_from"},
    "which penalty": {"change_points", "coming_from"},
    "drift in one of many columns": {"drift", "two_samples"},
    "probability of this row": {"densities", "anomalies"},
    "fill missing cells": {"mixed_tables"},
    "class balance of unlabelled data": {"class_priors"},
    "compare two months": {"two_samples"},
    "generate synthetic data": {"mixed_tables", "sampling"},
    "file too big for memory": {"files"},
}
# Titles of questions and articles by others, found by searching the web for each task.
OTHERS = {
    "identifying multivariate outliers": {"anomalies"},
    "statistical test on multi-dimensional data": {"two_samples"},
    "test whether two multivariate distributions are sampled from the same population": {"two_samples"},
    "detect rapid changes in a timeseries": {"change_points"},
    "detecting significant changes in data": {"change_points", "two_samples", "drift"},
    "handling NaNs in categorical data": {"mixed_tables"},
    "how to impute categorical variable": {"mixed_tables"},
    "multivariate kernel density estimation": {"densities"},
    "estimating prevalence with precision and accuracy": {"class_priors"},
    "Kolmogorov Smirnov in two or more dimensions": {"two_samples"},
}

# Loads the scripts of the search page without a browser and prints the pages found for each question, the best first.
SCRIPT = """
const fs = require("fs"), vm = require("vm"), path = require("path");
const element = new Proxy(function () {}, {
  get: (target, name) => (name === "lastChild" ? null : name === Symbol.toPrimitive ? () => "" : element),
  set: () => true, apply: () => element,
});
const storage = { setItem() {}, getItem() { return null; }, removeItem() {} };
const context = vm.createContext({
  document: { getElementById: () => null, querySelector: () => null, querySelectorAll: () => [], addEventListener() {},
    documentElement: { dataset: {} }, readyState: "loading", body: element, createElement: () => element, head: element },
  localStorage: storage, sessionStorage: storage, console, URLSearchParams, setTimeout() {}, DOCUMENTATION_OPTIONS: {},
});
context.window = context;
const [root, questions] = [process.argv[1], JSON.parse(process.argv[2])];
const scripts = ["documentation_options", "doctools", "sphinx_highlight", "language_data", "searchtools", "search_ranking"];
const run = (name) => vm.runInContext(fs.readFileSync(path.join(root, name), "utf8").replaceAll("const ", "var "), context);
for (const name of scripts) run(`_static/${name}.js`);
run("searchindex.js");
const search = vm.runInContext("Search", context);
const found = questions.map((question) => {
  const results = search._performSearch(...search._parseQuery(question));
  return [...new Set(results.reverse().map((result) => result[0]))];
});
process.stdout.write(JSON.stringify(found));
"""


def ask(questions: list[str], pages: Path = PAGES) -> list[list[str]]:
    """Return the pages found for each question, the best first."""
    command = ["node", "-e", SCRIPT, str(pages), json.dumps(questions)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the first pages found for every question; exit with 1 if fewer lead to an answer than when the pages were written."""
    enough = True
    for name, questions, least in [("questions in view", IN_VIEW, 10), ("questions of others", OTHERS, 7)]:
        right = 0
        for (question, pages), found in zip(questions.items(), ask(list(questions)), strict=True):
            good = bool(pages & set(found[:FIRST]))
            right += good
            print(f"{'  ' if good else '- '}{question}: {', '.join(found[:FIRST]) or 'nothing'}")
        print(f"{name}: {right} of {len(questions)} lead to the page that answers, among the first {FIRST}")
        enough &= right >= least
    sys.exit(not enough)


if __name__ == "__main__":
    main()
