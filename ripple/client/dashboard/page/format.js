// Numbers, ages and sizes as people read them. What is not known is a dash, never 0 or NaN.
export const DASH = "–";

const known = (value) => typeof value === "number" && Number.isFinite(value);
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function count(value) {
  return known(value) ? grouped.format(value) : DASH;
}

export function short(value) {
  if (!known(value)) return DASH;
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  return size >= 100 || Number.isInteger(value) ? grouped.format(value) : value.toFixed(1);
}

export function rate(value) {
  return known(value) ? `${short(value)}/s` : DASH;
}

export function seconds(value) {
  if (!known(value)) return DASH;
  if (value < 0.0995) return `${Math.round(value * 1000)} ms`;
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 119.5) return `${Math.round(value)} s`;
  if (value < 7170) return `${Math.round(value / 60)} min`;
  if (value < 172000) return `${(value / 3600).toFixed(1)} h`;
  return `${Math.round(value / 86400)} d`;
}

export function bytes(value) {
  if (!known(value)) return DASH;
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]])
    if (value >= size) return `${(value / size).toFixed(value >= 100 * size ? 0 : 1)} ${unit}`;
  return `${value} B`;
}

export function percent(value) {
  return known(value) ? `${Math.round(value * 100)} %` : DASH;
}

export function clock(ms) {
  return known(ms) ? new Date(ms).toISOString().slice(11, 19) : DASH;
}

export function moment(ms) {
  return known(ms) ? new Date(ms).toISOString().slice(0, 19).replace("T", " ") : DASH;
}

export function many(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}
