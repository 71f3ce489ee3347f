// One output in Perspective, whose engine is here in the browser: it has a page of its own, for it
// needs WebAssembly, a worker and styles that ours may do without.
import perspective from "./vendor/perspective.js";
import "./vendor/perspective-viewer.js";
import "./vendor/perspective-viewer-datagrid.js";

const EVERY_MS = 1000;
const output = new URLSearchParams(location.search).get("output");
const viewer = document.querySelector("perspective-viewer");
const said = document.getElementById("said");
const kept = `explore ${output}`;
let isPaused = false, version = "", table = null;

const isDark = () => (document.documentElement.dataset.theme || "auto") === "auto"
  ? matchMedia("(prefers-color-scheme: dark)").matches : document.documentElement.dataset.theme === "dark";

// Asked for again only where something has changed since.
async function rows() {
  const response = await fetch(`/api/rows?${new URLSearchParams({ output })}`, { headers: version ? { "If-None-Match": version } : {}, cache: "no-store" });
  if (response.status === 304) return null;
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).problem || `the server answered ${response.status}`);
  version = response.headers.get("ETag");
  return response.arrayBuffer();
}

async function turn() {
  try {
    const found = isPaused && table ? null : await rows();
    if (found && table) await table.replace(found);
    else if (found) await begin(found);
    said.textContent = "";
  } catch (error) {
    said.textContent = String(error.message || error);
  }
  setTimeout(turn, EVERY_MS);
}

async function begin(found) {
  perspective.init_server({ wasm32: () => fetch("/page/vendor/perspective-server.wasm") });
  const engine = await perspective.worker();
  table = await engine.table(found, { name: output });
  await viewer.load(engine);
  const before = JSON.parse(localStorage.getItem(kept) || "{}");
  await viewer.restore({ ...before, table: output, theme: isDark() ? "Pro Dark" : "Pro Light" }).catch(() => viewer.restore({ table: output }));
  viewer.addEventListener("perspective-config-update", async () => localStorage.setItem(kept, JSON.stringify(await viewer.save())));
}

function dress(theme) {
  document.documentElement.dataset.theme = theme;
  if (table) viewer.restore({ theme: isDark() ? "Pro Dark" : "Pro Light" });
}

addEventListener("message", (event) => {
  if (event.origin !== location.origin) return;
  isPaused = !!event.data.isPaused;
  dress(event.data.theme);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dress(document.documentElement.dataset.theme));
dress(localStorage.getItem("theme") || "auto");
turn();
