import { html } from "../h.js";
import { useAsked } from "../live.js";
import { Elsewhere, Filter, Nothing, Section, Table } from "../parts.js";

// The settings in force, a row each: workers that agree share one.
export function Settings({ asked, isPaused }) {
  const { value, problem } = useAsked("settings", {}, 10000, isPaused);
  const wanted = (asked.q || "").toLowerCase();
  const rows = value ? together(value.processes).filter((one) => !wanted || `${one.name} ${one.value} ${one.origin} ${one.who}`.toLowerCase().includes(wanted)) : [];
  return html`<${Section} title="Settings" id="settings" more="in force, with their origins; secrets are hidden">
    <div class="tools"><${Filter} label="Filter: name, value, origin, process"></${Filter}></div>
    ${problem && html`<p class="problem" role="status">${problem}</p>`}
    ${!value ? !problem && html`<${Nothing}>Loading settings …</${Nothing}>` : html`<${Table} id="f" label="Settings" rows=${rows} empty="No setting matches." columns=${[
      { name: "name", title: "setting" }, { name: "value", title: "value", show: (one) => html`<code class="wrapped">${one.value}</code>` },
      { name: "origin", title: "from" }, { name: "who", title: "process" }]}></${Table}>`}
  </${Section}><${Elsewhere} json="/api/settings"></${Elsewhere}>`;
}

function together(processes) {
  const found = new Map();
  for (const { process, settings } of processes)
    for (const one of settings) {
      const key = JSON.stringify([process === "coordinator", one.name, one.value, one.origin]);
      found.set(key, { ...one, key, who: [...(found.get(key)?.who || []), process] });
    }
  return [...found.values()].map((one) => ({ ...one, who: one.who.join(", ") })).sort((a, b) => a.name.localeCompare(b.name, "en") || a.who.localeCompare(b.who, "en"));
}
