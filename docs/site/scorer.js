// Order of the site's search: guides before references, these before decisions and internals, and whole pages before their parts.
var Scorer = {
  score: ([page, , anchor, , score]) => {
    const weights = { howto: 1.6, tutorials: 1.3, reference: 1.3, explanation: 1.2, internals: 0.4, decisions: 0.2 };
    const weight = page.startsWith("reference/commands") ? 0.9 : weights[page.split("/")[0]] || 1;
    return score * weight * (anchor ? 0.8 : 1);
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
