// A box for code, with the numbers of its lines beside it.
import { html, useRef } from "./dom.js";

// Editor is a textarea with line numbers, which scroll with the text. bad has the numbers of lines with
// mistakes. Screen readers do not read the numbers.
export function Editor({ label, name, box, value, bad = [], change, rows = 16 }) {
  const gutter = useRef();
  const lines = value.split("\n").length;
  const faulty = [...new Set(bad)].filter((n) => n >= 1 && n <= lines).sort((a, b) => a - b);
  const numbers = (from, to) => Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => `${from + i}\n`).join("");
  const parts = [];
  let next = 1;
  for (const n of faulty) {
    parts.push(numbers(next, n - 1), html`<b>${n}</b>`, "\n");
    next = n + 1;
  }
  parts.push(numbers(next, lines));
  const scrolled = (e) => { gutter.current.style.transform = `translateY(${-e.target.scrollTop}px)`; };
  return html`<div class="field"><label for=${`box-${name}`}>${label}</label>
    <div class="editor"><div class="gutter" aria-hidden="true"><div ref=${gutter}>${parts}</div></div>
      <textarea class="code" id=${`box-${name}`} name=${name} rows=${rows} wrap="off" spellcheck=${false} autocomplete="off" autocapitalize="off" ref=${box} value=${value}
        onInput=${(e) => change(e.target.value)} onScroll=${scrolled}></textarea></div></div>`;
}

// placeOf returns where in a line a mistake begins and ends that is said to be at a column, counted from 1 in
// characters: a text in quotes, what brackets hold, or a word.
export function placeOf(line, column) {
  const from = Array.from(line).slice(0, Math.max(0, column - 1)).join("").length;
  const rest = line.slice(from);
  const quoted = /^"(?:[^"\\]|\\.)*"|^'(?:[^']|'')*'/.exec(rest);
  if (quoted) return [from, from + quoted[0].length];
  if (/^[[{]/.test(rest)) {
    let depth = 0;
    for (let i = 0; i < rest.length; i++) {
      if ("[{".includes(rest[i])) depth++;
      else if ("]}".includes(rest[i]) && --depth === 0) return [from, from + i + 1];
    }
    return [from, from + 1]; // the end is on another line
  }
  const word = /^[^\s,[\]{}]+?(?=:?(?:[\s,[\]{}]|$))/.exec(rest);
  return [from, from + (word ? word[0].length : Math.min(1, rest.length))];
}
