// Learning curves, and what happens in each probability bin.

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
