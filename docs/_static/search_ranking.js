// Search of words in pages. Sphinx finds pages that hold every word of a question, so one word too many finds nothing. Here the pages that hold
// most of the words come first, where a word counts more the fewer pages hold it, and twice in a title. Words that no page holds are left out.
const rankPages = (searchTerms, excludedTerms) => {
  const { terms, titleterms, docnames, filenames, titles } = Search._index;
  const listed = (index, word) => (Object.hasOwn(index, word) ? [index[word]].flat() : []);
  const near = (index, word) =>
    Object.keys(index).filter((other) => word.length > 3 && other.startsWith(word)).flatMap((other) => index[other]);
  const scores = new Map();
  let most = 0;
  for (const word of searchTerms) {
    let inText = new Set(listed(terms, word));
    const inTitle = new Set(listed(titleterms, word));
    if (!inText.size && !inTitle.size) inText = new Set(near(terms, word));
    const pages = new Set([...inText, ...inTitle]);
    if (!pages.size) continue;
    const weight = Math.log(1 + docnames.length / pages.size);
    most += weight;
    for (const page of pages) scores.set(page, (scores.get(page) ?? 0) + weight * (inTitle.has(page) ? 2 : 1));
  }
  for (const word of excludedTerms) for (const page of listed(terms, word)) scores.delete(page);
  return [...scores]
    .filter(([, score]) => score >= most / 2)
    .map(([page, score]) => [
      docnames[page], titles[page], "", null, Math.round((10 * score) / most), filenames[page], SearchResultKind.text,
    ]);
};
if (typeof Search !== "undefined") Search.performTermsSearch = rankPages;
