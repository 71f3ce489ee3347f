// Where we are is in the address: #/partitions?sort=lag_s&q=worker-2
import { useEffect, useState } from "./h.js";

export function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path || "overview", asked: Object.fromEntries(new URLSearchParams(query)) };
}

export function address(view, asked = {}) {
  const kept = Object.entries(asked).filter(([, value]) => value !== "" && value != null);
  const query = new URLSearchParams(kept).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

export function go(view, asked) {
  location.hash = address(view, asked);
}

// Changes what is asked without a step in the browser's history: for filters as they are typed.
export function change(changes) {
  const { view, asked } = read();
  history.replaceState(null, "", address(view, { ...asked, ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useAddress() {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const changed = () => setPlace(read());
    addEventListener("hashchange", changed);
    changed(); // the address may have changed since it was read
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}
