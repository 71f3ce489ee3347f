// The websocket: the newest snapshot, and the history for charts.
import { useEffect, useRef, useState } from "./h.js";

// Nobody has measured for so long: a gap.
const GAP_MS = 5000;
const STALE_MS = 3000, LOOK_MS = 500;
const AGAIN_MS = [500, 1000, 2000, 5000];

export function useLive(isOn, isPaused) {
  const [state, setState] = useState({ status: "connecting", snapshot: null, history: [] });
  const paused = useRef(isPaused);
  paused.current = isPaused;
  useEffect(() => {
    if (!isOn) return undefined;
    let socket, timer, tries = 0, isOver = false, history = [], heard = performance.now();
    // A frozen server keeps its connections: old data is marked stale.
    const watchdog = setInterval(() => {
      if (performance.now() - heard < STALE_MS) return;
      setState((now) => (now.status === "live" ? { ...now, status: "stale" } : now));
    }, LOOK_MS);
    const connect = () => {
      socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`);
      socket.onmessage = (event) => {
        const said = JSON.parse(event.data);
        tries = 0;
        heard = performance.now();
        if (said.history) {
          const names = said.history.names;
          history = said.history.rows.map((row) =>
            Object.fromEntries(row.map((value, i) => [names[i], value])));
          return;
        }
        if (said.totals) history = followed(history, { ...said.totals, time_ms: said.time_ms });
        if (!paused.current) setState({ status: "live", snapshot: said, history });
        else setState((now) => (now.status === "live" ? now : { ...now, status: "live" }));
      };
      socket.onclose = () => {
        if (isOver) return;
        setState((now) => ({ ...now, status: "lost" }));
        timer = setTimeout(connect, AGAIN_MS[Math.min(tries++, AGAIN_MS.length - 1)]);
      };
    };
    connect();
    return () => {
      isOver = true;
      clearTimeout(timer);
      clearInterval(watchdog);
      socket.close();
    };
  }, [isOn]);
  return state;
}

// The history with one snapshot more; the server sends all of it anew before this is long.
function followed(history, row) {
  const last = history.at(-1)?.time_ms ?? row.time_ms - 1;
  if (last >= row.time_ms) return history; // it was in the history that the server has sent
  return row.time_ms - last > GAP_MS ? [...history, { time_ms: last + 1 }, row] : [...history, row];
}

// A browser says of a server that is gone only that it "failed to fetch".
async function reached(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error("the dashboard's server does not answer");
  }
}

export async function ask(what, asked = {}, signal = undefined) {
  const kept = Object.entries(asked).filter(([, value]) => value !== "" && value != null);
  return answered(await reached(`/api/${what}?${new URLSearchParams(kept)}`, { signal }));
}

export async function post(what, body) {
  const headers = { "Content-Type": "application/json" };
  return answered(await reached(`/api/${what}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function answered(response) {
  const said = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(said.problem || `the server answered ${response.status}`);
  return said;
}

// Asks now and again, while the view is open: { value, problem, again }. Of what has a version the
// next one is asked for, which comes when it is there.
export function useAsked(what, asked, everyMs, isPaused = false) {
  const [state, setState] = useState({ value: null, problem: "" });
  const key = JSON.stringify([what, asked]);
  const again = useRef(() => {});
  useEffect(() => {
    if (!what) return undefined;
    let isOver = false, timer, after;
    const leaving = new AbortController();
    const turn = async () => {
      clearTimeout(timer);
      try {
        const value = await ask(what, { ...asked, after }, leaving.signal);
        after = value.version;
        if (!isOver) setState({ value, problem: "", of: key });
      } catch (error) {
        // The last value stays, unless something else was asked then.
        if (!isOver) setState((now) => ({ ...now, value: now.of === key ? now.value : null, problem: error.message }));
      }
      if (!isOver && everyMs && !isPaused) timer = setTimeout(turn, everyMs);
    };
    again.current = turn;
    turn();
    return () => {
      isOver = true;
      clearTimeout(timer);
      leaving.abort();
    };
  }, [key, everyMs, isPaused]);
  return { ...state, again: () => again.current() };
}
