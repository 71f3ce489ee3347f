// What every part needs of Preact. htm misreads tags that are not closed, in silence: close them.
import { h, render, Fragment } from "./vendor/preact.js";
import { useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export { render, Fragment, useEffect, useMemo, useRef, useState };
