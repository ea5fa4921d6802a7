// Order of the search's results: pages before names of the API, and public names before the modules.
var Scorer = {
  score: (result) => {
    const [page, , , , score] = result;
    if (page.startsWith("api/modules")) return score - 100;
    return page.startsWith("api/") ? score - 20 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
