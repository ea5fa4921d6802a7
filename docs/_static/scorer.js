// Order of the search's results: headings and public names that match as a whole first, then the text of pages, then other
// public names, then modules.
var Scorer = {
  score: ([page, , , , score, , kind]) => {
    if (page.startsWith("api/modules")) return score - 100;
    if (page.startsWith("api/")) return kind === "object" && score >= Scorer.objNameMatch ? score : score - 20;
    return kind === "title" ? score + 20 : score;
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
