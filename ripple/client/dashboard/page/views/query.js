import { count, many } from "../format.js";
import { html, useRef, useState } from "../h.js";
import { post, useAsked } from "../live.js";
import { Copied, Nothing, Section, Table } from "../parts.js";
import { change } from "../address.js";

export function Query({ asked, isPaused }) {
  const { value: known } = useAsked("outputs", {}, 5000, isPaused);
  const names = known?.outputs.map((one) => one.name) || [];
  const sql = asked.sql ?? (names.length ? `SELECT * FROM "${names[0]}" LIMIT 20` : "");
  const [state, setState] = useState({ isBusy: false, problem: "", value: null });
  const newest = useRef(0);
  const send = async (event) => {
    event?.preventDefault();
    const number = ++newest.current, began = performance.now();
    setState((now) => ({ ...now, isBusy: true, problem: "" }));
    const done = (said) => number === newest.current && setState({ isBusy: false, problem: "", value: null, ...said });
    await post("query", { sql }).then((value) => done({ value, ms: performance.now() - began }), (error) => done({ problem: error.message }));
  };
  const pressed = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
  };
  const { value } = state;
  return html`
    <${Section} title="Query" id="query" more="read-only SQL over the current outputs, each partition at its own cut">
      <form class="question" onSubmit=${send}>
        <label><span class="hidden">Statement</span><textarea data-filter rows="4" spellcheck="false" autocomplete="off" placeholder="SELECT …" value=${sql} onKeyDown=${pressed} onInput=${(event) => change({ sql: event.target.value })}></textarea></label>
        <div class="tools"><button class="primary" disabled=${state.isBusy || !sql.trim()}>${state.isBusy ? "Running …" : "Run query"}</button><kbd>Ctrl ⏎</kbd>
          <span class="grow"></span>${names.map((name) => html`<button type="button" key=${name} class="quiet" onClick=${() => change({ sql: `SELECT * FROM "${name}" LIMIT 20` })}>${name}</button>`)}</div>
      </form>
      ${state.problem && html`<p class="problem" role="alert">${state.problem}</p>`}
      ${value && html`<${Answer} value=${value} ms=${state.ms}></${Answer}>`}
    </${Section}>
    <footer class="elsewhere"><span class="faint">Also as:</span><${Copied} text=${`ripple query '${sql.replaceAll("'", `'"'"'`)}'`}></${Copied}></footer>`;
}

function Answer({ value, ms }) {
  const columns = value.columns.map((one, i) => ({ name: `${i}`, title: one.name, about: one.type, right: one.is_number, by: (row) => (one.is_number ? Number(row.cells[i]) : row.cells[i]), show: (row) => row.cells[i] ?? html`<span class="faint">null</span>` }));
  return html`<p class="faint" role="status">${many(value.rows.length, "row")}${value.is_cut ? " and more" : ""} · ${count(ms)} ms${value.missing.length ? html` · <span class="problem">rows of ${value.missing.join(", ")} are missing</span>` : ""}</p>
    ${value.rows.length ? html`<${Table} id="s" label="Result" columns=${columns} max=${1000} rows=${value.rows.map((cells, i) => ({ key: i, cells }))} empty=""></${Table}>` : html`<${Nothing}>No row matches.</${Nothing}>`}
    <details class="fold"><summary>Cuts</summary><ul class="code">${value.cuts.map((one) => html`<li key=${`${one.output}/${one.partition}`}><code>${one.output}/${one.partition}: ${Object.entries(one.cut).map(([name, offset]) => `${name} ${offset}`).join(", ")} (epoch ${one.epoch})</code></li>`)}</ul></details>`;
}
