import { Chart } from "../chart.js";
import { clock, count, DASH, many, short } from "../format.js";
import { html, useEffect, useRef, useState } from "../h.js";
import { useAsked } from "../live.js";
import { Elsewhere, Filter, Nothing, Section, State, Table } from "../parts.js";
import { change, go } from "../address.js";

const ROWS = 60, EVERY_MS = 500;
const MODES = { table: "Table", lines: "Lines", bars: "Bars", tap: "Tap" };
// As many as can be told apart by eye; so many points of each, from when somebody looks.
const LINES = 3, POINTS = 600;
const CALM = matchMedia("(prefers-reduced-motion: reduce)");

export function Outputs({ snapshot, asked, isPaused }) {
  const { value, problem } = useAsked("outputs", {}, 5000, isPaused);
  const names = value?.outputs.map((one) => one.name) || [];
  const output = names.includes(asked.output) ? asked.output : names[0];
  const mode = MODES[asked.mode] ? asked.mode : "table";
  if (!output) return html`<${Section} title="Outputs" id="outputs"><${Nothing}>${problem ? `Rows are unavailable: ${problem}.` : value ? "No worker has an output yet." : "Loading outputs …"}</${Nothing}></${Section}>`;
  const choose = (name) => go("outputs", { output: name, mode: mode === "table" ? "" : mode });
  return html`
    <div class="tabs" role="tablist" aria-label="Outputs">${names.map((name) => html`<button key=${name} role="tab" aria-selected=${name === output} tabindex=${name === output ? 0 : -1} onKeyDown=${(event) => step(event, names, output, choose)} onClick=${() => choose(name)}>${name}</button>`)}</div>
    <${Shown} key=${`${output} ${mode}`} output=${output} mode=${mode} asked=${asked} isPaused=${isPaused} snapshot=${snapshot}></${Shown}>`;
}

function step(event, names, now, choose) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const next = names[(names.indexOf(now) + by + names.length) % names.length];
  choose(next);
  requestAnimationFrame(() => document.querySelector('[role="tab"][aria-selected="true"]')?.focus());
}

function Shown({ output, mode, asked, isPaused, snapshot }) {
  const first = Math.max(0, Number(asked.first) || 0);
  const query = mode === "tap" ? { output, q: asked.q } : mode === "bars" || mode === "lines" ? { output, q: asked.q, by: asked.by, down: asked.by ? "1" : "", rows: mode === "bars" ? 25 : LINES } : { output, q: asked.q, by: asked.by, down: asked.down, first: first || "", rows: ROWS };
  const { value, problem } = useAsked(mode === "tap" ? "tap" : "table", query, CALM.matches ? 1000 : EVERY_MS, isPaused);
  const about = value && html`${mode === "tap" ? `${many(value.changed, "change")} since somebody looks` : html`${count(value.chosen)}${value.chosen === value.total ? "" : ` of ${count(value.total)}`} ${hasEvents(value) ? "newest rows" : "rows"} · at the cuts of ${many(value.cuts.length, "partition")} · exact text`}`;
  return html`<${Section} title=${output} id="outputs" more=${about}>
    <div class="tools">
      <div class="segments" role="group" aria-label="How">${Object.entries(MODES).map(([key, title]) => html`<button key=${key} aria-pressed=${mode === key} onClick=${() => go("outputs", { output, mode: key === "table" ? "" : key, q: asked.q })}>${title}</button>`)}</div>
      <${Filter} label=${mode === "tap" ? "Filter: symbol=A op=remove" : "Filter: text, volume>1000, symbol=A"}></${Filter}>
      ${(mode === "bars" || mode === "lines") && value && html`<${Choice} columns=${value.columns} by=${asked.by}></${Choice}>`}
    </div>
    ${problem && html`<p class="problem" role="status">${problem}</p>`}
    ${value?.missing?.length > 0 && html`<p><${State} level="warn">${many(value.missing.length, "partition")} not loaded yet: rows of ${value.missing.join(", ")} are missing</${State}></p>`}
    ${!value ? !problem && html`<${Nothing}>Waiting for the rows …</${Nothing}>` : mode === "tap" ? html`<${Tap} value=${value}></${Tap}>` : mode === "bars" ? html`<${Bars} value=${value} by=${asked.by}></${Bars}>` : mode === "lines" ? html`<${Lines} key=${`${asked.by} ${asked.q}`} value=${value} by=${asked.by}></${Lines}>` : html`<${Rows} value=${value} asked=${asked} first=${first}></${Rows}>`}
  </${Section}>
  ${asked.key && mode === "table" && html`<${One} key=${asked.key} output=${output} name=${asked.key} isPaused=${isPaused}></${One}>`}
  ${value?.cuts && html`<${Cuts} value=${value}></${Cuts}>`}
  <${Elsewhere} json=${`/api/${mode === "tap" ? "tap" : "table"}?output=${encodeURIComponent(output)}`} command=${mode === "tap" ? `ripple debug tap --output ${output}` : `ripple query 'SELECT * FROM "${output}" LIMIT 60'`}></${Elsewhere}>`;
}

// A time in nanoseconds is shown as it is; what it means is said beside it.
function Cell({ text, column }) {
  if (text == null) return html`<span class="faint">null</span>`;
  if (column.name.endsWith("_ns") && /^-?\d{15,19}$/.test(text)) {
    const ms = Number(BigInt(text) / 1000000n);
    return html`<span title=${new Date(ms).toISOString()}>${text}<span class="faint beside">${clock(ms)}</span></span>`;
  }
  return text.trim() ? text : html`<span class="faint">${JSON.stringify(text)}</span>`; // blanks cannot be seen
}

function Rows({ value, asked, first }) {
  const seen = useRef(new Map());
  const keys = value.columns.map((one, i) => (one.is_key ? i : -1)).filter((i) => i >= 0);
  const nameOf = (row) => keys.map((i) => row[i]).join("\u0001");
  const before = seen.current;
  useEffect(() => {
    seen.current = new Map(value.rows.map((row) => [nameOf(row), row]));
  }, [value]);
  if (!value.rows.length) return html`<${Nothing}>${value.total ? "No row matches." : "The table is empty at these cuts."}</${Nothing}>`;
  const sort = (name) => change({ by: asked.by === name && asked.down ? "" : name, down: asked.by === name && !asked.down ? "1" : "", first: "" });
  return html`<div class="scroll rows" tabindex="0" role="group" aria-label="Rows"><table>
    <thead><tr>${value.columns.map((one) => html`<th scope="col" key=${one.name} class=${one.is_number ? "right" : ""} title=${one.type} aria-sort=${asked.by === one.name ? (asked.down ? "descending" : "ascending") : undefined}>
      <button onClick=${() => sort(one.name)}>${one.name}<span class="arrow" aria-hidden="true">${asked.by === one.name ? (asked.down ? "↓" : "↑") : ""}</span></button></th>`)}</tr></thead>
    <tbody>${value.rows.map((row) => {
      const name = nameOf(row);
      const old = before.get(name);
      const key = JSON.stringify(keys.map((i) => row[i]));
      const isChosen = asked.key === key;
      return html`<tr key=${name} class=${isChosen ? "chosen" : ""}>${row.map((text, i) => html`<td key=${i} class=${`${value.columns[i].is_number ? "right" : ""} ${old && old[i] !== text ? "changed" : ""}`}>${i === keys[0] ? html`<button class="link" aria-expanded=${isChosen} title="The row and its changes" onClick=${() => change({ key: isChosen ? "" : key })}><${Cell} text=${text} column=${value.columns[i]}></${Cell}></button>` : html`<${Cell} text=${text} column=${value.columns[i]}></${Cell}>`}</td>`)}</tr>`;
    })}</tbody></table></div>
    ${value.chosen > ROWS && html`<p class="buttons left pager"><button class="quiet" disabled=${first === 0} onClick=${() => change({ first: Math.max(0, first - ROWS) || "" })}>Previous</button>
      <button class="quiet" disabled=${first + ROWS >= value.chosen} onClick=${() => change({ first: first + ROWS })}>Next</button>
      <span class="faint">rows ${count(first + 1)} to ${count(Math.min(first + ROWS, value.chosen))} of ${count(value.chosen)}</span></p>`}`;
}

// A key in an address may be anything; a long one is longer than a title.
function titleOfKey(name) {
  let fields;
  try {
    fields = JSON.parse(name);
  } catch {
    return "A row";
  }
  if (!Array.isArray(fields)) return "A row";
  const text = fields.map((one) => one ?? "null").join(" · ");
  return fields.length ? (text.length > 80 ? `${text.slice(0, 79)}…` : text.trim() || JSON.stringify(text)) : "The only row";
}

// One row by its key: each field with its type, and its changes since somebody looks.
function One({ output, name, isPaused }) {
  const { value, problem } = useAsked("row", { output, key: name }, EVERY_MS, isPaused);
  const title = titleOfKey(name);
  return html`<${Section} title=${title} id="row" more=${value && `${many(value.changes.length, "change")} since somebody looks, newest first`}>
    ${problem && html`<p class="problem" role="status">${problem}</p>`}
    ${!value ? !problem && html`<${Nothing}>Loading the row …</${Nothing}>` : html`
      ${value.row ? html`<dl class="facts">${value.columns.map((one, i) => html`<div key=${one.name}><dt>${one.name} <span class="faint">${one.type}</span></dt><dd><${Cell} text=${value.row[i]} column=${one}></${Cell}></dd></div>`)}</dl>`
        : html`<${Nothing}>The table has no such row now.</${Nothing}>`}
      ${value.changes.length > 0 && html`<${Tap} value=${{ columns: value.columns, ...value, changed: value.changes.length }} label=${`Changes of ${title}`}></${Tap}>`}`}
  </${Section}>`;
}

function Choice({ columns, by }) {
  const numbers = columns.filter((one) => one.is_number && !one.is_key && !one.name.endsWith("_ns"));
  useEffect(() => {
    if (!by && numbers.length) change({ by: numbers[0].name });
  }, [by, numbers.length]);
  return html`<label class="check">by <select value=${by} onChange=${(event) => change({ by: event.target.value })}>${numbers.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select></label>`;
}

function Bars({ value, by }) {
  const at = value.columns.findIndex((one) => one.name === by);
  if (at < 0) return html`<${Nothing}>Choose a number to compare rows by.</${Nothing}>`;
  const rows = value.rows.map((row) => ({ name: titleOf(row, value.columns), text: row[at], size: Math.abs(Number(row[at])) }));
  if (!rows.length) return html`<${Nothing}>No row matches.</${Nothing}>`;
  const most = Math.max(...rows.map((one) => one.size).filter(Number.isFinite), 0) || 1;
  return html`<ol class="bars" aria-label=${`The ${rows.length} largest by ${by}`}>${rows.map((one) => html`<li key=${one.name}><span>${one.name}</span>
    <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width=${(100 * one.size) / most} height="10"></rect></svg><span class="right">${one.text ?? "null"}</span></li>`)}</ol>`;
}

function titleOf(row, columns) {
  return row.map((text, i) => (columns[i].is_key ? shortTime(text, columns[i]) : null)).filter((one) => one != null).join(" · ") || "all";
}

// The largest rows, each with what it was since somebody looks: a row that is overtaken leaves.
function Lines({ value, by }) {
  const kept = useRef({ value: null, points: [] });
  const at = value.columns.findIndex((one) => one.name === by);
  if (at < 0) return html`<${Nothing}>Choose a number to draw.</${Nothing}>`;
  if (!value.rows.length) return html`<${Nothing}>No row matches.</${Nothing}>`;
  const now = value.rows.map((row) => [titleOf(row, value.columns), row[at] == null ? null : Number(row[at])]);
  if (kept.current.value !== value) kept.current = { value, points: [...kept.current.points.slice(1 - POINTS), { time_ms: Date.now(), ...Object.fromEntries(now) }] };
  const names = now.map(([name]) => name);
  return html`<${Chart} key=${names.join("\u0001")} history=${kept.current.points} show=${near} from="near" label=${`${by} of the ${many(names.length, "largest row")}, since this view was opened`} series=${names.map((name) => ({ name, label: name }))}></${Chart}>`;
}

// Enough digits to tell a value from the one before.
function near(value) {
  if (value == null) return DASH;
  const size = Math.abs(value);
  if (size >= 1e7) return short(value);
  return value.toLocaleString("en-US", { maximumFractionDigits: size >= 1e4 ? 0 : size >= 10 ? 2 : 4 });
}

function shortTime(text, column) {
  return column.name.endsWith("_ns") && /^\d{15,19}$/.test(text) ? clock(Number(BigInt(text) / 1000000n)) : text;
}

function Tap({ value, label = "Changes, newest first" }) {
  if (!value.changes.length) return html`<${Nothing}>${value.changed ? "No recent change matches." : "No changes yet. Each commit appears here."}</${Nothing}>`;
  const signs = { set: "+", patch: "~", remove: "−", final: "=" };
  return html`<div class="scroll tap" tabindex="0" role="group" aria-label=${label}><table>
    <thead><tr><th scope="col">op</th><th scope="col">came</th>${value.columns.map((one) => html`<th scope="col" key=${one.name} class=${one.is_number ? "right" : ""}>${one.name}</th>`)}<th scope="col" class="right">partition</th><th scope="col">at the cut</th></tr></thead>
    <tbody>${value.changes.map((one, i) => html`<tr key=${i}><th scope="row"><span class=${`op ${one.op}`}><span aria-hidden="true">${signs[one.op]}</span> ${one.op}</span></th><td>${clock(one.time_ms)}</td>
      ${one.row.map((text, k) => html`<td key=${k} class=${value.columns[k].is_number ? "right" : ""}>${text == null ? html`<span class="faint">${one.op === "remove" ? "" : DASH}</span>` : html`<${Cell} text=${text} column=${value.columns[k]}></${Cell}>`}</td>`)}
      <td class="right">${one.partition}</td><td><span class="raw">${one.cut}</span></td></tr>`)}</tbody></table></div>`;
}

// Of an output of events the newest rows are here; its sink has all of them.
const hasEvents = (value) => value.cuts.some((one) => Object.keys(one.begins).length > 0);

const offsets = (cut) => html`<code>${Object.entries(cut).map(([name, offset]) => `${name} ${offset}`).join(", ")}</code>`;

function Cuts({ value }) {
  const [isOpen, setOpen] = useState(false);
  const begins = { name: "begins", title: "all rows from", about: "earlier ones are in the sink", by: (one) => JSON.stringify(one.begins), show: (one) => offsets(one.begins) };
  return html`<details class="card fold" open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}><summary>Cuts of these rows</summary>
    ${isOpen && html`<${Table} id="u" label="Cuts" rows=${value.cuts.map((one) => ({ key: one.partition, ...one }))} empty="None yet." columns=${[
      { name: "partition", title: "partition", right: true }, { name: "epoch", title: "epoch", right: true, show: (one) => count(Number(one.epoch)) },
      { name: "cut", title: "next offset of each input", by: (one) => JSON.stringify(one.cut), show: (one) => offsets(one.cut) }, ...(hasEvents(value) ? [begins] : [])]}></${Table}>`}
  </details>`;
}
