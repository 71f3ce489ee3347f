import { Chart } from "../chart.js";
import { bytes, clock, count, DASH, many, moment, percent, rate, seconds } from "../format.js";
import { html } from "../h.js";
import { useAsked } from "../live.js";
import { change } from "../address.js";
import { Bar, Elsewhere, Figure, Nothing, Section, State, Table } from "../parts.js";

const STANDINGS = { active: "good", suspected: "warn", dead: "bad" };
const LEVELS = { normal: "good", warn: "warn", slow: "warn", pause: "bad" };

// A lag of more than a day is the age of the data.
const HISTORIC_S = 86400;
// Spans of charts in seconds; 0 is all that the server has.
const SPANS = { "5m": ["5 min", 300], "1h": ["1 h", 3600], all: ["All", 0] };

export function Overview({ snapshot, history, asked, may, say, isPaused }) {
  const { totals } = snapshot;
  const chosen = SPANS[asked.span] ? asked.span : "5m";
  const span = SPANS[chosen][1];
  return html`
    <${Verdict} snapshot=${snapshot} asked=${asked} may=${may} say=${say}></${Verdict}>
    ${totals && html`<dl class="figures">
      <${Figure} name="Events in" value=${rate(totals.rate_in)} more=${`${count(totals.events.applied)} applied`}></${Figure}>
      <${Figure} name="Rows out" value=${rate(totals.rate_out)} more=${`cutoffs ${rate(totals.cutoff_rate)}`}></${Figure}>
      <${Figure} name="Event-time lag" value=${seconds(totals.lag_s)} more=${totals.lag_s > HISTORIC_S ? "historic data, or old events" : `median ${seconds(totals.lag_median_s)}`}></${Figure}>
      <${Figure} name="Oldest commit" value=${seconds(totals.commit_age_s)} more=${`${count(totals.commits)} commits`}></${Figure}>
      <${Figure} name="Oldest checkpoint" value=${seconds(totals.checkpoint_age_s)} more=${`${count(totals.debt)} events to replay`}></${Figure}>
      <${Figure} name="Dead letters" value=${count(totals.events.dead_lettered)} more=${`${count(totals.events.very_late)} very late`}></${Figure}>
    </dl>
    <div class="tools spans"><div class="segments" role="group" aria-label="Time of the charts">${Object.entries(SPANS).map(([key, [title]]) => html`<button key=${key} aria-pressed=${chosen === key} onClick=${() => change({ span: key === "5m" ? "" : key })}>${title}</button>`)}</div>
      <span class="faint">measured while somebody looks; otherwise a gap</span></div>
    <div class="two">
      <${Section} title="Throughput" id="throughput"><${Chart} history=${history} span=${span} show=${rate} label="Events in and rows out, a second" series=${[{ name: "rate_in", label: "events in" }, { name: "rate_out", label: "rows out" }]}></${Chart}></${Section}>
      <${Section} title="Event-time lag" id="lag"><${Chart} history=${history} span=${span} show=${seconds} label="How far results are behind the clock" series=${[{ name: "lag_s", label: "largest" }, { name: "lag_median_s", label: "median" }]}></${Chart}></${Section}>
    </div>`}
    ${snapshot.workers && html`<${Workers} snapshot=${snapshot} asked=${asked} may=${may} say=${say}></${Workers}>`}
    ${asked.worker && snapshot.workers && html`<${WorkerLog} key=${asked.worker} worker=${asked.worker} snapshot=${snapshot} isPaused=${isPaused}></${WorkerLog}>`}
    <div class="two">
      ${snapshot.bottlenecks && html`<${Bottlenecks} found=${snapshot.bottlenecks}></${Bottlenecks}>`}
      <${Timeline} entries=${snapshot.timeline}></${Timeline}>
    </div>
    <${Elsewhere} json="/api/snapshot" command=${snapshot.kind === "cluster" ? "ripple status --partitions" : null}></${Elsewhere}>`;
}

function Verdict({ snapshot, asked, may, say }) {
  const { verdict, problems = [] } = snapshot;
  const others = problems.filter((one) => one !== verdict.cause);
  const freeze = snapshot.frozen
    ? { title: "Unfreeze", about: "The cluster resumes: workers join, are evicted and get partitions.", command: { command: "unfreeze" } }
    : { title: "Freeze", about: "Until it is unfrozen, no partition moves, and no worker joins or is evicted.", command: { command: "freeze" } };
  return html`<section class=${`verdict ${verdict.level}`} aria-label="Health">
    <div><p class="sentence"><${State} level=${verdict.level}>${verdict.text}</${State}></p>
    ${verdict.cause && html`<p class="cause">${verdict.cause}</p>`}
    ${(snapshot.alerts || []).length > 0 && html`<ul class="alerts" aria-label="Alerts">${snapshot.alerts.map((one) => html`<li key=${`${one.worker} ${one.name}`}><${State} level=${one.severity === "critical" ? "bad" : "warn"}><button class="link" aria-expanded=${asked.alert === one.name} title="What to do" onClick=${() => change({ alert: asked.alert === one.name ? "" : one.name })}>${one.name}</button></${State}> <span>${one.worker}: ${one.cause}; for ${seconds(one.seconds)}</span></li>`)}</ul>`}
    ${asked.alert && html`<${Runbook} key=${asked.alert} alert=${asked.alert}></${Runbook}>`}
    ${others.length > 0 && html`<ul class="problems">${others.map((one) => html`<li key=${one}>${one}</li>`)}</ul>`}</div>
    ${snapshot.kind === "cluster" && may("administer") && html`<button class="quiet" onClick=${() => say(freeze)}>${freeze.title} …</button>`}
  </section>`;
}

// What to do about an alert, as docs/operations.md says it; code is between backticks.
function Runbook({ alert }) {
  const { value, problem } = useAsked("runbook", { alert }, 0);
  const text = value ? value.text || "Nothing is written about it." : problem || "…";
  return html`<div class="runbook" role="status"><p><b>${alert}: what to do</b></p><p>${text.split("`").map((part, i) => (i % 2 ? html`<code key=${i}>${part}</code>` : part))}</p></div>`;
}

// Of a worker that has left, too: its lines are kept.
function WorkerLog({ worker, snapshot, isPaused }) {
  const { value, problem } = useAsked("lines", { worker }, 2000, isPaused);
  const one = snapshot.workers.find((each) => each.id === worker);
  const restarts = one?.restarts == null ? "" : `${many(one.restarts, "restart")} of its processes · `;
  const lines = value?.lines || [];
  return html`<${Section} title=${`Log of ${worker}`} id="log" more=${`${restarts}warnings and errors, UTC, newest first, since this coordinator runs`}>
    ${problem && html`<p class="problem" role="status">${problem}</p>`}
    <${Table} id="l" label=${`Log of ${worker}`} sortable=${false} rows=${lines.map((line) => ({ key: `${line.process} ${line.number} ${line.time_ms}`, ...line }))} empty=${value ? "No warnings and no errors." : "Loading …"} columns=${[
      { name: "time_ms", title: "time", show: (line) => moment(line.time_ms) },
      { name: "level", title: "level", show: (line) => html`<${State} level=${line.level === "error" ? "bad" : "warn"}>${line.level}</${State}>` },
      { name: "process", title: "process", show: (line) => line.process || worker },
      { name: "text", title: "line", show: (line) => html`<span class="wrapped">${line.text}</span>` }]}></${Table}>
  </${Section}>`;
}

function Workers({ snapshot, asked, may, say }) {
  const moves = snapshot.moves || [];
  const rows = snapshot.workers.map((one) => ({ key: one.id, ...one }));
  const doing = (one) => {
    if (one.standing !== "active") return `a heartbeat, for ${seconds(one.silent_ms / 1000)}`;
    const leaving = moves.filter((move) => move.source.split("/")[0] === one.id).length;
    if (one.leaving) return leaving ? `${many(leaving, "partition")} to move away` : "to end: it is drained";
    if (one.level === "slow" || one.level === "pause") return `${one.queue} to empty`;
    return "";
  };
  const columns = [
    { name: "id", title: "worker" },
    { name: "standing", title: "status", show: (one) => html`<${State} level=${STANDINGS[one.standing] || "none"}>${one.standing}${one.leaving ? ", leaving" : ""}</${State}>` },
    { name: "partitions", title: "partitions", right: true },
    { name: "load", title: "load", show: (one) => html`<${Bar} value=${one.load} level=${one.load > 0.9 ? "warn" : "accent"} label=${percent(one.load)}></${Bar}>` },
    { name: "fill", title: "fullest queue", show: (one) => html`<${Bar} value=${one.fill} level=${LEVELS[one.level] === "good" ? "accent" : LEVELS[one.level]} label=${one.fill ? `${one.queue} ${percent(one.fill)}` : "empty"}></${Bar}>` },
    { name: "restarts", title: "restarts", right: true, about: "Of its processes; the log is behind the name", show: (one) => count(one.restarts) },
    { name: "memory_bytes", title: "memory", right: true, show: (one) => bytes(one.memory_bytes) },
    { name: "silent_ms", title: "last heartbeat", right: true, show: (one) => html`${seconds(one.silent_ms / 1000)} ago` },
    { name: "waiting", title: "waiting for", by: doing, show: (one) => doing(one) || html`<span class="faint">nothing</span>` },
  ];
  if (may("operate") && snapshot.kind === "cluster")
    columns.push({ name: "do", title: "", show: (one) => html`<button class="quiet" onClick=${() => say(one.leaving
      ? { title: "Undrain", about: `${one.id} may own partitions again.`, command: { command: "undrain", worker: one.id } }
      : { title: "Drain", about: `The partitions of ${one.id} move away, and it gets no more. It stays.`, command: { command: "drain", worker: one.id } })}>${one.leaving ? "Undrain" : "Drain"} …</button>` });
  return html`<${Section} title="Workers" id="workers" more=${`version ${snapshot.version}: ${snapshot.cause}`}>
    <${Table} id="w" label="Workers" columns=${columns} rows=${rows} chosen=${asked.worker} choose=${(id) => change({ worker: id === asked.worker ? "" : id })} empty=${`${snapshot.version ? "All workers have left" : "No worker has joined yet"}. ripple-worker starts one.`}></${Table}>
    ${moves.length > 0 && html`<h3>Moves</h3><${Table} id="m" label="Moves" rows=${moves.map((one) => ({ key: one.partition, ...one }))} columns=${[
      { name: "partition", title: "partition" }, { name: "source", title: "from" }, { name: "target", title: "to" }, { name: "phase", title: "phase" },
      { name: "times_near", title: "caught-up checks", right: true }]}></${Table}>`}
    ${snapshot.waiting?.length > 0 && html`<h3>Waiting to join</h3><${Table} id="j" label="Waiting to join" rows=${snapshot.waiting.map((one) => ({ key: one.worker, ...one }))} columns=${[{ name: "worker", title: "worker" }, { name: "why", title: "waiting for" }]}></${Table}>`}
    ${snapshot.pins?.length > 0 && html`<h3>Pinned</h3><${Table} id="i" label="Pins" rows=${snapshot.pins.map((one) => ({ key: one.partition, ...one }))} columns=${[{ name: "partition", title: "partition" }, { name: "worker", title: "to" }, { name: "reason", title: "why" }]}></${Table}>`}
  </${Section}>`;
}

export function Bottlenecks({ found }) {
  return html`<${Section} title="Bottlenecks" id="bottlenecks" more="worst first">
    ${found.length === 0 ? html`<${Nothing}>None: no queue is above a fifth, no process is busy all the time.</${Nothing}>`
      : html`<ol class="ranked">${found.map((one) => html`<li key=${one.where}><div class="line"><b>${one.where}</b><${Bar} value=${one.share} level=${one.share > 0.8 ? "warn" : "accent"} label=${percent(one.share)}></${Bar}></div>
        <p class="faint">${one.cause}; for ${seconds(one.for_s)}</p></li>`)}</ol>`}
  </${Section}>`;
}

function Timeline({ entries = [] }) {
  return html`<${Section} title="Events" id="timeline" more="UTC, newest first">
    ${entries.length === 0 ? html`<${Nothing}>Nothing yet.</${Nothing}>`
      : html`<ol class="timeline" tabindex="0" aria-label="Events">${entries.slice(0, 40).map((one) => html`<li key=${`${one.time_ms} ${one.what}`}><time>${one.time_ms ? clock(one.time_ms) : DASH}</time><span>${one.what}</span></li>`)}</ol>`}
  </${Section}>`;
}
