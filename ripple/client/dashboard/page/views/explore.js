import { html, useEffect, useRef } from "../h.js";
import { useAsked } from "../live.js";
import { Elsewhere, Nothing, Section } from "../parts.js";
import { go } from "../address.js";

export function Explore({ asked, isPaused }) {
  const { value, problem } = useAsked("outputs", {}, 5000, isPaused);
  const frame = useRef();
  const names = value?.outputs.map((one) => one.name) || [];
  const output = names.includes(asked.output) ? asked.output : names[0];
  const tell = () => frame.current?.contentWindow?.postMessage({ isPaused, theme: document.documentElement.dataset.theme }, location.origin);
  useEffect(() => {
    tell();
    addEventListener("theme", tell);
    return () => removeEventListener("theme", tell);
  }, [isPaused, output]);
  if (!output) return html`<${Section} title="Explore" id="explore"><${Nothing}>${problem ? `Rows are unavailable: ${problem}.` : "Loading outputs …"}</${Nothing}></${Section}>`;
  return html`<${Section} title="Explore" id="explore" more="grouped, split, filtered and computed in your browser, by its floating-point numbers; exact text is in Outputs">
    <div class="tools"><label class="check">output <select value=${output} onChange=${(event) => go("explore", { output: event.target.value })}>${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label></div>
    <iframe key=${output} ref=${frame} class="explore" title=${`${output} in Perspective`} src=${`/explore?output=${encodeURIComponent(output)}`} onLoad=${tell}></iframe>
  </${Section}>
  <${Elsewhere} json=${`/api/table?output=${encodeURIComponent(output)}`} command=${`ripple query 'SELECT * FROM "${output}"'`}></${Elsewhere}>`;
}
