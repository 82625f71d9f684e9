"use strict";
// The page's script: sorts and filters its tables, draws curves, and looks into questions, responses and pairs of
// cells. Data and libraries lie packed in the page. What a model wrote becomes text nodes only, never HTML.

const state = { data: null, responses: null, tables: new Map() };

// ---- small helpers ----

const byId = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function fill(select, options, wanted = select.value) {
  select.replaceChildren(...options.map(([value, label]) => make("option", { value, textContent: label })));
  if (options.some(([value]) => value === wanted)) select.value = wanted;
  select.parentElement.hidden = options.length < 2;
}

function onChange(ids, action) {
  for (const id of ids) byId(id).addEventListener("change", action);
}

const unique = (values) => [...new Set(values)];
const fixed = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const signed = (value, digits = 2) => (value > 0 ? "+" : "") + fixed(value, digits);
const range = ({ low, high }) => `${signed(100 * low)} to ${signed(100 * high)}`;
const showT = ({ t, df }) => `t(${fixed(df, 1)}) = ${fixed(t)}`;
const showP = (p) => (p < 0.001 ? "< 0.001" : fixed(p, 3));
// Plotly reads some tags in its labels; names from the configuration are to be read as they are.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

// ---- libraries ----

async function startLibrary(block) {
  document.head.append(make("script", { textContent: await unpack(block.textContent) }));
  block.remove();
}

// ---- tables ----

function enhance(table, paging = false) {
  for (const cell of table.querySelectorAll("tbody .number:not([data-order])")) {
    const value = parseFloat(cell.textContent);
    cell.dataset.order = Number.isNaN(value) ? -1e9 : value;
  }
  const heads = [...table.tHead.rows[0].cells];
  const titles = heads.map((head) => head.textContent);
  const api = new DataTable(table, {
    paging,
    pageLength: 15,
    info: false,
    autoWidth: false,
    order: [],
    ordering: { handler: false, indicators: false },
    layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: paging ? "paging" : null },
  });
  heads.forEach((head, column) => addSorting(api, head, column, titles[column]));
  addFilters(api, table, heads, titles);
  return api;
}

function addSorting(api, head, column, title) {
  const button = make("button", { type: "button", className: "sort", textContent: title });
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    const [current] = api.order();
    const descending = current && current[0] === column && current[1] === "asc";
    api.order([[column, descending ? "desc" : "asc"]]).draw();
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  });
}

function addFilters(api, table, heads, titles) {
  const name = table.dataset.title;
  const count = make("output");
  const words = make("input", { type: "search" });
  words.setAttribute("aria-label", `Filter ${name}`);
  words.addEventListener("input", () => api.search(words.value).draw());
  const bar = make("div", { className: "controls" }, make("label", {}, "Filter ", words));
  heads.forEach((head, column) => {
    if ("choose" in head.dataset) bar.append(chooser(api, column, titles[column]));
  });
  bar.append(count);
  const tell = () => {
    count.textContent = `${api.rows({ search: "applied" }).count()} of ${api.rows().count()} rows`;
  };
  api.on("draw", tell);
  tell();
  (table.closest(".scroll") ?? api.table().container()).before(bar);
}

function chooser(api, column, title) {
  const values = unique(api.column(column).nodes().toArray().map((cell) => cell.textContent)).sort();
  const select = make("select");
  const label = make("label", {}, `${title} `, select);
  fill(select, [["", "all"], ...values.map((value) => [value, value])]);
  select.addEventListener("change", () => {
    api.column(column).search(select.value, { exact: select.value !== "" }).draw();
  });
  return label;
}

// Put a table into a box. A column is [title, value of a row, decimals]; a value is text, a number, or a node.
function listRows(box, title, columns, rows, paging = true) {
  state.tables.get(box)?.destroy();
  const head = make("tr", {}, ...columns.map(([name]) => make("th", { scope: "col", textContent: name })));
  const line = (row) => make("tr", {}, ...columns.map(([, value, digits]) => cellOf(value(row), digits)));
  const body = make("tbody", {}, ...rows.map(line));
  const table = make("table", { className: "data" }, make("thead", {}, head), body);
  table.dataset.title = title;
  const scroll = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: title }, table);
  box.replaceChildren(scroll);
  state.tables.set(box, enhance(table, paging));
}

function cellOf(value, digits = 0) {
  if (typeof value !== "number") return make("td", {}, value);
  const cell = make("td", { className: "number", textContent: fixed(value, digits) });
  cell.dataset.order = value;
  return cell;
}

// ---- plots ----

function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function lineColour(method) {
  const { colour } = state.data.methods[method];
  return colour === "#000000" ? colourOf("--ink") : colour; // black cannot be seen on a dark page
}

function faint(colour) {
  return `rgba(${[1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)).join(",")},0.15)`;
}

function draw(id, words, traces, layout) {
  const box = byId(id);
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", words);
  const axis = { gridcolor: colourOf("--line"), zerolinecolor: colourOf("--line"), automargin: true };
  const look = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colourOf("--ink"), family: "inherit", size: 13 },
    margin: { l: 60, r: 15, t: 40, b: 50 },
    hovermode: "closest",
  };
  const template = { layout: { xaxis: axis, yaxis: axis } };
  Plotly.react(box, traces, { ...look, template, ...layout }, { responsive: true, displayModeBar: false });
}

// One panel of curves side by side with others: lines, their bands, and single seeds where asked for.
function panelTraces(curve, method, panel, seeds) {
  const axes = { xaxis: `x${panel + 1}`, yaxis: `y${panel + 1}`, showlegend: false };
  const colour = lineColour(method);
  const { label, dash } = state.data.methods[method];
  const kept = curve.x.map((_, at) => at).filter((at) => curve.mean[at] !== null);
  const take = (values) => kept.map((at) => values[at]);
  const x = take(curve.x);
  const band = {
    ...axes, x: [...x, ...x.toReversed()], y: [...take(curve.high), ...take(curve.low).reverse()],
    fill: "toself", fillcolor: faint(colour), line: { width: 0 }, mode: "lines", hoverinfo: "skip",
  };
  const mean = {
    ...axes, x, y: take(curve.mean), name: plain(label), mode: x.length < 25 ? "lines+markers" : "lines",
    line: { color: colour, dash, width: 2 }, hovertemplate: `rollout %{x}: %{y:.4g}<extra>${plain(label)}</extra>`,
  };
  const single = Object.entries(seeds ? curve.seeds : {}).map(([seed, values]) => ({
    ...axes, x, y: take(values), mode: "lines", line: { color: colour, width: 0.8 }, connectgaps: true,
    hovertemplate: `rollout %{x}: %{y:.4g}<extra>${plain(label)}, seed ${seed}</extra>`,
  }));
  return [band, ...single, mean];
}

function drawPanels(id, words, panels, yTitle, sharedScale) {
  const traces = panels.flatMap(({ curves }, panel) =>
    curves.flatMap(({ curve, method }) => panelTraces(curve, method, panel, byId("curves-seeds").checked)));
  const layout = { height: 380, grid: { rows: 1, columns: panels.length, pattern: "independent" }, annotations: [] };
  panels.forEach(({ title, curves }, panel) => {
    const number = panel === 0 ? "" : panel + 1;
    layout[`xaxis${number}`] = { title: { text: "Rollout" } };
    layout[`yaxis${number}`] = { title: { text: panel === 0 ? plain(yTitle) : "" } };
    if (panel > 0 && sharedScale) layout[`yaxis${number}`].matches = "y";
    const place = { xref: `x${number} domain`, yref: "paper", x: 0.5, showarrow: false };
    layout.annotations.push({ ...place, y: 1.1, text: plain(title) });
    if (curves.length === 0) layout.annotations.push({ ...place, y: 0.5, text: "no data" });
  });
  draw(id, words, traces, layout);
}

// ---- scores and run times ----

const shortName = (cell) => {
  const regime = state.data.regimes[cell.regime];
  return plain(state.data.methods[cell.method].label + (regime ? `, ${regime}` : ""));
};

function drawScores() {
  const place = byId("scores-place").value;
  const checkpoint = byId("scores-checkpoint").value;
  const traces = [];
  for (const cell of state.data.cells) {
    const kind = cell.method === "base" ? "last" : checkpoint;
    const score = state.data.scores.find(
      (one) => one.cell === cell.name && one.place === place && one.checkpoint === kind);
    if (!score) continue;
    const spread = { array: [score.high - score.mean], arrayminus: [score.mean - score.low] };
    traces.push({
      x: [score.mean], y: [shortName(cell)], name: cell.name, mode: "markers", showlegend: false,
      marker: { color: lineColour(cell.method), size: 9 },
      error_x: score.low === null ? undefined : { type: "data", symmetric: false, ...spread },
      hovertemplate: `${fixed(score.mean)} % (${fixed(score.low)} to ${fixed(score.high)})<extra>${cell.name}</extra>`,
    });
  }
  const words = `Scores with intervals of ${traces.length} cells on ${place}, ${checkpoint} checkpoint`;
  const layout = { height: 110 + 30 * traces.length, margin: { l: 150, r: 15, t: 10, b: 50 } };
  const axes = { xaxis: { title: { text: "Score (%)" } }, yaxis: { autorange: "reversed" } };
  draw("scores-plot", words, traces, { ...layout, ...axes });
}

function drawTimes() {
  const cells = unique(state.data.times.map((run) => run.cell));
  const average = (cell, value) => {
    const runs = state.data.times.filter((run) => run.cell === cell);
    return runs.reduce((sum, run) => sum + value(run), 0) / runs.length;
  };
  const parts = {
    Sampling: ["#0072B2", (run) => run.sampling ?? 0],
    Updates: ["#E69F00", (run) => run.updating ?? 0],
    Rest: ["#999999", (run) => Math.max(0, run.wall - (run.sampling ?? 0) - (run.updating ?? 0))],
  };
  const traces = Object.entries(parts).map(([name, [color, value]]) => ({
    type: "bar", orientation: "h", name, y: cells, x: cells.map((cell) => average(cell, value)), marker: { color },
    hovertemplate: `%{y}: %{x:.1f} s<extra>${name}</extra>`,
  }));
  const layout = { barmode: "stack", height: 140 + 28 * cells.length, margin: { l: 150, r: 15, t: 40, b: 50 } };
  const xTitle = "Seconds a run, mean over training seeds";
  const axes = { xaxis: { title: { text: xTitle } }, yaxis: { autorange: "reversed" } };
  draw("times-plot", "Seconds of sampling, updates and the rest of each cell's training runs", traces,
    { ...layout, ...axes, legend: { orientation: "h", y: 1.12 } });
}

// ---- curves ----

function chosenMethods() {
  return [...byId("curves-methods").querySelectorAll("input:checked")].map((box) => box.value);
}

function addMethodBoxes() {
  for (const method of Object.keys(state.data.methods).filter((name) => name !== "base")) {
    const box = make("input", { type: "checkbox", value: method, checked: true });
    const swatch = make("span", { className: "swatch", ariaHidden: "true" });
    const { label, colour, dash } = state.data.methods[method];
    swatch.style.borderTopColor = colour === "#000000" ? "var(--ink)" : colour;
    swatch.style.borderTopStyle = { solid: "solid", dot: "dotted" }[dash] ?? "dashed";
    byId("curves-methods").append(make("label", {}, box, " ", swatch, ` ${label}`));
  }
}

function drawCurves() {
  const { data } = state;
  const suite = byId("curves-suite").value;
  const quantity = byId("curves-quantity").value;
  const panels = Object.entries(data.regimes).map(([regime, title]) => ({
    title,
    curves: chosenMethods()
      .map((method) => ({ method, curve: data.curves[`${suite}_${method}_${regime}`]?.[quantity] }))
      .filter(({ curve }) => curve),
  }));
  const words = `${data.quantities[quantity]} over rollouts, one panel a regime, by method`;
  drawPanels("curves-plot", words, panels, data.quantities[quantity], true);
}

function drawDynamics() {
  const { data } = state;
  const [suite, regime] = [byId("curves-suite").value, byId("dynamics-regime").value];
  const quantity = byId("dynamics-quantity").value;
  const panels = data.bins.map((title, bin) => ({
    title,
    curves: chosenMethods()
      .map((method) => ({ method, curve: data.dynamics[`${suite}_${method}_${regime}`]?.[quantity]?.[bin] }))
      .filter(({ curve }) => curve?.x),
  }));
  const words = `${data.bin_quantities[quantity]} over rollouts, one panel a probability bin, by method`;
  drawPanels("dynamics-plot", words, panels, data.bin_quantities[quantity], true);
}

// ---- questions ----

// The counts of a cell; the base model's last checkpoint stands in for its best.
function countsOf(cell, benchmark, checkpoint) {
  const found = (kind) => state.data.right.find(
    (one) => one.cell === cell && one.benchmark === benchmark && one.checkpoint === kind);
  return found(checkpoint) ?? (cell.endsWith("_base") ? found("last") : undefined);
}

const seedMean = (entry, at) =>
  Object.values(entry.right).reduce((sum, counts) => sum + counts[at], 0) / (entry.k * Object.keys(entry.right).length);

function cellsOf(place) {
  const [suite, benchmark] = place.split("/");
  const graded = new Set(state.data.right.filter((one) => one.benchmark === benchmark).map((one) => one.cell));
  const cells = state.data.cells.filter((cell) => cell.suite === suite && graded.has(cell.name));
  return cells.map(({ name }) => [name, name]);
}

function linkTo(place, cell, checkpoint, seed, question, text) {
  const asked = new URLSearchParams({ place, cell, checkpoint, seed, question });
  return make("a", { href: `#question?${asked}`, textContent: text });
}

function fillRuns() {
  const place = byId("questions-place").value;
  fill(byId("questions-cell"), cellsOf(place));
  const [cell, benchmark] = [byId("questions-cell").value, place.split("/")[1]];
  const entries = state.data.right.filter((one) => one.cell === cell && one.benchmark === benchmark);
  fill(byId("questions-checkpoint"), entries.map(({ checkpoint }) => [checkpoint, checkpoint]));
  const entry = countsOf(cell, benchmark, byId("questions-checkpoint").value);
  fill(byId("questions-seed"), Object.keys(entry?.right ?? {}).map((seed) => [seed, seed]));
}

function listQuestions() {
  fillRuns();
  const [place, cell] = [byId("questions-place").value, byId("questions-cell").value];
  const [checkpoint, seed] = [byId("questions-checkpoint").value, byId("questions-seed").value];
  const entry = countsOf(cell, place.split("/")[1], checkpoint);
  if (!entry) return;
  const rows = state.data.questions[place].map(([id, prompt, gold], at) => ({ id, prompt, gold, at }));
  const readable = state.responses[place];
  listRows(byId("questions-list"), "Questions", [
    ["Question", ({ id, at }) => (at in readable ? linkTo(place, cell, checkpoint, seed, id, id) : id)],
    ["Prompt", ({ prompt }) => (prompt.length > 160 ? `${prompt.slice(0, 160)} …` : prompt)],
    ["Gold answer", ({ gold }) => gold],
    [`Right of ${entry.k}, seed ${seed}`, ({ at }) => entry.right[seed][at]],
    ["Right in all seeds (%)", ({ at }) => 100 * seedMean(entry, at), 1],
    ["Responses", ({ at }) => (at in readable ? "in this file" : "left out")],
  ], rows);
}

async function showQuestion({ place, cell, checkpoint, seed, question }) {
  const box = byId("question");
  const at = (state.data.questions[place] ?? []).findIndex(([id]) => id === question);
  const block = state.responses[place]?.[at];
  const samples = block ? JSON.parse(await unpack(block)) : { seen: [], runs: {} };
  const kind = cell.endsWith("_base") ? "last" : checkpoint;
  const run = (samples.runs[`${cell}/${seed}/${kind}`] ?? []).map((index) => samples.seen[index]);
  const heading = make("h3", { textContent: `${question}: ${cell}, seed ${seed}, ${kind} checkpoint` });
  box.hidden = false;
  if (at < 0 || run.length === 0) {
    const nothing = make("p", { textContent: "This file has no responses of this run to this question." });
    box.replaceChildren(heading, nothing);
  } else {
    const [, prompt, gold] = state.data.questions[place][at];
    const right = run.filter(([, correct]) => correct).length;
    box.replaceChildren(
      heading,
      make("pre", { className: "prompt", textContent: prompt }),
      make("p", {}, "Gold answer: ", make("code", { textContent: gold }), `. Right: ${right} of ${run.length}.`),
      responseTable(run),
    );
  }
  box.focus();
  box.scrollIntoView({ block: "start" });
}

// Made without the table library: what a model wrote is only ever set as text.
function responseTable(run) {
  const titles = ["Sample", "Verdict", "Reason", "Extracted answer", "Tokens", "Ended by", "Response"];
  const head = make("tr", {}, ...titles.map((textContent) => make("th", { scope: "col", textContent })));
  const rows = run.map(([response, correct, extracted, reason, tokens, finish], sample) =>
    make("tr", { className: correct ? "right" : "wrong" },
      make("th", { scope: "row", textContent: sample + 1 }),
      make("td", { textContent: correct ? "✓ right" : "✗ wrong" }),
      make("td", { textContent: reason ?? "–" }),
      make("td", { textContent: extracted ?? "–" }),
      make("td", { className: "number", textContent: tokens }),
      make("td", { textContent: finish === "length" ? "the limit" : finish }),
      make("td", {}, make("pre", { textContent: response }))));
  const table = make("table", { className: "data responses" }, make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Responses" }, table);
}

function followLink() {
  const [name, asked] = location.hash.slice(1).split("?", 2);
  if (name !== "question" || !asked) return;
  const wanted = Object.fromEntries(new URLSearchParams(asked));
  for (const key of ["place", "cell", "checkpoint", "seed"]) {
    const select = byId(`questions-${key}`);
    if ([...select.options].some(({ value }) => value === wanted[key])) select.value = wanted[key];
    fillRuns();
  }
  listQuestions();
  showQuestion(wanted);
}

// ---- two cells ----

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

// ---- start ----

function startScores() {
  if (!byId("scores-plot")) return;
  fill(byId("scores-place"), unique(state.data.scores.map(({ place }) => place)).map((place) => [place, place]));
  fill(byId("scores-checkpoint"), [["last", "last"], ["best", "best"]]);
  onChange(["scores-place", "scores-checkpoint"], drawScores);
  drawScores();
}

function startCurves() {
  const { data } = state;
  fill(byId("curves-suite"), Object.entries(data.suites).map(([name, { label }]) => [name, label]));
  fill(byId("curves-quantity"), Object.entries(data.quantities));
  fill(byId("dynamics-regime"), Object.entries(data.regimes), Object.keys(data.regimes).at(-1));
  fill(byId("dynamics-quantity"), Object.entries(data.bin_quantities));
  addMethodBoxes();
  onChange(["curves-suite", "curves-methods", "curves-seeds"], () => { drawCurves(); drawDynamics(); });
  onChange(["curves-quantity"], drawCurves);
  onChange(["dynamics-regime", "dynamics-quantity"], drawDynamics);
  drawCurves();
  drawDynamics();
}

function startQuestions() {
  const places = Object.keys(state.data.questions).map((place) => [place, place]);
  if (places.length === 0) return;
  fill(byId("questions-place"), places);
  fill(byId("compare-place"), places);
  onChange(["questions-place", "questions-cell", "questions-checkpoint", "questions-seed"], listQuestions);
  listQuestions();
  const fillPair = () => {
    const cells = cellsOf(byId("compare-place").value);
    fill(byId("compare-a"), cells, cells.at(-1)?.[0]);
    fill(byId("compare-b"), cells, cells.at(0)?.[0]);
  };
  fillPair();
  fill(byId("compare-checkpoint"), [["last", "last"], ["best", "best"]]);
  onChange(["compare-place"], fillPair);
  onChange(["compare-place", "compare-a", "compare-b", "compare-checkpoint"], compareCells);
  compareCells();
  window.addEventListener("hashchange", followLink);
}

function redrawPlots() {
  if (byId("scores-plot")) drawScores();
  drawCurves();
  drawDynamics();
  if (state.data.times.length) drawTimes();
  if (state.data.right.length) compareCells();
}

async function start() {
  for (const block of document.querySelectorAll("script[id^='library-']")) await startLibrary(block);
  state.data = JSON.parse(await unpack(byId("page-data").textContent));
  state.responses = JSON.parse(byId("page-responses").textContent);
  for (const part of document.querySelectorAll(".interactive")) part.hidden = false;
  for (const note of document.querySelectorAll(".without-script")) note.hidden = true;
  document.querySelectorAll("table.sortable").forEach((table) => enhance(table));
  startScores();
  startCurves();
  startQuestions();
  if (state.data.times.length) drawTimes();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawPlots);
  followLink();
  document.documentElement.dataset.ready = "";
}

start();
