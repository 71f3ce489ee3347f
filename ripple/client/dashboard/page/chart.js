// Lines over a time, by uPlot. The numbers stand beside it: a chart says nothing to some.
import { html, useEffect, useRef } from "./h.js";

const HEIGHT = 168;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => {
    const probe = document.createElement("i");
    probe.style.color = style.getPropertyValue(name);
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  return { ink: of("--faint"), line: of("--line"), lines: [{ stroke: of("--accent") }, { stroke: of("--second"), dash: [5, 3] }, { stroke: of("--ink"), dash: [1, 3] }] };
}

// Rates and ages are seen from zero; what hardly changes, beside what it is, is seen from near.
const RANGES = {
  zero: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1],
  near: (_, low, high) => {
    const room = (high - low) * 0.1 || Math.abs(high) * 0.01 || 1;
    return low == null ? [0, 1] : [low - room, high + room];
  },
};

// Without a date for hours, and without seconds beyond a few minutes.
const DAY_S = 86400, MINUTES_S = 1200;
function timed(ticks) {
  const long = ticks.at(-1) - ticks[0];
  return ticks.map((s) => new Date(s * 1000).toISOString()).map((text) => (long > DAY_S ? text.slice(5, 16).replace("T", " ") : text.slice(11, long > MINUTES_S ? 16 : 19)));
}

// The rows of the last so many seconds; all of them without a span.
function within(history, span) {
  const from = span && history.length ? history.at(-1).time_ms - span * 1000 : -Infinity;
  return history.filter((one) => one.time_ms >= from);
}

// series: [{ name, label }], three at most: the names of history's values; show: a value as text;
// from: "zero" or "near"; span: of time in seconds, 0 for all of the history.
export function Chart({ history: all, series, show, label, from = "zero", span = 0 }) {
  const place = useRef();
  const plot = useRef();
  const history = within(all, span);
  const length = useRef(span);
  length.current = span;
  const data = [history.map((one) => one.time_ms / 1000), ...series.map((one) => history.map((row) => row[one.name] ?? null))];
  const newest = useRef(data);
  newest.current = data;
  useEffect(() => {
    const make = () => {
      if (!place.current) return;
      plot.current?.destroy();
      const c = colours();
      const font = "11px Inter, system-ui, sans-serif";
      const axis = { stroke: c.ink, font, grid: { stroke: c.line, width: 1 }, ticks: { show: false } };
      plot.current = new window.uPlot({
        width: place.current.clientWidth,
        height: HEIGHT,
        tzDate: (s) => window.uPlot.tzDate(new Date(s * 1000), "Etc/UTC"),
        cursor: { y: false, points: { size: 6 } },
        legend: { show: false },
        // A time without values is empty, and not left out.
        scales: { x: { range: (_, low, high) => [length.current && high != null ? high - length.current : low, high] }, y: { range: RANGES[from] } },
        axes: [
          { ...axis, size: 30, grid: { show: false }, space: 90, values: (_, ticks) => timed(ticks) },
          { ...axis, size: 62, space: 36, values: (_, ticks) => ticks.map(show) },
        ],
        series: [{}, ...series.map((one, i) => ({ label: one.label, ...c.lines[i], width: 1.75, points: { show: false }, fill: undefined }))],
      }, newest.current, place.current);
    };
    make();
    const resized = new ResizeObserver(() => place.current && plot.current?.setSize({ width: place.current.clientWidth, height: HEIGHT }));
    resized.observe(place.current);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    addEventListener("theme", make);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", make);
      removeEventListener("theme", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.setData(newest.current), [all, span]);
  return html`<figure class="chart"><figcaption>${series.map((one, i) => html`<span key=${one.name} class=${["key", "key second", "key third"][i]}>${one.label} <b>${show(history.at(-1)?.[one.name])}</b></span>`)}</figcaption>
    <div class="plot" ref=${place} role="img" aria-label=${label}></div></figure>`;
}
