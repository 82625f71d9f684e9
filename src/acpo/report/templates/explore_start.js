// What happens when the page is opened.

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
