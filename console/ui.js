// Parts that all pages use.
import { html, useEffect, useRef, useState } from "./dom.js";
import { Failure } from "./api.js";
import { ago, date, longDate, moment, num, t, word } from "./i18n.js";
import { app, named, onChange, rarityName, rarityStep } from "./store.js";

// useApp renders a part again when what all pages share changes.
export function useApp() {
  const [, again] = useState(0);
  useEffect(() => onChange(() => again((n) => n + 1)), []);
  return app;
}

// useLoad loads something when its inputs change, and on demand: { data, failure, loading, reload }.
// What was asked for before and comes late is dropped.
export function useLoad(load, inputs) {
  const [got, set] = useState({ loading: true });
  const [turn, again] = useState(0);
  useEffect(() => {
    const end = new AbortController();
    set((old) => ({ ...old, loading: true }));
    load(end.signal).then(
      (data) => { if (!end.signal.aborted) set({ data }); },
      (failure) => { if (!end.signal.aborted) set((old) => ({ data: old.data, failure })); },
    );
    return () => end.abort();
  }, [...inputs, turn]);
  return { ...got, reload: () => again((n) => n + 1) };
}

// usePoll runs something now and every so often, while the page is visible; at most one at a time.
// Every second poll differs by up to a fifth, so that many consoles do not ask in step.
export function usePoll(run, every, inputs) {
  useEffect(() => {
    const end = new AbortController();
    let timer = 0;
    const turn = async () => {
      if (!document.hidden) {
        try {
          await run(end.signal);
        } catch (e) {
          if (!end.signal.aborted && !(e instanceof Failure)) throw e;
        }
      }
      if (!end.signal.aborted) timer = setTimeout(turn, every * (0.9 + Math.random() * 0.2));
    };
    turn();
    return () => { end.abort(); clearTimeout(timer); };
  }, inputs);
}

// Failed says what went wrong with a call, in words for people.
export function Failed({ failure, retry }) {
  if (!failure) return null;
  if (!(failure instanceof Failure)) throw failure;
  const known = ["unreachable", "unavailable", "permission_denied", "unauthenticated", "unimplemented", "not_found", "deadline_exceeded"];
  return html`<div class="note bad" role="alert">
    <p><strong>${known.includes(failure.code) ? word("failure", failure.code) : t("failure.other")}</strong></p>
    ${failure.message && html`<p class="small break">${failure.message}</p>`}
    ${retry && html`<button class="button" onClick=${retry}>${t("again")}</button>`}
  </div>`;
}

// NotOffered says that this server lacks something.
export const NotOffered = ({ what }) => html`<div class="empty"><p>${what}</p><p class="small">${t("notOffered")}</p></div>`;

export function Loading({ load, children }) {
  if (load.failure && load.data === undefined) return html`<${Failed} failure=${load.failure} retry=${load.reload} />`;
  if (load.data === undefined) return html`<p class="muted" aria-busy="true">${t("loading")}</p>`;
  return html`${load.failure && html`<${Failed} failure=${load.failure} retry=${load.reload} />`}${children(load.data)}`;
}

// Time is a moment in the viewer's zone, with its seconds if they matter. The whole of it stands in the title.
export function Time({ ms, distance, seconds }) {
  if (!ms || ms === "0") return html`<span class="muted">–</span>`;
  const d = new Date(Number(ms));
  return html`<time class="nowrap" datetime=${d.toISOString()} title=${longDate(ms)}>${seconds ? moment(ms) : date(ms)}</time>${distance && html` <small class="muted">${ago(ms)}</small>`}`;
}

// Thing is an item, pool, counter or quest by its name, with its id beside it if that differs. Its rarity is a
// mark and a colour, and in a list of entries or items a text too: style.css says which lists those are.
export function Thing({ kind = "items", id, plain }) {
  const d = named(kind, id);
  const step = rarityStep(d.rarity);
  return html`<span class=${step ? `rarity rarity-${step}` : "break"} title=${step ? rarityName(d.rarity) : undefined} dir="auto">${d.name}</span>${
    step > 0 && html`<span class="of-rarity"> <span dir="auto">${rarityName(d.rarity)}</span></span>`}${
    !plain && d.name !== id && html` <span class="id" dir="auto">${id}</span>`}`;
}

// Subject is what a status is about: a pool, an item or another id, with its name if it has one.
export function Subject({ id }) {
  const kind = ["pools", "items", "counters", "quests"].find((k) => named(k, id).name !== id) ?? "items";
  return html`<${Thing} kind=${kind} id=${id} />`;
}

// Picture is the icon of a thing, if it has one that a page may load.
export function Picture({ kind, id }) {
  const { icon } = named(kind, id);
  if (!/^(https:\/\/|\/(?!\/))/.test(icon ?? "")) return null;
  return html`<img class="icon" src=${icon} alt="" loading="lazy" referrerpolicy="no-referrer" />`;
}

export const PlayerLink = ({ id }) => (id ? html`<a class="break" href=${link("players", id)} dir="auto">${id}</a>` : html`<span class="muted">–</span>`);

// EntryName is an entry of a pool, by the rarest thing that it gives, or the only one.
export function EntryName({ entry, id }) {
  const items = entry?.reward?.items ?? [];
  const rarest = items.toSorted((a, b) => step(b) - step(a))[0];
  if (!rarest || (items.length > 1 && step(rarest) === 0) || entry.reward.draws?.length) return html`<span class="break">${entry?.id ?? id}</span>`;
  const many = rarest.min === rarest.max ? num(rarest.min) : `${num(rarest.min)}–${num(rarest.max)}`;
  return html`${many !== "1" && html`<span class="num">${many}</span> `}<${Thing} id=${rarest.item} plain />`;
}

const step = (i) => rarityStep(named("items", i.item).rarity);

// Stacks is a list of items and quantities, on one line.
export function Stacks({ items, sign = "" }) {
  if (!items?.length) return html`<span class="muted">${t("nothing")}</span>`;
  return items.map((s, i) => html`${i > 0 && ", "}<span class="num">${sign}${num(s.quantity)}</span> <${Thing} id=${s.item} plain />`);
}

export function Bar({ part, whole, label }) {
  const share = whole > 0 ? Math.max(0, Math.min(1, part / whole)) : 0;
  return html`<span class=${`bar ${share === 0 ? "out" : share < 0.1 ? "low" : ""}`} role="img" aria-label=${label}>
    <i style=${{ width: `${share * 100}%` }}></i></span>`;
}

export function StatusChip({ status }) {
  return html`<span class=${`chip ${status === "STATUS_OK" ? "good" : "warn"}`}>${word("status", status)}</span>`;
}

// Copy puts a text on the clipboard; where the page may not, it selects nothing and says so.
export function Copy({ text, label }) {
  const [done, set] = useState("");
  const copy = () => navigator.clipboard?.writeText(text).then(() => set(t("copied")), () => set(t("copyFailed"))) ?? set(t("copyFailed"));
  return html`<button class="button" type="button" onClick=${copy}>${done || label || t("copy")}</button>`;
}

export function download(name, text, type) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

// Dialog is a modal dialog: Escape closes it, the focus stays in it and goes back where it was.
export function Dialog({ title, close, children }) {
  const ref = useRef();
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${ref} aria-labelledby="dialog-title" onClose=${close} onCancel=${(e) => { e.preventDefault(); close(); }}>
    <div class="dialog"><h2 id="dialog-title">${title}</h2>${children}</div></dialog>`;
}

export function Field({ label, hint, children, error }) {
  return html`<label class="field"><span>${label} ${hint && html`<span class="hint">${hint}</span>`}</span>${children}
    ${error && html`<span class="small" style=${{ color: "var(--bad)" }} role="alert">${error}</span>`}</label>`;
}

// link makes the address of a page: its name, then what it is about.
export function link(page, ...rest) {
  return `#/${[page, ...rest.map(encodeURIComponent)].join("/")}?realm=${encodeURIComponent(app.realm)}`;
}

export function Head({ title, children }) {
  return html`<header class="head"><h1 tabindex="-1">${title}</h1>${children && html`<p>${children}</p>`}</header>`;
}

// Page sizes of long lists.
export function More({ shown, all, more }) {
  if (shown >= all) return null;
  return html`<div class="row"><button class="button" type="button" onClick=${more}>${t("showMore")}</button>
    <span class="small muted">${t("shownOf", { shown: num(shown), all: num(all) })}</span></div>`;
}
