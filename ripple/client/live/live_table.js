// Draws the rows of a live table, and lines of one of its columns.

const POINTS = 300;
const NAMES = "http://www.w3.org/2000/svg";

const made = (name, parent, text) => {
  const found = document.createElement(name);
  if (text !== undefined) found.textContent = text;
  parent.append(found);
  return found;
};

const shownValue = (value) => {
  if (value === null) return "";
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(12)));
};

const summary = (view) => {
  const rows = `${view.count.toLocaleString()} rows`;
  const some = view.rows.length < view.count ? `, ${view.rows.length} of them shown` : "";
  const state = view.has_ended ? "ended" : "running";
  return `${rows}${some}, ${view.changes.toLocaleString()} changes, ${state}`;
};

const drawLines = (svg, lines, colours) => {
  svg.replaceChildren();
  const values = [...lines.values()].flat().map((point) => point[1]);
  if (!values.length) return;
  const times = [...lines.values()].flat().map((point) => point[0]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const x = (time) => 4 + (592 * (time - first)) / (last - first || 1);
  const y = (value) => 116 - (112 * (value - low)) / (high - low || 1);
  for (const [name, points] of lines) {
    const line = document.createElementNS(NAMES, "polyline");
    line.setAttribute("points", points.map(([t, v]) => `${x(t)},${y(v)}`).join(" "));
    line.setAttribute("class", `ripple-line ripple-line-${colours.get(name)}`);
    const title = document.createElementNS(NAMES, "title");
    title.textContent = name;
    line.append(title);
    svg.append(line);
  }
  for (const [value, at] of [[high, 10], [low, 116]]) {
    const label = document.createElementNS(NAMES, "text");
    label.setAttribute("x", "600");
    label.setAttribute("y", String(at));
    label.textContent = shownValue(value);
    svg.append(label);
  }
};

function render({ model, el }) {
  el.classList.add("ripple-live");
  const table = made("table", el);
  const caption = made("caption", table);
  const head = made("tr", made("thead", table));
  const body = made("tbody", table);
  const svg = document.createElementNS(NAMES, "svg");
  svg.setAttribute("viewBox", "0 0 680 120");
  svg.setAttribute("role", "img");
  const lines = new Map();
  const colours = new Map(); // of lines, by name
  let before = new Map();
  let columns = "";

  const update = () => {
    const view = model.get("shown");
    if (!view.columns) return;
    caption.textContent = summary(view);
    if (columns !== view.columns.join("\n")) {
      columns = view.columns.join("\n");
      head.replaceChildren();
      for (const name of view.columns) made("th", head, name).scope = "col";
      if (view.line !== null) {
        svg.setAttribute("aria-label", `lines of ${view.line}`);
        el.append(svg);
      }
    }
    const number = view.rows.length ? view.rows[0].map((value) => typeof value === "number") : [];
    [...head.children].forEach((cell, at) => cell.classList.toggle("ripple-number", number[at]));
    const nameOf = (row) => row.slice(0, view.keys).join(" ") || view.line;
    const now = new Map();
    body.replaceChildren();
    for (const row of view.rows) {
      const key = view.keys === null ? null : JSON.stringify(row.slice(0, view.keys));
      const old = before.get(key);
      const line = made("tr", body);
      row.forEach((value, at) => {
        const cell = made("td", line, shownValue(value));
        if (typeof value === "number") cell.classList.add("ripple-number");
        if (key !== null && old !== undefined && old[at] !== value)
          cell.classList.add("ripple-changed");
      });
      if (key !== null) now.set(key, row);
      if (key !== null && view.line !== null) {
        const name = nameOf(row);
        if (!colours.has(name)) colours.set(name, colours.size % 8);
        const dot = document.createElement("span");
        dot.className = `ripple-dot ripple-dot-${colours.get(name)}`;
        line.firstChild.prepend(dot);
      }
    }
    if (view.line !== null && view.keys !== null) {
      const at = view.columns.indexOf(view.line);
      const drawn = new Set();
      for (const row of view.rows) {
        const value = row[at] === null ? NaN : Number(row[at]);
        if (!Number.isFinite(value)) continue;
        const name = nameOf(row);
        drawn.add(name);
        if (!lines.has(name)) lines.set(name, []);
        const points = lines.get(name);
        points.push([performance.now(), value]);
        if (points.length > POINTS) points.shift();
      }
      for (const name of lines.keys())
        if (!drawn.has(name)) lines.delete(name);
      drawLines(svg, lines, colours);
    }
    before = now;
  };

  model.on("change:shown", update);
  update();
  return () => model.off("change:shown", update);
}

export default { render };
