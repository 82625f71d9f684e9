// Plots, by the plotting library, in the page's colours.

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
