import { count, many, moment, percent, rate } from "../format.js";
import { html } from "../h.js";
import { useAsked } from "../live.js";
import { Bar, Copied, Elsewhere, Figure, Filter, Nothing, Section, State, Table } from "../parts.js";
import { change } from "../address.js";

export function Letters({ snapshot, asked, isPaused, may, say }) {
  const { value, problem } = useAsked("letters", { cause: asked.cause || "" }, 5000, isPaused);
  const events = snapshot.totals?.events;
  const consumed = events ? events.applied + events.very_late + events.dead_lettered : null;
  const wanted = (asked.q || "").toLowerCase();
  const letters = (value?.letters || []).map((one) => ({ key: `${one.partition}/${one.input}/${one.offset}`, ...one }))
    .filter((one) => !wanted || `${one.partition} ${one.cause} ${one.raw}`.toLowerCase().includes(wanted));
  const chosen = letters.find((one) => one.key === asked.letter);
  return html`
    <dl class="figures">
      <${Figure} name="Consumed" value=${count(consumed)} more="since processes started"></${Figure}>
      <${Figure} name="Applied" value=${count(events?.applied)} more=${`${count(snapshot.totals?.mildly_late)} mildly late`}></${Figure}>
      <${Figure} name="Very late" value=${count(events?.very_late)} more=${share(events?.very_late, consumed)}></${Figure}>
      <${Figure} name="Dead-lettered" value=${count(events?.dead_lettered)} more=${share(events?.dead_lettered, consumed)}></${Figure}>
      <${Figure} name="Lately" value=${rate(snapshot.totals?.letter_rate)} more="dead letters"></${Figure}>
      <${Figure} name="Stored" value=${count(value?.total)} more="dead letters in the store"></${Figure}>
    </dl>
    ${consumed != null && html`<p class="equation faint">${count(consumed)} consumed = ${count(events.applied)} applied + ${count(events.very_late)} very late + ${count(events.dead_lettered)} dead letters</p>`}
    ${(value?.damage || []).map((one) => html`<p key=${one} class="problem"><${State} level="bad">${one}: its dead letters are not listed</${State}></p>`)}
    <${Section} title="Causes" id="causes" more="of stored dead letters; select one to see its records">
      ${!value ? html`<${Nothing}>${problem || "Reading the store …"}</${Nothing}>` : value.causes.length === 0 ? html`<${Nothing}>${value.damage.length ? "No dead letter can be read." : "No record was rejected."}</${Nothing}>`
        : html`<ol class="ranked">${value.causes.map((one) => html`<li key=${one.cause}><div class="line">
          <button class="link" aria-pressed=${asked.cause === one.cause} onClick=${() => change({ cause: asked.cause === one.cause ? "" : one.cause })}>${one.cause}</button>
          <${Bar} value=${one.count / value.total} label=${`${count(one.count)}, ${percent(one.count / value.total)}`}></${Bar}></div></li>`)}</ol>`}
    </${Section}>
    <${Section} title="Dead letters" id="letters" more=${value ? `the newest ${count(letters.length)} of ${count(value.chosen)}${asked.cause ? ` of this cause` : ""}` : ""}>
      <div class="tools"><${Filter} label="Filter: record, cause, partition"></${Filter}>${asked.cause && html`<button class="quiet" onClick=${() => change({ cause: "" })}>All causes</button>`}</div>
      <${Table} id="l" label="Dead letters" rows=${letters} chosen=${asked.letter} choose=${(key) => change({ letter: key === asked.letter ? "" : key })} empty=${value?.total ? "No dead letter matches." : "No dead letters: every record was accepted."} columns=${[
        { name: "offset", title: "offset", right: true, by: (one) => Number(one.offset), show: (one) => count(Number(one.offset)) },
        { name: "input", title: "input" },
        { name: "partition", title: "partition", right: true },
        { name: "written_ms", title: "written, UTC", show: (one) => moment(one.written_ms) },
        { name: "cause", title: "cause" },
        { name: "raw", title: "record", show: (one) => html`<code class="raw">${one.raw}</code>` }]}></${Table}>
    </${Section}>
    ${chosen && html`<${One} one=${chosen} kept=${value} may=${may} say=${say}></${One}>`}
    <${Elsewhere} json="/api/letters" command=${`ripple dead-letter list --checkpoint-dir ${value?.store || "DIR"}`}></${Elsewhere}>`;
}

function share(part, whole) {
  return whole ? `${((100 * part) / whole).toFixed(2)} % of all` : "\u00a0";
}

// The page says what the command says; the coordinator runs that same command.
function retrying(one, kept, say) {
  const command = { command: "retry", pipeline: one.pipeline, partition: one.partition, input: one.input };
  const where = `to ${kept.retry_source}, each once; retried records are skipped.`;
  return {
    one: () => say({ title: "Retry", about: `Appends this record ${where}`, command: { ...command, offset: one.offset } }),
    all: () => say({ title: "Retry all", about: `Appends all records of partition ${one.partition} that were rejected as “${one.cause}” ${where}`, command: { ...command, cause: one.cause } }),
  };
}

function One({ one, kept, may, say }) {
  const { store, retry_source: source } = kept;
  const does = retrying(one, kept, say);
  return html`<${Section} title=${`Offset ${count(Number(one.offset))} of ${one.input}`} id="one" more=${one.cause}>
    <pre tabindex="0" aria-label="The record">${one.raw}</pre>
    ${one.can_be_retried
      ? html`<p>Fixed the cause? ${may("operate") && source ? "Retrying" : "This"} appends the record to a topic again, once:</p>
        ${may("operate") && source && html`<p class="buttons left"><button class="quiet" onClick=${does.one}>Retry …</button><button class="quiet" onClick=${does.all}>Retry all of this cause …</button></p>`}
        <${Copied} text=${`ripple dead-letter retry --checkpoint-dir ${store} --pipeline ${one.pipeline} --partition ${one.partition} --offset ${one.offset} --source ${source || "log:DIR/TOPIC"}`}></${Copied}>`
      : html`<p class="faint">Only its first bytes were kept: it cannot be retried.</p>`}
  </${Section}>`;
}
