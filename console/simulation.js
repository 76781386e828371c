// A catalog played by many simulated players, on the server: see Simulate. It changes nothing.
import { html, useMemo, useState } from "./dom.js";
import { call } from "./api.js";
import { current, dec, num, percent, t, word } from "./i18n.js";
import { app, may, named, names, offers } from "./store.js";
import { Plot } from "./plot.js";
import { Failed, Field, NotOffered } from "./ui.js";

const COLOURS = ["--accent", "--rarity-5", "--rarity-3", "--rarity-2", "--rarity-6", "--rarity-4"];
const MOST_OPTIONS = 500; // of a list that is shown whole

// few writes a number that can be small, so that it is not 0: with four digits that count.
const few = (n) => (n >= 1000 ? dec(n, 0) : new Intl.NumberFormat(current(), { maximumSignificantDigits: 4 }).format(n));

// chance writes one as percent does, but only what is certain is 100 %.
export const chance = (x) => (x > 0.999 && x < 1 ? new Intl.NumberFormat(current(), { style: "percent", maximumSignificantDigits: 6 }).format(x) : percent(x));

// called returns what finds the name of a thing of the catalog that was checked, or else of the one in force.
export function called(outline) {
  const found = { items: new Map((outline?.items ?? []).map((i) => [i.id, i.display?.name || i.name])), pools: new Map((outline?.pools ?? []).map((p) => [p.id, p.display?.name])) };
  return (kind, id) => found[kind].get(id) || (outline ? id : named(kind, id).name);
}

// Simulation tries the catalog that yaml gives, in base64; an empty one is that in force. outline says what it has,
// if its check did.
export function Simulation({ yaml, outline }) {
  const name = useMemo(() => called(outline), [outline, names()]);
  const pools = outline ? (outline.pools ?? []).filter((p) => !p.internal).map((p) => p.id) : names()?.poolIds ?? [];
  const items = outline ? (outline.items ?? []).map((i) => i.id) : [...(names()?.items.keys() ?? [])];
  const [form, setForm] = useState({ pool: pools[0] ?? "", players: "1000", draws: "100", until: "" });
  const [state, set] = useState({});
  const change = (e) => setForm({ ...form, [e.target.name.replace("sim-", "")]: e.target.value });
  if (offers("simulate") === false) return html`<section class="card" id="simulation"><h2>${t("simulation.title")}</h2><${NotOffered} what=${t("simulation.none")} /></section>`;
  if (!may("simulate")) return html`<section class="card" id="simulation"><h2>${t("simulation.title")}</h2><p class="muted">${t("failure.permission_denied")}</p></section>`;
  const run = async (e) => {
    e.preventDefault();
    set({ busy: true });
    const id = (kind, ids, text) => (ids.includes(text) ? text : ids.find((one) => name(kind, one) === text) ?? text);
    try {
      const request = { realm: app.realm, yaml: yaml(), pool: id("pools", pools, form.pool.trim()), players: Number(form.players) || 0, draws: Number(form.draws) || 0, until: id("items", items, form.until.trim()), seed: "1" };
      set({ report: await call("Simulate", request, { timeout: 300_000 }), pool: request.pool });
    } catch (failure) {
      set({ failure });
    }
  };
  return html`<section class="card" id="simulation"><h2>${t("simulation.title")}</h2><p class="small muted">${t("simulation.text")}</p>
    <form class="row" style=${{ alignItems: "end" }} onSubmit=${run}>
      <${Choose} label=${t("pool")} name="sim-pool" ids=${pools} called=${(id) => name("pools", id)} whole=${outline} value=${form.pool} change=${change} />
      <label class="field" style=${{ flex: "0 1 7rem" }}><span>${t("simulation.players")}</span><input name="sim-players" inputmode="numeric" value=${form.players} onInput=${change} /></label>
      <label class="field" style=${{ flex: "0 1 7rem" }}><span>${t("simulation.draws")}</span><input name="sim-draws" inputmode="numeric" value=${form.draws} onInput=${change} /></label>
      <${Choose} label=${t("simulation.until")} name="sim-until" ids=${items} called=${(id) => name("items", id)} whole=${outline} value=${form.until} change=${change} none=${t("simulation.nobodyStops")} />
      <button class="button" name="simulate" disabled=${state.busy || !form.pool.trim()}>${state.busy ? t("loading") : t("simulation.run")}</button></form>
    ${state.failure && html`<${Failed} failure=${state.failure} />`}
    ${state.report && html`<${Report} r=${state.report} pool=${state.pool} name=${name} />`}</section>`;
}

// Choose is a list of what there is, by name. If that is not known, or much, it is a field that takes ids and names.
function Choose({ label, name, ids, called, whole, value, change, none }) {
  const text = (id) => (called(id) === id ? id : `${called(id)} (${id})`);
  if (whole && ids.length <= MOST_OPTIONS) {
    return html`<${Field} label=${label}><select name=${name} value=${value} onInput=${change}>${none && html`<option value="">${none}</option>`}${ids.map((id) => html`<option key=${id} value=${id}>${text(id)}</option>`)}</select></${Field}>`;
  }
  return html`<${Field} label=${label}><input name=${name} list=${`${name}s`} value=${value} onInput=${change} autocomplete="off" spellcheck=${false} placeholder=${none} />
    <datalist id=${`${name}s`}>${ids.slice(0, 10000).map((id) => html`<option key=${id} value=${id} label=${text(id)} />`)}</datalist></${Field}>`;
}

function Report({ r, pool, name }) {
  const odds = r.odds ?? [];
  return html`<div class="stack" id="simulated">
    <dl class="stats"><div><dt>${t("simulation.drawn")}</dt><dd>${num(r.draws ?? 0)}</dd></div><div><dt>${t("simulation.players")}</dt><dd>${num(r.players ?? 0)}</dd></div></dl>
    ${r.stock && html`<p class="small muted">${t("simulation.shared")}</p>`}
    ${(r.refused ?? []).map((f) => html`<p class="note">${t("simulation.refused", { status: word("status", `STATUS_${f.status.toUpperCase()}`), n: num(f.requests ?? 0), players: num(f.stopped ?? 0) })}</p>`)}
    <${Odds} odds=${odds} pool=${pool} name=${name} change=${r.oddsChange} why=${r.noLongRun} />
    <${Amounts} title=${t("simulation.given")} all=${r.given} name=${name} />
    <${Amounts} title=${t("simulation.paid")} all=${r.paid} name=${name} />
    ${r.costs && html`<${Costs} c=${r.costs} players=${r.players ?? 0} most=${r.drawsEach ?? 0} name=${name} />`}
    ${r.stock?.entries?.length > 0 && html`<${Stock} s=${r.stock} pool=${pool} name=${name} />`}</div>`;
}

// Amounts is how many of each item there were, in all and in a draw.
function Amounts({ title, all, name }) {
  if (!all?.length) return null;
  return html`<h3>${title}</h3><div class="table" tabindex="0" role="region" aria-label=${title}><table><thead><tr><th scope="col">${t("act.item")}</th><th scope="col" class="num">${t("simulation.inAll")}</th><th scope="col" class="num">${t("simulation.aDraw")}</th></tr></thead>
    <tbody>${all.slice(0, 100).map((a) => html`<tr key=${a.item}><th scope="row" class="break">${name("items", a.item)}</th><td class="num">${num(a.total ?? 0)}</td><td class="num">${few(a.each ?? 0)}</td></tr>`)}</tbody></table></div>`;
}

const Entry = ({ e, pool, name }) => html`${e.entry}${e.pool !== pool && html` <span class="id">${name("pools", e.pool)}</span>`}`;

// Odds are those that the catalog promises, and those that were seen.
function Odds({ odds, pool, name, change, why }) {
  const long = odds.some((o) => o.longRun !== undefined);
  return html`<h3>${t("pools.wantedSeen")}</h3><div class="table" tabindex="0" role="region" aria-label=${t("pools.wantedSeen")}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col" class="num">${t("pools.wanted")}</th>${long && html`<th scope="col" class="num">${t("simulation.longRun")}</th>`}<th scope="col" class="num">${t("pools.seen")}</th><th scope="col">${t("pools.band")}</th></tr></thead>
    <tbody>${odds.slice(0, 100).map((o) => {
      const wanted = o.longRun ?? o.wanted ?? 0;
      const top = Math.max(o.high ?? 0, wanted, 1e-12) * 1.15;
      const at = (x) => `${Math.min(100, (x / top) * 100)}%`;
      const text = t("pools.bandFrom", { low: chance(o.low ?? 0), high: chance(o.high ?? 0) });
      return html`<tr key=${`${o.pool}/${o.entry}`}><th scope="row" class="break"><${Entry} e=${o} pool=${pool} name=${name} /></th><td class="num">${chance(o.wanted ?? 0)}</td>${long && html`<td class="num">${o.longRun === undefined ? "–" : chance(o.longRun)}</td>`}<td class="num">${chance(o.seen ?? 0)}</td>
        <td style=${{ minWidth: "7rem" }}><span class="band" role="img" aria-label=${text} title=${text}><i style=${{ left: at(o.low ?? 0), width: `${(((o.high ?? 0) - (o.low ?? 0)) / top) * 100}%` }}></i><b style=${{ left: at(wanted) }}></b></span></td></tr>`;
    })}</tbody></table></div>
    <ul class="small muted notes"><li>${t(change ? "simulation.wantedText" : "simulation.wantedAll")}</li>${long && html`<li>${t("simulation.longRunText")}</li>`}${why && html`<li>${t("simulation.noLongRun", { why })}</li>`}<li>${t("simulation.bandText")}</li></ul>`;
}

// Costs is what an item costs, with the share of players who have it after so many draws.
function Costs({ c, players, most, name }) {
  const data = useMemo(() => {
    let sum = 0;
    const steps = [[0, 0], ...(c.distribution ?? []).map((s) => { sum += Number(s.players ?? 0); return [Number(s.draws), (100 * sum) / Math.max(1, players)]; })];
    if (steps.at(-1)[0] < most) steps.push([most, steps.at(-1)[1]]);
    return stepped(steps.map((s) => s[0]), steps.map((s) => s[1]));
  }, [c]);
  const got = Number(c.playersWithIt ?? 0);
  return html`<h3>${t("simulation.costs")} ${name("items", c.item)}</h3>
    <p id="got">${t("simulation.gotIt", { n: num(got), all: num(players) })}${got < players && ` ${t("simulation.others")}`}</p>
    <div class="table" tabindex="0" role="region" aria-label=${t("simulation.costs")}><table><thead><tr><th scope="col">${t("simulation.in")}</th><th scope="col" class="num">${t("simulation.mean")}</th><th scope="col" class="num">${t("simulation.median")}</th><th scope="col" class="num">90 %</th><th scope="col" class="num">99 %</th><th scope="col" class="num">${t("simulation.worst")}</th></tr></thead>
      <tbody>${(c.costs ?? []).map((x) => html`<tr key=${x.item ?? ""}><th scope="row">${x.item ? name("items", x.item) : t("odds.draws")}</th><td class="num">${x.mean === undefined ? "–" : dec(x.mean, 1)}${x.mean !== undefined && x.meanError !== undefined && html`<span class="muted"> ± ${dec(x.meanError, 1)}</span>`}</td>${["median", "p90", "p99", "worst"].map((k) => html`<td class="num">${x[k] === undefined ? "–" : num(x[k])}</td>`)}</tr>`)}</tbody></table></div>
    ${got > 0 && html`<${Chart} title=${t("simulation.share")} under=${t("simulation.shareUnder")} data=${data} series=${[{ label: t("simulation.share"), fill: true }]} format=${(v) => `${few(v)} %`} />`}`;
}

// Stock is how the stock that all share went down.
function Stock({ s, pool, name }) {
  const samples = s.samples ?? [];
  const n = samples.length > 1 ? Math.min(COLOURS.length, s.sampledEntries ?? 0, s.entries.length) : 0;
  const data = useMemo(() => stepped(samples.map((one) => Number(one.at?.draws ?? 0)), ...Array.from({ length: n }, (_, i) => samples.map((one) => Number(one.left?.[i] ?? 0)))), [s]);
  const series = s.entries.slice(0, n).map((e, i) => ({ label: e.pool === pool ? e.entry : `${e.entry} (${name("pools", e.pool)})`, colour: COLOURS[i] }));
  return html`<h3>${t("simulation.stockOf")}</h3>
    ${s.soldOut && html`<p class="note warn">${t("simulation.soldOut", { n: num(s.soldOut.draws ?? 0) })}</p>`}
    <div class="table" tabindex="0" role="region" aria-label=${t("simulation.stockOf")}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col" class="num">${t("simulation.atFirst")}</th><th scope="col" class="num">${t("pools.left")}</th><th scope="col" class="num">${t("simulation.goneAfter")}</th></tr></thead>
      <tbody>${s.entries.slice(0, 100).map((e) => html`<tr key=${`${e.pool}/${e.entry}`}><th scope="row" class="break"><${Entry} e=${e} pool=${pool} name=${name} /></th><td class="num">${num(e.stock ?? 0)}</td><td class="num">${num(e.left ?? 0)}</td><td class="num">${e.soldOut ? num(e.soldOut.draws ?? 0) : "–"}</td></tr>`)}</tbody></table></div>
    ${n > 0 && html`<${Chart} title=${t("simulation.stock")} under=${t("simulation.stockUnder")} data=${data} series=${series} format=${count} />`}`;
}

const count = (v) => (Number.isInteger(v) ? num(v) : "");

// stepped adds a point before each, so that lines go up or down where something happens, and not on the way there.
function stepped(xs, ...all) {
  const twice = (values, before) => values.flatMap((v, i) => (i === 0 ? [v] : [before(i), v]));
  return [twice(xs, (i) => xs[i]), ...all.map((ys) => twice(ys, (i) => ys[i - 1]))];
}

// Chart is a plot with the titles of its axes, and a legend if it has several lines.
function Chart({ title, under, data, series, format }) {
  return html`<figure class="chart"><figcaption class="small"><strong>${title}</strong>${series.length > 1 && html`<span class="row">${series.map((s) => html`<span class="row" style=${{ gap: "var(--s1)" }}><i class="swatch" style=${{ color: `var(${s.colour})` }}></i>${s.label}</span>`)}</span>`}</figcaption>
    <${Plot} data=${data} series=${series} label=${`${title}. ${under}`} format=${format} xFormat=${count} /><p class="small muted under">${under}</p></figure>`;
}
