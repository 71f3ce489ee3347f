import { bytes, count, DASH, many, moment, seconds } from "../format.js";
import { html } from "../h.js";
import { useAsked } from "../live.js";
import { Elsewhere, Figure, Filter, Nothing, Section, State, Table } from "../parts.js";
import { change } from "../address.js";

export function Checkpoints({ snapshot, asked, isPaused }) {
  const { value, problem } = useAsked("checkpoints", {}, 5000, isPaused);
  if (!value) return html`<${Section} title="Checkpoints" id="checkpoints"><${Nothing}>${problem || "Reading the store …"}</${Nothing}></${Section}>`;
  const all = value.checkpoints.map((one) => ({ key: `${one.pipeline}/${one.partition}/${one.name || "damaged"}`, ...one }));
  const newest = all.filter((one) => one.is_newest);
  const damaged = all.filter((one) => one.damage);
  const wanted = (asked.q || "").toLowerCase();
  const shown = (asked.all ? all : newest).filter((one) => !one.damage && (!wanted || `${one.partition} ${one.pipeline} ${one.name}`.toLowerCase().includes(wanted)));
  const chosen = all.find((one) => one.key === asked.checkpoint);
  const columns = [
    { name: "partition", title: "partition", by: (one) => `${one.pipeline}/${one.partition}`, show: (one) => `${one.pipeline}/${one.partition}` },
    { name: "name", title: "name", show: (one) => html`<code>${one.name}</code>${one.is_newest && asked.all ? html`<span class="tag">newest</span>` : ""}` },
    { name: "age_s", title: "age", right: true, show: (one) => seconds(one.age_s) },
    { name: "written_ms", title: "written, UTC", show: (one) => moment(one.written_ms) },
    { name: "bytes", title: "size", right: true, show: (one) => bytes(one.bytes) },
    { name: "rows", title: "rows", right: true, show: (one) => count(one.rows) },
    { name: "chain", title: "builds on", right: true, about: "Number of earlier checkpoints that it needs", show: (one) => (one.chain ? many(one.chain, "other") : "nothing") },
    { name: "epoch", title: "epoch", right: true, show: (one) => count(one.epoch) },
  ];
  const total = all.reduce((sum, one) => sum + (one.bytes || 0), 0);
  const oldest = newest.reduce((worst, one) => Math.max(worst, one.age_s), -1);
  return html`
    <dl class="figures">
      <${Figure} name="Partitions with state" value=${count(newest.length)} more=${`of ${count(snapshot.partitions?.length)}`}></${Figure}>
      <${Figure} name="Checkpoints" value=${count(all.length - damaged.length)} more=${bytes(total)}></${Figure}>
      <${Figure} name="Stalest latest checkpoint" value=${oldest < 0 ? DASH : seconds(oldest)} more="since it was written"></${Figure}>
      <${Figure} name="To replay" value=${count(snapshot.totals?.debt)} more="events, if all crashed now"></${Figure}>
      <${Figure} name="Failed to store" value=${count(snapshot.totals?.checkpoint_failures ?? null)} more="failures since processes started"></${Figure}>
      <${Figure} name="Digest mismatches" value=${count(snapshot.totals?.digest_mismatches ?? null)} more="on restore"></${Figure}>
    </dl>
    ${damaged.map((one) => html`<p key=${one.key} class="problem"><${State} level="bad">${one.pipeline}/${one.partition}: ${one.damage}</${State}></p>`)}
    <${Section} title="Checkpoints" id="checkpoints" more=${value && problem ? problem : `in ${snapshot.store || "the store"}`}>
      <div class="tools"><${Filter} label="Filter: partition, name"></${Filter}>
        <label class="check"><input type="checkbox" checked=${!!asked.all} onChange=${(event) => change({ all: event.target.checked ? "1" : "" })}></input> show older</label></div>
      <${Table} id="c" label="Checkpoints" columns=${columns} rows=${shown} chosen=${asked.checkpoint} choose=${(key) => change({ checkpoint: key === asked.checkpoint ? "" : key })}
        empty=${all.length ? "No checkpoint matches." : "No checkpoint has been stored yet. Until one is, a recovery reads the input from its first record."}></${Table}>
    </${Section}>
    ${chosen && html`<${One} one=${chosen}></${One}>`}
    <${Elsewhere} json="/api/checkpoints" command=${`ripple checkpoint list --dir ${snapshot.store || "DIR"}`}></${Elsewhere}>`;
}

function One({ one }) {
  const cut = Object.entries(one.cut);
  return html`<${Section} title=${one.name} id="one" more=${`${one.pipeline}/${one.partition}, written ${moment(one.written_ms)} UTC`}>
    <dl class="facts"><div><dt>topology</dt><dd><code>${one.topology}</code></dd></div>
      <div><dt>base</dt><dd>${one.base ? html`<code>${one.base}</code>` : "none: it is whole"}</dd></div>
      ${Object.entries(one.digests).map(([name, digest]) => html`<div key=${name}><dt>digest of ${name}</dt><dd><code>${digest}</code></dd></div>`)}</dl>
    <h3>Its cut</h3>
    <${Table} id="k" label="Cut" sortable=${false} rows=${cut.map(([name, offset]) => ({ key: name, name, offset, watermark: one.watermarks_ns[name] }))} columns=${[
      { name: "name", title: "input" }, { name: "offset", title: "next offset", right: true, show: (row) => count(Number(row.offset)) },
      { name: "watermark", title: "watermark, UTC", show: (row) => watermark(row.watermark) }]}></${Table}>
  </${Section}>`;
}

function watermark(text) {
  if (text == null) return DASH;
  const ns = BigInt(text);
  if (ns > 1n << 62n || ns < -(1n << 62n)) return "none yet";
  return `${moment(Number(ns / 1000000n))}.${String(((ns % 1000000000n) + 1000000000n) % 1000000000n).padStart(9, "0")}`;
}
