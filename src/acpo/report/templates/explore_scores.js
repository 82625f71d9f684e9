// Scores with their intervals, and run times.

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
