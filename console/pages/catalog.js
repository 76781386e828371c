// Catalog: what is in force, a new one with its plan and simulation, versions and what differs.
import { html, useEffect, useRef, useState } from "../dom.js";
import { Failure, call, send } from "../api.js";
import { current, num, percent, t, word } from "../i18n.js";
import { app, forget, loadNames, may, notePool } from "../store.js";
import { diff, folded } from "../diff.js";
import { Simulation, called, chance } from "../simulation.js";
import { Editor, placeOf } from "../editor.js";
import { Copy, Failed, Field, Head, Loading, More, NotOffered, Picture, Stacks, Thing, Time, download, link, useApp, useLoad } from "../ui.js";

const TABS = ["inForce", "new", "proposals", "versions", "compare"];
// The catalogs of the package examples, which the server has beside these pages.
const EXAMPLES = ["gacha-banner", "instant-win", "box-raffle", "boxes", "drop-table", "collection", "bottle-caps", "campaign", "quests", "season", "farm", "rounds"];
const draft = { yaml: "", realm: "" }; // survives a look at another page

const toText = (base64) => new TextDecoder().decode(Uint8Array.from(atob(base64 ?? ""), (c) => c.charCodeAt(0)));
function toBase64(text) {
  let binary = "";
  for (const b of new TextEncoder().encode(text)) binary += String.fromCharCode(b);
  return btoa(binary);
}

const exported = (version, signal) => call("ExportCatalog", { realm: app.realm, version }, { signal }).then((c) => ({ ...c, text: toText(c.yaml) }));

export default function Catalog({ rest }) {
  useApp();
  const tab = TABS.includes(rest[0]) ? rest[0] : "inForce";
  if (draft.realm !== app.realm) Object.assign(draft, { yaml: "", realm: app.realm });
  return html`<div class="page"><${Head} title=${t("page.catalog")}>${t("catalog.text")}</${Head}>
    <nav class="segments" aria-label=${t("page.catalog")}>${TABS.map((one) => html`<a class="button" key=${one} href=${link("catalog", one)} aria-current=${one === tab ? "page" : undefined} aria-pressed=${undefined}
      style=${one === tab ? { background: "var(--accent-soft)", color: "var(--accent)", borderColor: "var(--accent)" } : {}}>${t(`catalog.${one}`)}</a>`)}</nav>
    ${tab === "inForce" ? html`<${InForce} />` : tab === "new" ? html`<${New} />` : tab === "proposals" ? html`<${Proposals} id=${rest[1]} />`
      : tab === "versions" ? html`<${Versions} version=${rest[1]} />` : html`<${Compare} from=${rest[1]} to=${rest[2]} />`}</div>`;
}

// In force -----------------------------------------------------------------------------------

function InForce() {
  const load = useLoad((signal) => call("GetCatalog", { realm: app.realm, itemLimit: 10000 }, { signal }), []);
  const [shown, setShown] = useState(50);
  return html`<${Loading} load=${load}>${(c) => !c.version ? html`<${None} />` : html`
    <section class="card" id="catalog"><div class="row apart top-aligned"><h2>${c.name || t("catalog.unnamed")}</h2><${Source} version=${c.version} /></div>
      <dl class="stats"><div><dt>${t("catalog.version")}</dt><dd>${num(c.version)}</dd></div><div><dt>${t("catalog.items")}</dt><dd>${num(c.itemCount ?? 0)}</dd></div>
        <div><dt>${t("catalog.pools")}</dt><dd>${num(c.pools?.length ?? 0)}</dd></div><div><dt>${t("catalog.place")}</dt><dd><a href=${link("proof", c.position, "0")}>${num(c.position)}</a></dd></div></dl>
      ${c.start?.length > 0 && html`<p><strong>${t("catalog.start")}</strong> <${Stacks} items=${c.start} /></p>`}</section>
    <section class="card"><h2>${t("catalog.pools")}</h2>${(c.pools ?? []).map((p) => html`<${PoolPart} key=${p} id=${p} />`)}</section>
    <section class="card"><h2>${t("catalog.items")}</h2><div class="table" tabindex="0" role="region" aria-label=${t("catalog.items")}><table><thead><tr><th scope="col">${t("act.item")}</th><th scope="col">${t("catalog.kind")}</th><th scope="col" class="num">${t("catalog.most")}</th></tr></thead>
      <tbody>${(c.items ?? []).slice(0, shown).map((i) => html`<tr key=${i.id}><th scope="row"><span class="row"><${Picture} kind="items" id=${i.id} /><span><${Thing} id=${i.id} /></span></span></th><td>${word("itemKind", i.kind)}${i.family && html` <span class="chip">${i.family}</span>`}</td><td class="num">${i.most && i.most !== "0" ? num(i.most) : "–"}</td></tr>`)}</tbody></table></div>
      <${More} shown=${shown} all=${c.items?.length ?? 0} more=${() => setShown(shown + 200)} /></section>`}</${Loading}>`;
}

// None says that there is no catalog, and leads whoever may make one to the page that does.
function None() {
  return html`<div class="empty" id="no-catalog"><p>${t("catalog.none")}</p>${(may("admin") || may("propose")) && html`<p>${t("catalog.noneText")}</p>
    <p><a class="button primary" href=${link("catalog", "new")}>${t("catalog.makeFirst")}</a></p>`}</div>`;
}

function Source({ version }) {
  const [text, set] = useState(null);
  const [failure, fail] = useState(null);
  const get = () => exported(version).then((c) => set(c.text), fail);
  if (failure) return html`<${Failed} failure=${failure} retry=${get} />`;
  return text === null ? html`<button class="button" type="button" onClick=${get}>${t("catalog.yaml")}</button>`
    : html`<span class="row"><${Copy} text=${text} /><button class="button" type="button" onClick=${() => download(`${app.realm}-${version}.yaml`, text, "application/yaml")}>${t("download")}</button></span>`;
}

// PoolPart is a pool, read when it is opened.
function PoolPart({ id }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(e) => setOpen(e.target.open)}><summary><${Thing} kind="pools" id=${id} /></summary>${open && html`<${PoolEntries} id=${id} />`}</details>`;
}

function PoolEntries({ id }) {
  const load = useLoad(async (signal) => {
    const [{ pool }, odds] = await Promise.all([call("GetPool", { realm: app.realm, pool: id, entryLimit: 500 }, { signal }),
      call("GetOdds", { realm: app.realm, pool: id }, { signal }).catch((e) => { if (e instanceof Failure) return null; throw e; })]);
    notePool(pool);
    return { pool, chances: new Map((odds?.odds?.outcomes ?? []).filter((o) => o.pool === id).map((o) => [o.entry, o.chance])) };
  }, [id]);
  return html`<${Loading} load=${load}>${({ pool, chances }) => html`<div class="stack">
    <p class="small muted">${word("mode", pool.mode)}${(pool.prices ?? []).map((p, i) => html`${i ? ` ${t("or")} ` : " · "}<${Stacks} items=${p.items} />`)}${(pool.pity ?? []).map((p) => ` · ${t("catalog.pity", { track: p.name, n: num(p.certain ?? 0) })}`)}</p>
    <div class="table" tabindex="0" role="region" aria-label=${pool.name || id}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col">${t("catalog.gives")}</th><th scope="col" class="num">${t("odds.chance")}</th><th scope="col" class="num">${t("odds.exact")}</th><th scope="col" class="num">${t("pools.left")}</th></tr></thead>
      <tbody>${(pool.entries ?? []).map((e) => html`<tr key=${e.id}><th scope="row" class="break">${e.id}${e.group && html` <span class="chip">${e.group}</span>`}</th><td><${Reward} reward=${e.reward} /></td>
        <td class="num">${chances.has(e.id) ? percent(chances.get(e.id)?.value ?? 0) : "–"}</td><td class="num muted">${(chances.get(e.id)?.exact ?? "").slice(0, 20) || "–"}</td><td class="num">${e.left === undefined ? "∞" : num(e.left)}</td></tr>`)}</tbody></table></div></div>`}</${Loading}>`;
}

function Reward({ reward }) {
  const parts = [
    ...(reward?.items ?? []).map((i) => html`<span class="num">${i.min === i.max ? num(i.min) : `${num(i.min)}–${num(i.max)}`}</span> <${Thing} id=${i.item} plain />`),
    ...(reward?.draws ?? []).map((d) => html`${t("catalog.drawsFrom", { n: d.min === d.max ? num(d.min) : `${num(d.min)}–${num(d.max)}` })} <${Thing} kind="pools" id=${d.pool} plain />`),
    ...(reward?.codes ?? []).map((c) => html`${t("catalog.codeOf", { list: c })}`),
  ];
  return parts.length === 0 ? html`<span class="muted">${t("nothing")}</span>` : parts.map((p, i) => html`${i > 0 && ", "}${p}`);
}

// A new one ----------------------------------------------------------------------------------

function New() {
  const [yaml, setYaml] = useState(draft.yaml);
  const [state, set] = useState({ step: "edit" });
  const [reason, setReason] = useState("");
  const [accepted, accept] = useState(false);
  const box = useRef();
  const edit = (text) => { draft.yaml = text; setYaml(text); set({ step: "edit" }); accept(false); };
  const [before, keep] = useState(""); // the text that a button has replaced
  const replace = (text) => { keep(yaml.trim() && yaml !== text ? yaml : ""); edit(text); };

  const check = async () => {
    set({ step: "edit", busy: true });
    try {
      const expectedVersion = (await call("GetCatalog", { realm: app.realm, itemLimit: 1 })).version ?? "0";
      const { plan, outline } = await call("ApplyCatalog", { realm: app.realm, yaml: toBase64(yaml), dryRun: true, expectedVersion, language: current() }, { timeout: 120_000 });
      set({ step: "plan", plan: plan ?? {}, outline, expectedVersion });
    } catch (failure) {
      // A key that may only propose gets the plan with the proposal.
      if (failure.code === "permission_denied" && may("propose")) set({ step: "plan", plan: null, expectedVersion: (await call("GetCatalog", { realm: app.realm, itemLimit: 1 })).version ?? "0" });
      else set({ step: "edit", failure });
    }
  };
  const finish = async (method) => {
    set({ ...state, busy: true, failure: null });
    try {
      const answer = await send(method, { realm: app.realm, yaml: toBase64(yaml), expectedVersion: state.expectedVersion, reason: reason.trim() });
      draft.yaml = "";
      forget();
      loadNames();
      set({ step: "done", method, answer });
    } catch (failure) {
      set({ ...state, busy: false, failure });
    }
  };
  const inForce = useLoad((signal) => call("GetCatalog", { realm: app.realm, itemLimit: 1 }, { signal }), []);
  const none = inForce.data !== undefined && (inForce.data.version ?? "0") === "0";
  const file = async (e) => { if (e.target.files[0]) replace(await e.target.files[0].text()); };

  if (state.step === "done") {
    return html`<section class="card"><p class="note good" role="status" tabindex="-1">${state.method === "ApplyCatalog" ? t("catalog.applied", { version: num(state.answer.plan?.version ?? 0) }) : t("catalog.proposed")}</p>
      <div class="row"><a class="button primary" href=${link("catalog", state.method === "ApplyCatalog" ? "inForce" : "proposals")}>${t("catalog.show")}</a><button class="button" type="button" onClick=${() => edit("")}>${t("catalog.another")}</button></div></section>`;
  }
  const warnings = (state.plan?.changes ?? []).filter((c) => c.warning);
  return html`<section class="card"><h2>${t("catalog.new")}</h2>
      <div class="row" style=${{ alignItems: "end" }}><label class="field"><span>${t("catalog.file")}</span><input type="file" name="file" accept=".yaml,.yml,application/yaml,text/yaml" onChange=${file} /></label>
        <button class="button" type="button" name="load" disabled=${none} title=${none ? t("catalog.none") : undefined} onClick=${() => exported("0").then((c) => replace(c.text), (failure) => set({ step: "edit", failure }))}>${t("catalog.beginWith")}</button>
        <${Example} use=${replace} fail=${(failure) => set({ step: "edit", failure })} />
        ${before && html`<button class="button" type="button" name="bring-back" onClick=${() => replace(before)}>${t("catalog.bringBack")}</button>`}</div>
      <${Editor} label=${t("catalog.source")} name="yaml" box=${box} value=${yaml} bad=${faultsOf(state.failure).map((v) => v.line)} change=${edit} />
      ${state.failure && html`<${Faults} failure=${state.failure} yaml=${yaml} box=${box} />`}
      <div class="row"><button class="button primary" type="button" name="check" disabled=${!yaml.trim() || state.busy} onClick=${check}>${t("catalog.check")}</button>
        ${state.busy && html`<span class="muted" aria-busy="true">${t("loading")}</span>`}</div></section>
    ${state.step === "plan" && html`${state.plan ? html`<${Plan} plan=${state.plan} outline=${state.outline} />` : html`<section class="card"><p class="note">${t("catalog.planLater")}</p></section>`}
      ${!state.plan?.unchanged && html`<section class="card" id="decide"><h2>${t("catalog.decide")}</h2>
        <${Field} label=${t("act.reason")} hint=${t("act.reasonHint")}><input name="reason" maxlength="1024" autocomplete="off" value=${reason} onInput=${(e) => setReason(e.target.value)} /></${Field}>
        ${warnings.length > 0 && html`<label class="check"><input type="checkbox" name="accept" checked=${accepted} onChange=${(e) => accept(e.target.checked)} />${t("catalog.acceptWarnings", { n: num(warnings.length) })}</label>`}
        ${state.failure && html`<${Failed} failure=${state.failure} />`}
        <p class="small muted">${state.expectedVersion === "0" ? t("catalog.effectFirst") : t("catalog.effect", { from: num(state.expectedVersion), to: num(state.plan?.version ?? BigInt(state.expectedVersion) + 1n) })}</p>
        <div class="row">${may("admin") && html`<button class="button primary" type="button" name="apply" disabled=${state.busy || !reason.trim() || (warnings.length > 0 && !accepted)} onClick=${() => finish("ApplyCatalog")}>${t("catalog.apply")}</button>`}
          ${may("propose") && html`<button class="button" type="button" name="propose" disabled=${state.busy || !reason.trim()} onClick=${() => finish("ProposeCatalog")}>${t("catalog.propose")}</button>`}</div></section>`}
      <${Simulation} yaml=${() => toBase64(yaml)} outline=${state.outline} />`}`;
}

// Example fills the box with a catalog that works.
function Example({ use, fail }) {
  const [name, choose] = useState(EXAMPLES[0]);
  const get = () => fetch(`examples/${name}.yaml`).then((r) => (r.ok ? r.text() : Promise.reject(new Error())))
    .then(use, () => fail(new Failure("unreachable", "")));
  return html`<span class="row" style=${{ alignItems: "end", flexWrap: "nowrap", maxWidth: "100%" }}><label class="field"><span>${t("catalog.example")}</span>
    <select name="example" value=${name} onChange=${(e) => choose(e.target.value)}>${EXAMPLES.map((one) => html`<option key=${one} value=${one}>${t(`example.${one}`)}</option>`)}</select></label>
    <button class="button" type="button" name="use-example" onClick=${get}>${t("catalog.useExample")}</button></span>`;
}

const faultsOf = (failure) => (failure instanceof Failure ? failure.violations.filter((v) => v.line) : []);

// Faults says what is wrong with a catalog, and shows the lines.
function Faults({ failure, yaml, box }) {
  const faults = faultsOf(failure);
  useEffect(() => { if (faults.length) go(faults[0]); }, [failure]);
  if (!faults.length) return html`<${Failed} failure=${failure} />`;
  const lines = yaml.split("\n");
  const at = (v) => placeOf(lines[v.line - 1] ?? "", v.column ?? 1);
  function go(v) {
    const [from, to] = at(v);
    const before = lines.slice(0, v.line - 1).reduce((n, l) => n + l.length + 1, 0);
    box.current.focus();
    box.current.setSelectionRange(before + from, before + to);
    box.current.scrollTop = (v.line - 4) * (box.current.scrollHeight / lines.length);
  }
  return html`<div class="note bad" role="alert" id="faults"><p><strong>${t("catalog.faults", { n: num(faults.length) })}</strong></p><ul class="list">${faults.map((v) => {
    const line = lines[v.line - 1] ?? "";
    const [from, to] = at(v);
    return html`<li><button class="button quiet" type="button" onClick=${() => go(v)}>${t("catalog.lineColumn", { line: num(v.line), column: num(v.column ?? 0) })}</button> <span class="break">${v.description}</span>
      <div class="at-fault" tabindex="0" role="region" aria-label=${t("catalog.lineColumn", { line: v.line, column: v.column ?? 0 })}>${line.slice(0, from)}<mark>${line.slice(from, to) || " "}</mark>${line.slice(to)}</div></li>`;
  })}</ul></div>`;
}

const SIGNS = { ADDED: ["+", "added"], REMOVED: ["−", "removed"], CHANGED: ["~", "changed"], NOTICE: ["!", "changed"] };
const MANY = 12; // changes: more are folded

// kindOf returns what a change is of, and what becomes of it: ["POOL", "ADDED"].
const kindOf = (c) => (c.kind ?? "").replace("CHANGE_KIND_", "").split("_");

export function Plan({ plan, outline }) {
  if (plan.unchanged) return html`<section class="card"><p class="note">${t("catalog.unchanged", { version: num(plan.version ?? 0) })}</p></section>`;
  const changes = plan.changes ?? [];
  const warnings = changes.filter((c) => c.warning);
  const first = plan.version === "1";
  return html`<section class="card" id="plan"><div class="row apart"><h2>${t("catalog.plan")}</h2><span class="row">${warnings.length > 0 && html`<span class="chip warn">${t("catalog.warnings", { n: num(warnings.length) })}</span>`}${!first && html`<span class="chip">${t("catalog.changes", { n: num(changes.length) })}</span>`}</span></div>
    ${warnings.slice(0, MANY).map((c) => html`<${Warning} c=${c} />`)}
    ${warnings.length > MANY && html`<details><summary>${t("catalog.moreWarnings", { n: num(warnings.length - MANY) })}</summary><div class="stack">${warnings.slice(MANY).map((c) => html`<${Warning} c=${c} />`)}</div></details>`}
    ${first ? html`<${FirstPlan} changes=${changes} outline=${outline} />` : changes.length <= MANY ? html`<${Changes} changes=${changes} />`
      : html`<details><summary>${t("catalog.allChanges", { n: num(changes.length) })}</summary><${Changes} changes=${changes} /></details>`}
    ${plan.kept > 0 && html`<p class="small muted">${t("catalog.kept", { n: num(plan.kept) })}</p>`}</section>`;
}

const Warning = ({ c }) => html`<p class="note warn"><strong class="break">${c.id}${c.entry && ` / ${c.entry}`}</strong> ${c.warning}</p>`;

// Changes has a block for each change: what it is of, a table of what differs, and what the table does not say.
function Changes({ changes }) {
  const [shown, setShown] = useState(60);
  return html`<div>${changes.slice(0, shown).map((c) => {
    const [of, what] = [kindOf(c)[0], kindOf(c).at(-1)];
    const [sign, kind] = SIGNS[what] ?? ["·", ""];
    // The server's sentence begins with what the table has: "pool box, entry b: stock 1 instead of 60; 3 drawn already".
    const told = c.settings?.length > 0 && what === "CHANGED" && of !== "REALM";
    const more = told ? c.text.split("; ").slice(1).join("; ") : "";
    return html`<div class=${`change ${kind}`}><span class="sign" aria-hidden="true">${sign}</span><div style=${{ minWidth: 0 }}><span class="break">${told ? c.text.split(": ")[0] : c.text}</span>
      ${c.settings?.length > 0 && html`<${Settings} all=${c.settings} label=${c.text} />`}
      ${more ? html`<span class="small muted break">${more}</span>` : c.drawn && c.drawn !== "0" && html`<span class="small muted">${t("catalog.drawnSoFar", { n: num(c.drawn) })}</span>`}</div></div>`;
  })}</div><${More} shown=${shown} all=${changes.length} more=${() => setShown(shown + 200)} />`;
}

// Settings is a table of settings, whose columns are where those of all others are. What was added or removed has one
// value.
function Settings({ all, label }) {
  const both = all.some((s) => s.before && s.after);
  return html`<table class="settings" aria-label=${label}><tbody>${all.map((s) => html`<tr><th scope="row" class="break">${s.name}</th>${both ? html`<td class="muted break was">${s.before || "–"}</td><td class="to">→</td><td class="break"><strong>${s.after || "–"}</strong></td>`
    : html`<td colspan="3" class="break">${s.after || s.before}</td>`}</tr>`)}</tbody></table>`;
}

const SHOWN = ["name", "description", "rarity", "metadata", "icon"]; // displays, which are no rules

// FirstPlan shows what a first catalog has, as nothing changes by it.
function FirstPlan({ changes, outline }) {
  const name = called(outline);
  const of = (kind) => changes.filter((c) => kindOf(c)[0] === kind);
  const pools = of("POOL");
  const entries = new Map(pools.map((p) => [p.id, []]));
  for (const e of of("ENTRY")) entries.get(e.id)?.push(e);
  const others = changes.filter((c) => !["POOL", "ENTRY", "ITEM", "NOTICE"].includes(kindOf(c)[0]));
  const items = of("ITEM").map((c) => c.id);
  const start = outline?.start ?? [];
  return html`<p class="note good">${t("catalog.first")}</p>
    ${start.length > 0 && html`<p><strong>${t("catalog.start")}</strong> ${start.map((s, i) => html`${i > 0 && ", "}${num(s.quantity)} ${name("items", s.item)}`)}</p>`}
    <div>${pools.slice(0, 500).map((p, i) => html`<details key=${p.id} open=${pools.length <= 2 || i === 0} data-planned=${p.id}><summary>${name("pools", p.id)}${name("pools", p.id) !== p.id && html` <span class="id" style=${{ display: "inline" }}>${p.id}</span>`} <span class="small muted">${t("catalog.entries", { n: num(entries.get(p.id).length) })}</span></summary>
      <${PlannedPool} label=${`${t("pool")} ${p.id}`} settings=${p.settings ?? []} entries=${entries.get(p.id)} name=${name} /></details>`)}</div>
    ${pools.length > 0 && html`<p class="small muted">${t("catalog.firstChance")}</p>`}
    <details><summary>${t("catalog.items")} <span class="small muted">${num(items.length)}</span></summary><p class="break">${items.slice(0, 1000).map((id, i) => html`${i > 0 && ", "}${name("items", id)}${name("items", id) !== id && html` <span class="id">${id}</span>`}`)}${items.length > 1000 && " …"}</p></details>
    ${others.length > 0 && html`<details><summary>${t("catalog.others")} <span class="small muted">${num(others.length)}</span></summary><${Changes} changes=${others} /></details>`}`;
}

function PlannedPool({ label, settings, entries, name }) {
  const [shown, setShown] = useState(50);
  const get = (all, key) => all?.find((s) => s.name === key)?.after;
  const mode = get(settings, "mode") ?? "weighted";
  const rules = settings.filter((s) => !SHOWN.includes(s.name) && s.name !== "mode");
  const weight = (e) => Number((mode === "raffle" ? get(e.settings, "stock") : get(e.settings, "weight")) ?? 0) || 0;
  const sum = entries.reduce((n, e) => n + weight(e), 0);
  const of = (e) => (mode === "each" ? Number(get(e.settings, "chance") ?? 0) / 100 : sum > 0 ? weight(e) / sum : 0);
  return html`<div class="stack"><p class="small muted">${word("mode", `POOL_MODE_${mode.toUpperCase()}`)}</p>
    <div class="table" tabindex="0" role="region" aria-label=${label}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col">${t("catalog.gives")}</th><th scope="col" class="num">${t("odds.chance")}</th><th scope="col" class="num">${t("simulation.stockOf")}</th></tr></thead>
      <tbody>${entries.slice(0, shown).map((e) => html`<tr key=${e.entry}><th scope="row" class="break">${e.entry}${get(e.settings, "group") && html` <span class="chip">${get(e.settings, "group")}</span>`}</th><td class="break">${given(get(e.settings, "reward"), name)}</td>
        <td class="num">${of(e) > 0 ? chance(of(e)) : "–"}</td><td class="num">${e.after?.unlimited ? "∞" : num(e.after?.stock ?? 0)}</td></tr>`)}</tbody></table></div>
    <${More} shown=${shown} all=${entries.length} more=${() => setShown(shown + 200)} />
    ${rules.length > 0 && html`<${Settings} all=${rules} label=${label} />`}</div>`;
}

// given is a reward in words, if it is a simple one: the plan has it as the catalog writes it.
function given(text, name) {
  if (!text) return html`<span class="muted">${t("nothing")}</span>`;
  const pool = /^\{pool: ([\w.-]+)\}$/.exec(text);
  if (pool) return t("catalog.drawOf", { pool: name("pools", pool[1]) });
  const items = /^\{items: \{((?:[\w.-]+: (?:\d+|\{min: \d+, max: \d+\})(?:, )?)+)\}\}$/.exec(text);
  if (!items) return html`<code class="break">${text}</code>`;
  return [...items[1].matchAll(/([\w.-]+): (?:(\d+)|\{min: (\d+), max: (\d+)\})/g)]
    .map(([, id, n, min, max]) => `${n ? num(n) : `${num(min)}–${num(max)}`} ${name("items", id)}`).join(", ");
}

// Proposals ----------------------------------------------------------------------------------

function Proposals({ id }) {
  const load = useLoad((signal) => call("ListProposals", { realm: app.realm }, { signal }), [id]);
  if (load.failure?.notOffered) return html`<${NotOffered} what=${t("catalog.noProposals")} />`;
  if (id) return html`<${Proposal} id=${id} />`;
  return html`<section class="card"><h2>${t("catalog.proposals")}</h2><${Loading} load=${load}>${({ proposals = [] }) => proposals.length === 0 ? html`<p class="muted">${t("catalog.noneProposed")}</p>`
    : html`<ul class="list">${proposals.map((p) => html`<li key=${p.number}><a href=${link("catalog", "proposals", p.number)}>${t("catalog.proposal", { number: num(p.number) })}</a> <span class="break">${p.name}</span> <strong class="break">${p.by}</strong> <span class="break">${p.reason}</span> <small class="muted"><${Time} ms=${p.timeUnixMs} /></small></li>`)}</ul>`}</${Loading}></section>`;
}

function Proposal({ id }) {
  const [reason, setReason] = useState("");
  const [state, set] = useState({});
  const load = useLoad(async (signal) => {
    const got = await call("GetProposal", { realm: app.realm, number: id }, { signal });
    return { ...got.proposal, yaml: got.yaml, plan: got.plan };
  }, [id]);
  const finish = async (method) => {
    set({ busy: true });
    try {
      await send(method, { realm: app.realm, number: id, reason: reason.trim() });
      forget();
      loadNames();
      set({ done: method });
    } catch (failure) {
      set({ failure });
    }
  };
  return html`<${Loading} load=${load}>${(p) => html`<section class="card" id="proposal"><h2>${t("catalog.proposal", { number: num(id) })}</h2>
      <dl class="pairs"><dt>${t("why.who")}</dt><dd>${p.by || "–"}</dd><dt>${t("act.reason")}</dt><dd>${p.reason || "–"}</dd><dt>${t("why.when")}</dt><dd><${Time} ms=${p.timeUnixMs} /></dd><dt>${t("catalog.over")}</dt><dd class="num">${num(p.overVersion ?? 0)}</dd></dl>
      <div class="row"><a class="button" href=${link("catalog", "proposals")}>${t("back")}</a>${p.yaml && html`<${Copy} text=${toText(p.yaml)} label=${t("catalog.yaml")} />`}</div></section>
    ${p.plan && html`<${Plan} plan=${p.plan} />`}
    <section class="card">${state.done ? html`<p class="note good" role="status">${t(state.done === "ApproveCatalog" ? "catalog.approved" : "catalog.withdrawn")}</p>` : html`
      <${Field} label=${t("act.reason")} hint=${t("act.reasonHint")}><input name="reason" maxlength="1024" value=${reason} onInput=${(e) => setReason(e.target.value)} /></${Field}>
      ${state.failure && html`<${Failed} failure=${state.failure} />`}
      <div class="row">${may("approve") && p.by !== app.access?.name && html`<button class="button primary" name="approve" type="button" disabled=${state.busy || !reason.trim()} onClick=${() => finish("ApproveCatalog")}>${t("catalog.approve")}</button>`}
        ${(may("propose") || may("approve")) && html`<button class="button" name="withdraw" type="button" disabled=${state.busy || !reason.trim()} onClick=${() => finish("WithdrawProposal")}>${t("catalog.withdraw")}</button>`}</div>`}</section>`}</${Loading}>`;
}

// Versions -----------------------------------------------------------------------------------

function Versions({ version }) {
  const [before, setBefore] = useState(["0"]);
  const load = useLoad((signal) => call("ListCatalogs", { realm: app.realm, before: before.at(-1), limit: 25 }, { signal, timeout: 120_000 }), [before.at(-1)]);
  const back = async (v) => {
    draft.yaml = (await exported(v)).text;
    location.hash = link("catalog", "new");
  };
  return html`<section class="card"><h2>${t("catalog.versions")}</h2><${Loading} load=${load}>${({ catalogs = [], oldest }) => catalogs.length === 0 ? html`<${None} />` : html`
    <div class="table" tabindex="0" role="region" aria-label=${t("catalog.versions")}><table><thead><tr><th scope="col">${t("catalog.version")}</th><th scope="col">${t("why.when")}</th><th scope="col">${t("why.who")}</th><th scope="col"><span class="vh">${t("player.actions")}</span></th></tr></thead>
      <tbody>${catalogs.map((c, i) => html`<tr key=${c.version}><th scope="row">${num(c.version)}</th><td><${Time} ms=${c.timeUnixMs} /><span class="small muted" style=${{ display: "block" }}>${c.name} · ${t("catalog.sizes", { items: num(c.items ?? 0), pools: num(c.pools ?? 0) })}</span></td>
        <td><strong class="break">${c.by || "–"}</strong><span class="small break" style=${{ display: "block" }}>${c.reason}</span></td>
        <td><span class="row"><${Source} version=${c.version} />
          ${BigInt(c.version) > BigInt(oldest ?? 1) && html`<a class="button" href=${link("catalog", "compare", String(BigInt(c.version) - 1n), c.version)}>${t("catalog.differs")}</a>`}
          ${!(i === 0 && before.length === 1) && html`<button class="button" type="button" data-back=${c.version} onClick=${() => back(c.version)}>${t("catalog.backTo")}</button>`}</span></td></tr>`)}</tbody></table></div>
    <div class="row">${before.length > 1 && html`<button class="button" type="button" onClick=${() => setBefore(before.slice(0, -1))}>${t("newer")}</button>`}
      ${catalogs.length === 25 && BigInt(catalogs.at(-1).version) > BigInt(oldest ?? 1) && html`<button class="button" type="button" onClick=${() => setBefore([...before, catalogs.at(-1).version])}>${t("older")}</button>`}</div>`}</${Loading}></section>`;
}

function Compare({ from = "", to = "" }) {
  const [a, setA] = useState(from);
  const [b, setB] = useState(to);
  const whole = (v) => /^\d+$/.test(v);
  const load = useLoad(async (signal) => {
    if (!whole(from) || !whole(to)) return null;
    const [x, y] = await Promise.all([exported(from, signal), exported(to, signal)]);
    return folded(diff(x.text, y.text));
  }, [from, to]);
  const go = (e) => {
    e.preventDefault();
    if (whole(a) && whole(b)) location.hash = link("catalog", "compare", a, b);
  };
  return html`<section class="card"><h2>${t("catalog.compare")}</h2>
    <form class="row" onSubmit=${go}><label class="field"><span>${t("catalog.fromVersion")}</span><input name="from" inputmode="numeric" value=${a} onInput=${(e) => setA(e.target.value)} /></label>
      <label class="field"><span>${t("catalog.toVersion")}</span><input name="to" inputmode="numeric" value=${b} onInput=${(e) => setB(e.target.value)} /></label><button class="button primary" style=${{ alignSelf: "end" }}>${t("catalog.compare")}</button></form>
    <${Loading} load=${load}>${(lines) => lines === null ? html`<p class="muted">${t("catalog.compareText")}</p>` : html`<${Diff} lines=${lines} />`}</${Loading}></section>`;
}

function Diff({ lines }) {
  if (!lines.some((l) => l.sign && l.sign !== " ")) return html`<p class="note">${t("catalog.same")}</p>`;
  return html`<div class="diff" tabindex="0" role="region" aria-label=${t("catalog.compare")}>${lines.map((l) => l.skipped ? html`<div class="skip-lines">${t("catalog.skipped", { n: num(l.skipped) })}</div>`
    : html`<div class=${l.sign === "+" ? "plus" : l.sign === "-" ? "minus" : ""}><span class="at num">${l.sign === "-" ? l.left : l.right}</span><span>${l.sign === "-" ? "−" : l.sign}</span><span>${l.text}</span></div>`)}</div>`;
}
