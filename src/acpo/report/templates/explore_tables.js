// Tables that sort and filter, by the table library.

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
