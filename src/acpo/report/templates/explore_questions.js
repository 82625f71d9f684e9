// Questions, and what was answered to them.

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
