// What views are made of: tables, states, bars, panels.
import { DASH } from "./format.js";
import { html, useEffect, useMemo, useRef, useState } from "./h.js";
import { change, useAddress } from "./address.js";

const SIGNS = { good: "●", warn: "▲", bad: "■", none: "○" };

// A state has a shape and a word as well as a colour.
export function State({ level, children }) {
  return html`<span class=${`state ${level}`}><span class="sign" aria-hidden="true">${SIGNS[level]}</span>${children}</span>`;
}

export function Bar({ value, level = "accent", label }) {
  if (typeof value !== "number") return html`<span class="faint">${DASH}</span>`;
  const width = Math.max(0, Math.min(1, value)) * 100;
  return html`<span class="bar" title=${label}>
    <svg class=${level} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6" rx="3"></rect><rect class="fill" width=${width} height="6" rx="3"></rect></svg>
    <span>${label}</span></span>`;
}

export function Figure({ name, value, more, level }) {
  return html`<div class=${`figure ${level || ""}`}><dt>${name}</dt><dd>${value}</dd><dd class="more">${more || "\u00a0"}</dd></div>`;
}

export function Section({ title, more, children, id }) {
  return html`<section class="card" aria-labelledby=${id}>
    <header><h2 id=${id}>${title}</h2>${more && html`<p class="faint">${more}</p>`}</header>
    ${children}</section>`;
}

export function Nothing({ children }) {
  return html`<p class="nothing">${children}</p>`;
}

// The coordinator's address for commands, unless it is their default. A wildcard is the host
// of this page's address.
let coordinator = "";
export function askAt(address) {
  coordinator = (address || "").replace(/^(0\.0\.0\.0|\[::\])(?=:)/, location.hostname);
}

const asks = (text) => (coordinator && /^ripple (cluster|query|debug|inspect|status)\b/.test(text) ? `${text} --coordinator ${coordinator}` : text);

export function Copied({ text: command }) {
  const text = asks(command);
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text).catch(() => {});
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<span class="command"><code>${text}</code><button class="quiet" onClick=${copy} aria-label=${`Copy: ${text}`}>${isDone ? "copied" : "copy"}</button></span>`;
}

// The same as JSON, and as a command.
export function Elsewhere({ json, command }) {
  return html`<footer class="elsewhere"><span class="faint">Also as:</span>
    <a href=${json} target="_blank" rel="noopener">JSON</a>
    ${command && html`<${Copied} text=${command}></${Copied}>`}</footer>`;
}

export function Filter({ label, name = "q" }) {
  const { asked } = useAddress();
  return html`<label class="filter"><span class="hidden">${label}</span>
    <input type="search" data-filter placeholder=${`${label}  /`} value=${asked[name] || ""} onInput=${(event) => change({ [name]: event.target.value })}></input></label>`;
}

// columns: { name, title, right, text(row), show(row), by(row), about }. Sorted by the address.
export function Table({ columns, rows, id, empty, label, choose, chosen, max = 300, sortable = true }) {
  const { asked } = useAddress();
  const [by, isDown] = (asked[`${id}.by`] || "").split(" ");
  const column = columns.find((one) => one.name === by);
  const sorted = useMemo(() => {
    if (!column) return rows;
    const value = column.by || ((row) => row[column.name]);
    const order = isDown ? -1 : 1;
    return [...rows].sort((a, b) => order * compared(value(a), value(b)));
  }, [rows, by, isDown]);
  if (!rows.length) return html`<${Nothing}>${empty}</${Nothing}>`;
  const sort = (one) => change({ [`${id}.by`]: by !== one.name ? one.name : isDown ? "" : `${one.name} down` });
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${label}><table>
    <thead><tr>${columns.map((one) => html`<th scope="col" key=${one.name} class=${one.right ? "right" : ""} title=${one.about}
      aria-sort=${by === one.name ? (isDown ? "descending" : "ascending") : undefined}>
      ${!one.title ? html`<span class="hidden">commands</span>` : sortable ? html`<button onClick=${() => sort(one)}>${one.title}<span class="arrow" aria-hidden="true">${by === one.name ? (isDown ? "↓" : "↑") : ""}</span></button>` : one.title}</th>`)}</tr></thead>
    <tbody>${sorted.slice(0, max).map((row) => html`<${Row} key=${row.key} row=${row} columns=${columns} choose=${choose} isChosen=${choose && chosen === row.key}></${Row}>`)}</tbody>
  </table></div>
  ${rows.length > max && html`<p class="faint">${max} of ${rows.length} are shown: filter for the others.</p>`}`;
}

function Row({ row, columns, choose, isChosen }) {
  const cells = columns.map((one, i) => {
    const shown = one.show ? one.show(row) : row[one.name] ?? DASH;
    const kind = one.right ? "right" : "";
    if (i === 0 && choose) return html`<th scope="row" key=${one.name} class=${kind}><button class="link" aria-expanded=${isChosen} onClick=${() => choose(row.key)}>${shown}</button></th>`;
    return i === 0
      ? html`<th scope="row" key=${one.name} class=${kind}>${shown}</th>`
      : html`<td key=${one.name} class=${kind}>${shown}</td>`;
  });
  return html`<tr class=${isChosen ? "chosen" : ""}>${cells}</tr>`;
}

function compared(a, b) {
  if (a == null || b == null) return (a == null) - (b == null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

// A command that changes something: asked for a reason, and said back.
export function Command({ title, about, names = {}, command, post, close }) {
  const dialog = useRef();
  const [values, setValues] = useState({ reason: "", ...Object.fromEntries(Object.keys(names).map((name) => [name, names[name][0] ?? ""])) });
  const [state, setState] = useState({ isBusy: false, problem: "", done: "" });
  useEffect(() => dialog.current.showModal(), []);
  const set = (name) => (event) => setValues({ ...values, [name]: event.target.value });
  const send = async (event) => {
    event.preventDefault();
    setState({ isBusy: true, problem: "", done: "" });
    try {
      const said = await post("command", { ...command, ...values });
      setState({ isBusy: false, problem: "", done: said.version == null ? said.done : `${said.done} (version ${said.version})` });
    } catch (error) {
      setState({ isBusy: false, problem: error.message, done: "" });
    }
  };
  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="command-title"><form onSubmit=${send}>
    <h2 id="command-title">${title}</h2><p>${about}</p>
    ${Object.entries(names).map(([name, choices]) => html`<label key=${name}>${name}<select value=${values[name]} onChange=${set(name)}>${choices.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>`)}
    <label>reason <span class="faint">for other operators</span><input required maxlength="150" value=${values.reason} onInput=${set("reason")}></input></label>
    <p role="status" class=${state.problem ? "problem" : ""}>${state.problem || state.done || (state.isBusy ? "waiting for the cluster …" : "\u00a0")}</p>
    <p class="buttons"><button type="button" class="quiet" onClick=${() => dialog.current.close()}>${state.done ? "Close" : "Cancel"}</button>
    ${!state.done && html`<button class="primary" disabled=${state.isBusy}>${title}</button>`}</p></form></dialog>`;
}
