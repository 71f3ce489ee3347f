import { bytes, count, DASH, many, rate, seconds } from "../format.js";
import { html } from "../h.js";
import { Elsewhere, Filter, Nothing, Section, State, Table } from "../parts.js";
import { change } from "../address.js";

export function Partitions({ snapshot, asked, may, say }) {
  const all = (snapshot.partitions || []).map((one) => ({ key: String(one.partition), ...one }));
  const wanted = (asked.q || "").toLowerCase();
  const rows = all.filter((one) => !wanted || `${one.partition} ${one.stage} ${one.owner} ${one.waiting_for}`.toLowerCase().includes(wanted));
  const chosen = all.find((one) => one.key === asked.partition);
  const columns = [
    { name: "partition", title: "partition", right: true },
    { name: "stage", title: "stage", show: (one) => html`${one.stage}<span class="faint"> ${one.number}</span>` },
    { name: "owner", title: "owner", show: (one) => one.owner ? html`${one.owner}${one.pinned ? html`<span class="tag">pinned</span>` : ""}` : html`<${State} level="bad">no owner</${State}>` },
    { name: "state", title: "state", by: (one) => stateOf(one)[1], show: (one) => html`<${State} level=${stateOf(one)[0]}>${stateOf(one)[1]}</${State}>` },
    { name: "rate_in", title: "events in", right: true, show: (one) => rate(one.rate_in) },
    { name: "rate_out", title: "rows out", right: true, show: (one) => rate(one.rate_out) },
    { name: "lag_s", title: "lag", right: true, about: "How far the watermark of the views is behind the clock", show: (one) => seconds(one.lag_s) },
    { name: "commit_age_s", title: "commit", right: true, about: "Since the last commit", show: (one) => seconds(one.commit_age_s) },
    { name: "checkpoint_age_s", title: "checkpoint", right: true, about: "Since the last checkpoint was stored", show: (one) => seconds(one.checkpoint_age_s) },
    { name: "debt", title: "to replay", right: true, about: "Committed, and in no checkpoint", show: (one) => count(one.debt) },
    { name: "waiting_for", title: "waiting for", show: (one) => one.waiting_for || html`<span class="faint">nothing</span>` },
  ];
  return html`
    <${Section} title="Partitions" id="partitions" more=${`${many(all.length, "partition")}, version ${snapshot.version ?? DASH} of the assignment`}>
      <div class="tools"><${Filter} label="Filter: owner, stage, reason for waiting"></${Filter}></div>
      <${Table} id="p" label="Partitions" columns=${columns} rows=${rows} chosen=${asked.partition} choose=${(key) => change({ partition: key === asked.partition ? "" : key })} empty=${all.length ? "No partition matches." : "No partitions yet: no worker has joined."}></${Table}>
    </${Section}>
    ${chosen && html`<${One} one=${chosen} snapshot=${snapshot} may=${may} say=${say}></${One}>`}
    <${Skew} rows=${all}></${Skew}>
    <${Elsewhere} json="/api/snapshot" command=${snapshot.kind === "cluster" ? "ripple status --partitions --json" : null}></${Elsewhere}>`;
}

export function stateOf(one) {
  if (!one.owner) return ["bad", "unowned"];
  if (one.recovery_remaining) return ["warn", "replaying"];
  if (one.live == null) return ["none", "unknown"];
  return one.live ? ["good", "live"] : ["warn", "restoring"];
}

function One({ one, snapshot, may, say }) {
  const workers = (snapshot.workers || []).map((each) => each.id).filter((id) => id !== one.worker);
  const partition = one.partition;
  const facts = [
    ["owner", one.owner || "none"], ["owner since", `version ${one.since ?? DASH}`], ["epoch", count(one.epoch)], ["standby", one.standby || "none"],
    ["events applied here", count(one.events)], ["rows written here", count(one.rows_out)],
    ["watermark behind the clock", seconds(one.lag_s)], ["last commit", `${seconds(one.commit_age_s)} ago`],
    ["last checkpoint", `${seconds(one.checkpoint_age_s)} ago, ${bytes(one.checkpoint_bytes)}`], ["to replay after a crash", `${count(one.debt)} events`],
    ["last recovery took", seconds(one.recovery_s)], ["recovery still to go", one.recovery_remaining ? `${count(one.recovery_remaining)} events${one.rate_in ? `, ${seconds(one.recovery_remaining / one.rate_in)}` : ""}` : "nothing"],
  ];
  return html`<${Section} title=${`Partition ${partition}`} id="one" more=${`${one.stage}, number ${one.number}`}>
    <dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${may("operate") && snapshot.kind === "cluster" && html`<p class="buttons left">
      <button class="quiet" disabled=${!workers.length} onClick=${() => say({ title: "Move", about: `Partition ${partition} moves from ${one.worker}. Its next owner follows it first; another may come back for balance.`, names: { worker: workers }, command: { command: "move", partition } })}>Move …</button>
      ${one.pinned ? html`<button class="quiet" onClick=${() => say({ title: "Unpin", about: `Partition ${partition} may be balanced again.`, command: { command: "unpin", partition } })}>Unpin …</button>`
        : html`<button class="quiet" onClick=${() => say({ title: "Pin", about: `Partition ${partition} stays for as long as the worker is there.`, names: { worker: [one.worker, ...workers].filter(Boolean) }, command: { command: "pin", partition } })}>Pin …</button>`}</p>`}
  </${Section}>`;
}

export function skewOf(rows) {
  const stages = new Map();
  for (const one of rows) stages.set(one.stage, [...(stages.get(one.stage) || []), one]);
  return [...stages].map(([stage, members]) => {
    const rates = members.map((one) => one.rate_in).filter((one) => one != null);
    const total = rates.reduce((sum, one) => sum + one, 0);
    const most = members.reduce((a, b) => ((b.rate_in ?? -1) > (a.rate_in ?? -1) ? b : a));
    return { key: stage, stage, count: members.length, rate: rates.length ? total : null, skew: total > 0 ? (most.rate_in * rates.length) / total : null, most: most.rate_in ? most.partition : null,
      lag: members.reduce((worst, one) => (one.lag_s > (worst ?? -1) ? one.lag_s : worst), null) };
  });
}

function Skew({ rows }) {
  if (!rows.length) return html`<${Nothing}></${Nothing}>`;
  return html`<${Section} title="Skew" id="skew" more="of the busiest partition to the mean of its stage: 1 is even">
    <${Table} id="s" label="Skew by stage" rows=${skewOf(rows)} columns=${[
      { name: "stage", title: "stage" }, { name: "count", title: "partitions", right: true },
      { name: "rate", title: "events in", right: true, show: (one) => rate(one.rate) },
      { name: "skew", title: "skew", right: true, show: (one) => (one.skew == null ? DASH : one.skew.toFixed(2)) },
      { name: "most", title: "busiest", right: true, show: (one) => (one.most == null ? DASH : `partition ${one.most}`) },
      { name: "lag", title: "largest lag", right: true, show: (one) => seconds(one.lag) }]}></${Table}></${Section}>`;
}
