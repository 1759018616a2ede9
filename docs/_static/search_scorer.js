// Scores of search results. Sphinx gives every page that holds all words the same score; here the guides come first, then the pages to start
// from and the reference, and long pages about the library itself come last.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: (result) => {
    const [page, , , , score, , kind] = result;
    if (kind === "object" || kind === "index") return score;
    const guides = new Set([
      "cells", "anomalies", "densities", "mixed_tables", "scores", "sampling", "two_samples", "differences", "class_priors", "change_points",
      "drift", "reports", "files", "more_machines", "distributed", "tensors", "torch",
    ]);
    const about = new Set([
      "studies", "changelog", "architecture", "benchmarks_tables", "densities_board", "anomalies_board", "reliability", "references",
    ]);
    if (guides.has(page)) return score + 6;
    if (about.has(page)) return score - 3;
    if (page.startsWith("mathematics/") || page.startsWith("gallery/")) return score - 1;
    if (page.startsWith("api/")) return score + 1;
    return score + 2;
  },
};
