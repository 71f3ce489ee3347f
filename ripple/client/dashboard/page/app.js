// The frame: navigation, health, keys, login.
import { clock } from "./format.js";
import { html, render, useEffect, useRef, useState } from "./h.js";
import { ask, post, useLive } from "./live.js";
import { Command, Nothing, Section, State, askAt } from "./parts.js";
import { go, useAddress } from "./address.js";
import { Checkpoints } from "./views/checkpoints.js";
import { Explore } from "./views/explore.js";
import { Letters } from "./views/letters.js";
import { Outputs } from "./views/outputs.js";
import { Overview } from "./views/overview.js";
import { Partitions } from "./views/partitions.js";
import { Pipeline } from "./views/pipeline.js";
import { Query } from "./views/query.js";
import { Settings } from "./views/settings.js";

const VIEWS = {
  overview: ["Overview", "o", Overview],
  pipeline: ["Pipeline", "p", Pipeline],
  partitions: ["Partitions", "a", Partitions],
  outputs: ["Outputs", "t", Outputs],
  explore: ["Explore", "e", Explore],
  query: ["Query", "q", Query],
  checkpoints: ["Checkpoints", "c", Checkpoints],
  letters: ["Dead letters", "l", Letters],
  settings: ["Settings", "s", Settings],
};
// What a run does not show: its rows are in its sinks, its settings in its command.
const OF_CLUSTERS = ["outputs", "explore", "query", "settings"];
const THEMES = ["auto", "light", "dark"];

function App() {
  const [me, setMe] = useState(null);
  const [problem, setProblem] = useState("");
  const look = () => ask("me").then(setMe, (error) => setProblem(error.message));
  // Again until the server has answered: it may begin, or be busy.
  useEffect(() => {
    if (me) return undefined;
    look();
    const timer = setInterval(look, 2000);
    return () => clearInterval(timer);
  }, [!me]);
  if (!me) return html`<main class="alone"><p role="status">${problem || "…"}</p></main>`;
  return me.rights.includes("read") ? html`<${Frame} me=${me} look=${look}></${Frame}>` : html`<${LogIn} look=${look}></${LogIn}>`;
}

function LogIn({ look }) {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState("");
  const send = async (event) => {
    event.preventDefault();
    await post("session", { token }).then(look, (error) => setProblem(error.message));
  };
  return html`<main class="alone"><form class="card" onSubmit=${send}>
    <h1><img src="/page/icon.svg" alt="" width="28" height="28"></img> Ripple</h1>
    <label>Token <input type="password" autocomplete="current-password" required value=${token} onInput=${(event) => setToken(event.target.value)}></input></label>
    <p role="alert" class="problem">${problem || "\u00a0"}</p>
    <button class="primary">Log in</button></form></main>`;
}

function Frame({ me, look }) {
  const { view, asked } = useAddress();
  const [isPaused, setPaused] = useState(false);
  const help = useDialog();
  const command = useDialog();
  const live = useLive(true, isPaused);
  const [theme, setTheme] = useState(localStorage.getItem("theme") || "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
    dispatchEvent(new Event("theme"));
  }, [theme]);
  useKeys({ pause: () => setPaused((now) => !now), help: () => help.open({}) });
  const { snapshot } = live;
  askAt(snapshot?.coordinator);
  const [name, , View] = VIEWS[view] || ["No such view"];
  useEffect(() => {
    document.title = `${name} · ${snapshot?.name || me.title} · Ripple`;
  }, [name, snapshot?.name]);
  const may = (right) => me.rights.includes(right);
  const logOut = () => fetch("/api/session", { method: "DELETE" }).then(look);
  return html`
    <a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); document.getElementById("content").focus(); }}>Skip to content</a>
    <header class="top">
      <a class="brand" href="#/overview"><img src="/page/icon.svg" alt="" width="24" height="24"></img><span>Ripple</span></a>
      <span class="what">${snapshot?.name || me.title}</span>
      <span class="grow"></span>
      <${Liveness} live=${live} isPaused=${isPaused}></${Liveness}>
      <button class="quiet" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)} title="Pause (.)">${isPaused ? "Go on" : "Pause"}</button>
      <button class="quiet" onClick=${() => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % 3])} aria-label=${`Colours: ${theme}`} title="Colours">${{ auto: "◐", light: "○", dark: "●" }[theme]}</button>
      <button class="quiet" onClick=${() => help.open({})} aria-label="Keys (?)" title="Keys (?)">?</button>
      ${me.has_session && html`<button class="quiet" onClick=${logOut}>Log out ${me.name}</button>`}
    </header>
    <nav class="side" aria-label="Views"><ul>${Object.entries(VIEWS).map(([key, [title, letter]]) => html`<li key=${key}>
      <a href=${`#/${key}`} aria-current=${view === key ? "page" : undefined}>${title}<kbd aria-hidden="true">g ${letter}</kbd></a></li>`)}</ul>
      <p class="faint role">${may("operate") ? `role: ${me.role}` : `role: ${me.role}, read-only`}</p>
    </nav>
    <main id="content" tabindex="-1">
      <h1 class="hidden">${name}</h1>
      <p class="hidden" role="status">${snapshot?.verdict && snapshot.verdict.level !== "good" ? snapshot.verdict.text : ""}</p>
      ${!snapshot ? html`<p class="nothing" role="status">${live.status === "lost" ? "The dashboard's server does not answer; retrying." : "Waiting for the first snapshot …"}</p>`
        : snapshot.error ? html`<p class="nothing problem">${snapshot.error}</p>`
        : snapshot.kind === "run" && OF_CLUSTERS.includes(view) ? html`<${Section} title=${name} id=${view}><${Nothing}>This view needs a cluster (ripple cluster up): ${view === "settings" ? "the settings of this run are in its command" : "the rows of this run are in its sinks"}.</${Nothing}></${Section}>`
        : !VIEWS[view] ? html`<${Section} title="No such view" id="none"><${Nothing}>There is no view ${view}: there are ${Object.keys(VIEWS).join(", ")}.</${Nothing}></${Section}>`
        : html`<${View} key=${view} snapshot=${snapshot} history=${live.history} asked=${asked} may=${may} say=${command.open} isPaused=${isPaused}></${View}>`}
    </main>
    ${help.shown && html`<${Help} ...${help.shown}></${Help}>`}
    ${command.shown && html`<${Command} ...${command.shown} post=${post}></${Command}>`}`;
}

// What a dialog is shown with, while it is. A browser says late that one was closed: it has an
// identity, and takes none away that was opened since.
function useDialog() {
  const [shown, setShown] = useState(null);
  const opened = useRef(0);
  const open = (what) => {
    const key = ++opened.current;
    setShown({ ...what, key, close: () => setShown((now) => (now?.key === key ? null : now)) });
  };
  return { shown, open };
}

function Liveness({ live, isPaused }) {
  const at = live.snapshot ? `${clock(live.snapshot.time_ms)} UTC` : "";
  if (live.status === "stale") return html`<${State} level="bad">stale, last ${at}</${State}>`;
  if (live.status === "lost") return html`<${State} level="bad">lost, last ${at}</${State}>`;
  if (isPaused) return html`<${State} level="warn">paused at ${at}</${State}>`;
  return html`<${State} level=${live.status === "live" ? "good" : "none"}>${live.status === "live" ? html`live <time class="at">${at}</time>` : "connecting"}</${State}>`;
}

function Help({ close }) {
  const dialog = useRef();
  useEffect(() => dialog.current.showModal(), []);
  const keys = [...Object.values(VIEWS).map(([title, letter]) => [`g ${letter}`, title]), ["/", "filter"], [".", "pause, go on"], ["?", "these keys"], ["Esc", "close"]];
  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="help-title"><h2 id="help-title">Keys</h2>
    <dl class="keys">${keys.map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <p class="buttons"><button class="primary" onClick=${() => dialog.current.close()}>Close</button></p></dialog>`;
}

function useKeys(does) {
  const newest = useRef(does);
  newest.current = does;
  useEffect(() => {
    let isGoing = false, timer;
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      // A dialog that was closed keeps the focus until the next frame; its keys are the page's again.
      const dialog = event.target.closest("dialog");
      if (dialog ? dialog.open : event.target.closest("input, select, textarea")) {
        if (event.key === "Escape" && event.target.matches("[data-filter]")) event.target.blur();
        return;
      }
      if (isGoing) {
        const found = Object.entries(VIEWS).find(([, [, letter]]) => letter === event.key);
        isGoing = false;
        if (found) {
          event.preventDefault();
          go(found[0]);
          document.getElementById("content").focus();
        }
        return;
      }
      if (event.key === "g") {
        isGoing = true;
        clearTimeout(timer);
        timer = setTimeout(() => { isGoing = false; }, 1500);
      } else if (event.key === "/") {
        event.preventDefault();
        document.querySelector("[data-filter]")?.focus();
      } else if (event.key === ".") newest.current.pause();
      else if (event.key === "?") newest.current.help();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

render(html`<${App}></${App}>`, document.getElementById("app"));
