import { bytes, count, DASH, many, moment, percent, rate, seconds, short } from "../format.js";
import { html, useMemo } from "../h.js";
import { useAsked } from "../live.js";
import { Bar, Elsewhere, Filter, Nothing, Section, Table } from "../parts.js";
import { change } from "../address.js";
import { Bottlenecks } from "./overview.js";
import { skewOf } from "./partitions.js";
import { Graph, layout } from "../vendor/dagre.js";

const HEIGHT = 56, PAD = 12, HEAD = 38;
const BUSY = 0.9;

export function Pipeline({ snapshot, asked, isPaused }) {
  const { pipeline } = snapshot;
  // What each node does is asked for while somebody looks at it.
  const { value: graph } = useAsked("graph", {}, 1000, isPaused);
  if (!pipeline) return html`<${Section} title="Pipeline" id="pipeline"><${Nothing}>No worker has said yet what it computes.</${Nothing}></${Section}>`;
  const stages = stagesOf(snapshot, pipeline);
  const figures = figuresOf(snapshot, pipeline, stages, graph?.nodes || {});
  const flows = flowsOf(snapshot, pipeline, stages, figures);
  const wanted = (asked.q || "").toLowerCase();
  const isShown = (node) => !wanted || `${node.name} ${node.kind} ${node.about}`.toLowerCase().includes(wanted);
  const chosen = pipeline.nodes.find((one) => one.id === asked.node);
  const { totals } = snapshot;
  return html`
    <${Section} title=${pipeline.name} id="pipeline" more=${html`topology <code>${pipeline.topology.slice(0, 12)}</code> · ${many(pipeline.nodes.length, "step")}, ${many(pipeline.stages.length, "stage")}${pipeline.cut_at ? ` · only the first ${pipeline.cut_at} are drawn` : ""}`}>
      <div class="tools"><${Filter} label="Highlight: name, kind"></${Filter}></div>
      <${Drawing} pipeline=${pipeline} figures=${figures} flows=${flows} stages=${stages} isShown=${isShown} chosen=${asked.node}></${Drawing}>
    </${Section}>
    ${chosen && html`<${Node} node=${chosen} figures=${figures} edges=${pipeline.edges} flows=${flows}></${Node}>`}
    <div class="two">
      <${Bottlenecks} found=${snapshot.bottlenecks || []}></${Bottlenecks}>
      <${Section} title="Recomputing" id="recomputing" more="of all graphs together">
        <dl class="facts"><div><dt>nodes</dt><dd>${count(totals?.nodes)}</dd></div>
          <div><dt>updated</dt><dd>${rate(totals?.recompute_rate)}</dd></div>
          <div><dt>unchanged</dt><dd>${rate(totals?.cutoff_rate)}</dd></div>
          <div><dt>cut off</dt><dd>${percent(cutoff(totals))}</dd></div>
          <div><dt>windows held</dt><dd>${count(totals?.windows)}</dd></div>
          ${snapshot.kind === "cluster" && html`<div title="between stages, and to subscribers of outputs"><dt>sent to other processes</dt><dd>${bytes(totals?.bytes_sent)}</dd></div>`}</dl>
        ${graph?.ranked?.length > 0 && html`<h3>Busiest steps</h3><ol class="ranked">${graph.ranked.map((one) => html`<li key=${`${one.node} ${one.what}`}><div class="line">
          <span><button class="link" onClick=${() => change({ node: one.node })}>${one.node}</button> <span class=${one.what === "recomputes" ? "faint" : "warned"}>${one.what}</span></span>
          <${Bar} value=${one.share} level=${one.what === "recomputes" ? "accent" : "warn"} label=${percent(one.share)}></${Bar}></div></li>`)}</ol>`}
      </${Section}>
    </div>
    <${Steps} pipeline=${pipeline} figures=${figures}></${Steps}>
    <${Elsewhere} json="/api/snapshot" command="ripple plan FILE.py"></${Elsewhere}>`;
}

function cutoff(totals) {
  const sum = (totals?.recompute_rate ?? 0) + (totals?.cutoff_rate ?? 0);
  return sum > 0 ? totals.cutoff_rate / sum : null;
}

// The stages of the plan, with what their partitions say. A cluster may have one more in front, which
// divides records anew: those of the plan are the last ones.
function stagesOf(snapshot, pipeline) {
  const said = skewOf((snapshot.partitions || []).map((one) => ({ ...one })));
  const front = Math.max(0, said.length - pipeline.stages.length);
  return pipeline.stages.map((stage, i) => ({ ...(said[front + i] || {}), ...stage, ...pressureOf(snapshot, said[front + i]?.stage) }));
}

// How busy the busiest owner of a stage's partitions is, and for how much of the last minute one of
// them took in less, because a queue behind it was full.
function pressureOf(snapshot, stage) {
  const owners = new Set((snapshot.partitions || []).filter((one) => one.stage === stage).map((one) => one.worker));
  const most = (name) => (snapshot.workers || []).filter((one) => owners.has(one.id) && one[name] != null).reduce((a, b) => (b[name] > (a?.[name] ?? -1) ? b : a), null);
  const busy = most("load"), slowed = most("slowed");
  return { busy: busy?.load, busiest: busy?.id, slowed: slowed?.slowed, slowest: slowed?.id };
}

function pressureText(stage) {
  if (stage.busy == null) return "";
  return `busy ${percent(stage.busy)}${stage.slowed > 0 ? ` · slowed ${percent(stage.slowed)}` : ""}`;
}

// By node: what is known of it. Nodes with counters of their own say more.
function figuresOf(snapshot, pipeline, stages, own) {
  return Object.fromEntries(pipeline.nodes.map((node) => {
    const stage = stages[node.stage] || {};
    const said = own[node.id] || {};
    const isSource = node.kind === "source";
    const into = said.rate ?? (isSource ? snapshot.totals?.rate_in : node.kind === "fold" && pipeline.stages[node.stage].folds[0] === node.name ? stage.rate : null);
    return [node.id, { ...said, rate: into, busy: stage.busy, slowed: stage.slowed, lag: stage.lag, skew: stage.skew, partitions: stage.count }];
  }));
}

// By edge: what flows, and how far its lower end is behind its upper one in event time.
function flowsOf(snapshot, pipeline, stages, figures) {
  const by = Object.fromEntries(pipeline.nodes.map((one) => [one.id, one]));
  return Object.fromEntries(pipeline.edges.filter((one) => by[one.from] && by[one.to]).map((edge) => {
    const from = by[edge.from], to = by[edge.to];
    const sent = edge.kind === "rows" ? null : (snapshot.edges || []).find((one) => one.edge === `${pipeline.name}/${to.stage}`);
    const above = stages[from.stage]?.lag, below = stages[to.stage]?.lag;
    const behind = from.stage !== to.stage && above != null && below != null ? Math.max(0, below - above) : null;
    return [`${edge.from} ${edge.to}`, { rate: figures[edge.of || edge.from]?.changes_rate ?? null, sent: sent?.rate ?? null, behind }];
  }));
}

// As wide as its texts: letters of 13 and 12 pixels are some 7 wide.
function widthOf(node) {
  const hasRate = ["source", "fold", "output"].includes(node.kind);
  const cut = node.kind === "fold" ? 56 : 0;
  return Math.max(84, 28 + 7.2 * Math.min(node.name.length, 22) + cut, hasRate ? 80 + 6.2 * kindOf(node).length : 0, node.kind === "join" ? 130 : 0);
}

function kindOf(node) {
  return node.window ? `fold · ${node.window.split(",")[0].split(": ")[1].replace("tumbling ", "")}` : node.kind.replace("-", " ");
}

function layedOut(pipeline) {
  const graph = new Graph({ compound: true });
  graph.setGraph({ rankdir: "LR", nodesep: 26, ranksep: 24, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(pipeline.nodes.map((one) => one.id));
  const edges = pipeline.edges.filter((one) => known.has(one.from) && known.has(one.to));
  for (const { number } of pipeline.stages) graph.setNode(`stage:${number}`, {});
  for (const node of pipeline.nodes) {
    graph.setNode(node.id, { width: widthOf(node), height: HEIGHT });
    graph.setParent(node.id, `stage:${node.stage}`);
  }
  for (const edge of edges) graph.setEdge(edge.from, edge.to, { minlen: edge.side ? 5 : edge.kind === "rows" ? 1 : 2 });
  layout(graph);
  const nodes = Object.fromEntries(pipeline.nodes.map((one) => [one.id, graph.node(one.id)]));
  const boxes = pipeline.stages.map((stage) => {
    const inside = pipeline.nodes.filter((one) => one.stage === stage.number).map((one) => nodes[one.id]);
    if (!inside.length) return null;
    const left = Math.min(...inside.map((one) => one.x - one.width / 2)) - PAD, right = Math.max(...inside.map((one) => one.x + one.width / 2)) + PAD;
    const top = Math.min(...inside.map((one) => one.y)) - HEIGHT / 2 - PAD - HEAD, bottom = Math.max(...inside.map((one) => one.y)) + HEIGHT / 2 + PAD;
    return { stage, left, top, width: right - left, height: bottom - top };
  }).filter(Boolean);
  const left = Math.min(...boxes.map((one) => one.left)), top = Math.min(...boxes.map((one) => one.top));
  const width = Math.max(...boxes.map((one) => one.left + one.width)) - left, height = Math.max(...boxes.map((one) => one.top + one.height)) - top;
  const placed = edges.map((one) => ({ ...one, points: graph.edge(one.from, one.to).points }));
  return { nodes, edges: placed, boxes, view: [left - 1, top - 1, width + 2, height + 2] };
}

function Drawing({ pipeline, figures, flows, stages, isShown, chosen }) {
  const placed = useMemo(() => layedOut(pipeline), [pipeline.topology]);
  const [x, y, width, height] = placed.view;
  return html`<div class="scroll drawing" tabindex="0" role="group" aria-label=${`The graph of ${pipeline.name}`}><svg viewBox=${`${x} ${y} ${width} ${height}`} width=${width} height=${height} role="group" aria-label=${`${pipeline.name}: ${pipeline.nodes.length} steps; the table below says the same`}>
    <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.8 L7 4 L0 7.2 z"></path></marker></defs>
    ${placed.boxes.map((box) => html`<g key=${box.stage.number} class=${`stage ${stages[box.stage.number].slowed > 0 ? "slowed" : stages[box.stage.number].busy >= BUSY ? "busy" : ""}`}><title>${pressureAbout(stages[box.stage.number])}</title><rect x=${box.left} y=${box.top} width=${box.width} height=${box.height} rx="10"></rect>
      <text x=${box.left + 14} y=${box.top + 20}>${stageTitle(stages[box.stage.number])}</text>
      <text class="pressure" x=${box.left + 14} y=${box.top + 37}>${pressureText(stages[box.stage.number])}</text></g>`)}
    ${placed.edges.map((edge) => html`<g key=${`${edge.from} ${edge.to} ${edge.side}`} class=${`edge ${edge.kind}`}><title>${edge.why || edgeText(edge)}${flowText(flows[`${edge.from} ${edge.to}`])}</title>
      <path d=${curve(edge.points)} marker-end="url(#tip)"></path>
      ${edge.side && html`<${SideText} edge=${edge} edges=${placed.edges} side=${sideOf(edge, figures[edge.to])}></${SideText}>`}
      ${edge.kind !== "rows" && html`<text x=${edge.points[Math.floor(edge.points.length / 2)].x} y=${edge.points[Math.floor(edge.points.length / 2)].y - 8} text-anchor="middle">${edge.kind}</text>
        ${flows[`${edge.from} ${edge.to}`]?.rate != null && html`<text class="rate" x=${edge.points[Math.floor(edge.points.length / 2)].x} y=${edge.points[Math.floor(edge.points.length / 2)].y + 15} text-anchor="middle">${rate(flows[`${edge.from} ${edge.to}`].rate)}</text>`}`}</g>`)}
    ${pipeline.nodes.map((node) => html`<${Box} key=${node.id} node=${node} at=${placed.nodes[node.id]} figure=${figures[node.id]} isShown=${isShown(node)} isChosen=${chosen === node.id}></${Box}>`)}
  </svg></div>`;
}

const middle = (edge) => edge.points[Math.floor(edge.points.length / 2)];

// On an edge into a join: its side, the rows kept of that, and whether it holds the other up. The text is
// above the upper one of both lines, and below the lower one: a table joined with itself has one line.
function SideText({ edge, edges, side }) {
  const { x, y } = middle(edge);
  const other = edges.find((one) => one.to === edge.to && one.side && one.side !== edge.side);
  const isUpper = !other || y < middle(other).y || (y === middle(other).y && edge.side === "left");
  const text = `${edge.side}${side ? ` · ${short(side.rows)}` : ""}${side?.behind ? " · behind" : ""}`;
  return html`<text class=${side?.behind ? "side behind" : "side"} x=${x} y=${isUpper ? y - 6 : y + 15} text-anchor="middle">${text}</text>`;
}

function sideOf(edge, figure) {
  return edge.side && figure?.join ? figure.join.sides[edge.side === "left" ? 0 : 1] : null;
}

function sideFact(side, partitions) {
  const at = side.watermark_ms == null ? "" : ` · watermark ${moment(side.watermark_ms)}`;
  const behind = side.behind ? ` · holds the other side up${partitions > 1 ? ` in ${many(side.behind, "partition")}` : ""}` : "";
  return `${side.reads}: ${many(side.rows, "row")} kept${at}${behind}`;
}

function edgeText(edge) {
  return edge.kind === "rows" ? "rows" : `${edge.kind} edge`;
}

function flowText(flow) {
  return `${flow?.rate == null ? "" : ` · ${rate(flow.rate)}`}${flow?.sent == null ? "" : ` · ${rate(flow.sent)} between processes`}${flow?.behind == null ? "" : ` · ${seconds(flow.behind)} behind the stage above`}`;
}

function stageTitle(stage) {
  const key = stage.key.length ? `by ${stage.key.join(", ")}` : stage.number ? "one total" : "those of the source";
  return `stage ${stage.number} · ${stage.count ? many(stage.count, "partition") : "no partitions yet"} · ${key}`;
}

function pressureAbout(stage) {
  if (stage.busy == null) return "";
  return `busiest worker ${stage.busiest}: ${percent(stage.busy)}${stage.slowed > 0 ? `; ${stage.slowest} took in less for ${percent(stage.slowed)} of the last minute` : "; no worker took in less in the last minute"}`;
}

function Box({ node, at, figure, isShown, isChosen }) {
  const choose = () => change({ node: isChosen ? "" : node.id });
  const pressed = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose();
    }
  };
  const value = figure.rate != null ? rate(figure.rate) : "";
  return html`<g class=${`node ${node.kind} ${isShown ? "" : "dim"} ${isChosen ? "chosen" : ""}`} transform=${`translate(${at.x - at.width / 2} ${at.y - HEIGHT / 2})`} tabindex="0" role="button" aria-pressed=${isChosen} onClick=${choose} onKeyDown=${pressed}>
    <rect width=${at.width} height=${HEIGHT} rx="7"></rect><rect class="strip" width="4" height=${HEIGHT} rx="2"></rect>
    <text class="name" x="15" y="24">${clipped(node.name, 22)}</text>${" "}
    <text class="kind" x="15" y="44">${kindOf(node)}</text>${" "}
    <text class="rate" x=${at.width - 11} y="44" text-anchor="end">${value}</text>${" "}
    ${figure.join?.alone != null && html`<text class="cut" x=${at.width - 11} y="44" text-anchor="end">${percent(figure.join.alone)} alone</text>`}
    ${figure.cutoff >= 0.005 && html`<text class="cut" x=${at.width - 11} y="24" text-anchor="end">${percent(figure.cutoff)} cut</text>`}</g>`;
}

function clipped(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

function curve(points) {
  const [first, ...rest] = points;
  let path = `M${first.x} ${first.y}`;
  for (let i = 0; i + 1 < rest.length; i++) {
    const end = i + 2 === rest.length ? rest[i + 1] : { x: (rest[i].x + rest[i + 1].x) / 2, y: (rest[i].y + rest[i + 1].y) / 2 };
    path += ` Q${rest[i].x} ${rest[i].y} ${end.x} ${end.y}`;
  }
  return rest.length === 1 ? `${path} L${rest[0].x} ${rest[0].y}` : path;
}

function Node({ node, figures, edges, flows }) {
  const figure = figures[node.id];
  const facts = [["kind", node.kind.replace("-", " ")], ["stage", String(node.stage)], ["rows in", rate(figure.rate)], ["changes out", rate(figure.changes_rate)], ["cut off", percent(figure.cutoff)],
    ["recomputed", rate(figure.recomputed_rate)], ["wasted", rate(figure.wasted_rate)], ["keys", count(figure.keys)], ["state", bytes(figure.bytes)], ["rows that cannot be computed", figure.uncomputable ? count(figure.uncomputable) : DASH], ["rows waiting for an answer", count(figure.waiting)], ["rows answered", count(figure.answered)], ["rows without an answer after all calls", count(figure.failures)], ["calls in progress", count(figure.calls_now)], ["calls repeated", count(figure.retries)], ["largest lag", seconds(figure.lag)], ["busiest worker of its stage", percent(figure.busy)], ["slowed, of the last minute", percent(figure.slowed)], ["skew", figure.skew == null ? DASH : figure.skew.toFixed(2)],
    ["idle inputs, which go on by markers", figure.idle_inputs ? `${count(figure.idle_inputs)}, for ${seconds(figure.idle_seconds)}` : DASH]];
  if (figure.join) {
    const [left, right] = figure.join.sides;
    facts.push(["left side", sideFact(left, figure.partitions)], ["right side", sideFact(right, figure.partitions)], ["rows of the left side without a partner", percent(figure.join.alone)]);
  }
  const into = edges.filter((one) => one.to === node.id && one.why);
  return html`<${Section} title=${node.name} id="node" more=${node.about}>
    <dl class="facts">${facts.filter(([, value]) => value !== DASH).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${node.window && html`<p><b>window</b> ${node.window}</p>`}
    ${node.keeps && html`<p><b>keeps</b> ${node.keeps}</p>`}
    ${node.aggregates?.length > 0 && html`<p><b>aggregates</b></p><ul class="code">${node.aggregates.map((one) => html`<li key=${one}><code>${one}</code></li>`)}</ul>`}
    ${into.map((one) => html`<p key=${one.from}><b>${edgeText(one)}</b> ${one.why}${flowText(flows[`${one.from} ${one.to}`])}</p>`)}
    <p><b>fields</b> ${node.fields}</p>
    <p class="faint">plan key <code>${node.node_key}</code></p>
  </${Section}>`;
}

function Steps({ pipeline, figures }) {
  const has = (name) => pipeline.nodes.some((one) => figures[one.id][name] != null);
  const columns = [
    { name: "name", title: "step" }, { name: "kind", title: "kind" }, { name: "stage", title: "stage", right: true },
    { name: "rate", title: "rows in", right: true, by: (one) => figures[one.id].rate, show: (one) => rate(figures[one.id].rate) },
    has("changes_rate") && { name: "changes", title: "changes out", right: true, by: (one) => figures[one.id].changes_rate, show: (one) => rate(figures[one.id].changes_rate) },
    has("cutoff") && { name: "cutoff", title: "cut off", right: true, by: (one) => figures[one.id].cutoff, show: (one) => percent(figures[one.id].cutoff) },
    has("wasted_rate") && { name: "wasted", title: "wasted", about: "recomputed, and as it was before", right: true, by: (one) => figures[one.id].wasted_rate, show: (one) => rate(figures[one.id].wasted_rate) },
    { name: "lag", title: "largest lag", right: true, by: (one) => figures[one.id].lag, show: (one) => seconds(figures[one.id].lag) },
    { name: "skew", title: "skew", right: true, by: (one) => figures[one.id].skew, show: (one) => (figures[one.id].skew == null ? DASH : figures[one.id].skew.toFixed(2)) },
    { name: "about", title: "what it does", show: (one) => html`<code class="raw">${one.about || one.fields}</code>` },
  ].filter(Boolean);
  return html`<${Section} title="Steps" id="steps" more="lag and skew are those of the step's stage">
    <${Table} id="n" label="Steps" columns=${columns} rows=${pipeline.nodes.map((one) => ({ key: one.id, ...one }))} empty="" chosen=${null} choose=${(key) => change({ node: key })}></${Table}>
  </${Section}>`;
}
