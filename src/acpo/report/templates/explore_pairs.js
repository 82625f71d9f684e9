// Two cells compared.

function pairOf(a, b, benchmark, checkpoint) {
  const same = (one) => one.benchmark === benchmark && one.checkpoint === checkpoint;
  const found = state.data.pairs.find((one) => same(one) && one.a === a && one.b === b);
  if (found) return found;
  const mirrored = state.data.pairs.find((one) => same(one) && one.a === b && one.b === a);
  return mirrored && {
    ...mirrored, a, b, difference: -mirrored.difference, low: -mirrored.high, high: -mirrored.low,
    t: mirrored.t === null ? null : -mirrored.t, cliffs_delta: -mirrored.cliffs_delta,
    improvement: 1 - mirrored.improvement,
  };
}

function compareCells() {
  const place = byId("compare-place").value;
  const benchmark = place.split("/")[1];
  const [a, b] = [byId("compare-a").value, byId("compare-b").value];
  const checkpoint = byId("compare-checkpoint").value;
  const [ours, theirs] = [countsOf(a, benchmark, checkpoint), countsOf(b, benchmark, checkpoint)];
  if (!ours || !theirs) return;
  const rows = state.data.questions[place].map(([id], at) => {
    const [first, second] = [100 * seedMean(ours, at), 100 * seedMean(theirs, at)];
    return { id, at, first, second, change: first - second };
  });
  rows.sort((one, other) => Math.abs(other.change) - Math.abs(one.change) || one.at - other.at);
  summarise(pairOf(a, b, benchmark, checkpoint), rows, benchmark, checkpoint);
  drawChanges(rows, a, b);
  listChanges(place, ours, theirs, rows);
}

function summarise(pair, rows, benchmark, checkpoint) {
  const box = byId("compare-summary");
  if (!pair) return box.replaceChildren(make("p", { textContent: "Choose two different cells." }));
  const better = rows.filter(({ change }) => change > 0).length;
  const worse = rows.filter(({ change }) => change < 0).length;
  const facts = [
    ["A - B, points", `${signed(100 * pair.difference)} (${100 * state.data.coverage} % interval ${range(pair)})`],
    ["Standard error, points", fixed(100 * pair.standard_error)],
    ["Paired t-test", pair.t === null ? "no spread" : `${showT(pair)}, two-sided p ${showP(pair.p)}`],
    ["Questions", `A better on ${better}, B better on ${worse}, equal on ${rows.length - better - worse}`],
    ["Cliff's δ over questions", signed(pair.cliffs_delta, 3)],
    ["A run of A above one of B", `with chance ${fixed(pair.improvement)}`],
    ["About", pair.scope === "algorithm" ? "the algorithms" : "these checkpoints only"],
    ["Paired by", pair.paired_seeds ? "question and training seed" : "question"],
    ...declaredFacts(pair, benchmark, checkpoint),
  ];
  const entry = ([term, words]) => [make("dt", { textContent: term }), make("dd", { textContent: words })];
  return box.replaceChildren(make("dl", {}, ...facts.flatMap(entry)));
}

// What the study's statistics say of the same pair, where it is one of the declared comparisons.
function declaredFacts({ a, b }, benchmark, checkpoint) {
  const found = state.data.declared.find((one) => one.benchmark === benchmark && one.checkpoint === checkpoint &&
    [a, b].includes(one.treatment_cell) && [a, b].includes(one.baseline_cell));
  if (!found) {
    const words = "not a declared comparison: this p is corrected for nothing, this interval is a t interval";
    return [["In the statistics", words]];
  }
  const { treatment_cell: treated, baseline_cell: base, adjusted, paper } = found;
  const { difference, interval, p, permutation_p: flips } = found.inference;
  const corrected = Object.values(adjusted).map(({ holm, bh }) =>
    `Holm ${showP(holm)}, Benjamini-Hochberg ${showP(bh)}`);
  const bootstrap = interval ? `, bootstrap interval ${range(interval)}` : "";
  const tests = paper.map((test) =>
    `seed ${test.treatment_seed}: ${test.t === null ? "no spread" : `${showT(test)}, one-tailed p ${showP(test.p)}`}`);
  return [
    ["In the statistics", `${treated} - ${base}: ${signed(100 * difference)} points${bootstrap}`],
    ["Inference mode", [`p ${showP(p)}`, `permutation p ${showP(flips)}`, ...corrected].join("; ")],
    ["Paper mode", tests.join("; ")],
  ];
}

function drawChanges(rows, a, b) {
  const trace = {
    type: "histogram", x: rows.map(({ change }) => change), marker: { color: "#0072B2" },
    xbins: { start: -102.5, end: 102.5, size: 5 },
    hovertemplate: "%{x} points: %{y} questions<extra></extra>",
  };
  const axes = { xaxis: { title: { text: `${a} - ${b}, points` } }, yaxis: { title: { text: "Questions" } } };
  draw("compare-plot", `Histogram of ${a} minus ${b} over ${rows.length} questions`, [trace],
    { height: 280, margin: { l: 60, r: 15, t: 10, b: 50 }, ...axes });
}

function listChanges(place, ours, theirs, rows) {
  const readable = state.responses[place];
  const link = ({ cell, checkpoint, right }, { id, at }) =>
    at in readable ? linkTo(place, cell, checkpoint, Object.keys(right)[0], id, `read ${cell}`) : "left out";
  listRows(byId("compare-list"), "Questions that changed", [
    ["Question", ({ id }) => id],
    ["A (%)", ({ first }) => first, 1],
    ["B (%)", ({ second }) => second, 1],
    ["A - B", ({ change }) => change, 1],
    ["Size of the change", ({ change }) => Math.abs(change), 1],
    ["Responses of A", (row) => link(ours, row)],
    ["Responses of B", (row) => link(theirs, row)],
  ], rows);
}
