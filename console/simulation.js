// A catalog played by many simulated players, on the server: see Simulate. It changes nothing.
import { html, useMemo, useState } from "./dom.js";
import { call } from "./api.js";
import { dec, num, percent, t, word } from "./i18n.js";
import { app, may, names, offers } from "./store.js";
import { Plot } from "./plot.js";
import { Failed, Field, NotOffered, Thing } from "./ui.js";

const COLOURS = ["--accent", "--rarity-5", "--rarity-3", "--rarity-2", "--rarity-6", "--rarity-4"];

// Simulation tries the catalog that yaml gives, in base64; an empty one is that in force.
export function Simulation({ yaml }) {
  const pools = names()?.poolIds ?? [];
  const [form, setForm] = useState({ pool: pools[0] ?? "", players: "1000", draws: "100", until: "" });
  const [state, set] = useState({});
  const change = (e) => setForm({ ...form, [e.target.name.replace("sim-", "")]: e.target.value });
  if (offers("simulate") === false) return html`<section class="card" id="simulation"><h2>${t("simulation.title")}</h2><${NotOffered} what=${t("simulation.none")} /></section>`;
  if (!may("simulate")) return html`<section class="card" id="simulation"><h2>${t("simulation.title")}</h2><p class="muted">${t("failure.permission_denied")}</p></section>`;
  const run = async (e) => {
    e.preventDefault();
    set({ busy: true });
    try {
      const request = { realm: app.realm, yaml: yaml(), pool: form.pool, players: Number(form.players) || 0, draws: Number(form.draws) || 0, until: form.until, seed: "1" };
      set({ report: await call("Simulate", request, { timeout: 300_000 }), form });
    } catch (failure) {
      set({ failure });
    }
  };
  return html`<section class="card" id="simulation"><h2>${t("simulation.title")}</h2><p class="small muted">${t("simulation.text")}</p>
    <form class="row" onSubmit=${run}>
      <label class="field"><span>${t("pool")}</span><input name="sim-pool" list="sim-pools" value=${form.pool} onInput=${change} autocomplete="off" /><datalist id="sim-pools">${pools.map((p) => html`<option key=${p} value=${p} />`)}</datalist></label>
      <label class="field" style=${{ flex: "0 1 7rem" }}><span>${t("simulation.players")}</span><input name="sim-players" inputmode="numeric" value=${form.players} onInput=${change} /></label>
      <label class="field" style=${{ flex: "0 1 7rem" }}><span>${t("simulation.draws")}</span><input name="sim-draws" inputmode="numeric" value=${form.draws} onInput=${change} /></label>
      <label class="field"><span>${t("simulation.until")}</span><input name="sim-until" list="sim-items" value=${form.until} onInput=${change} autocomplete="off" /><datalist id="sim-items">${[...(names()?.items.keys() ?? [])].map((i) => html`<option key=${i} value=${i} />`)}</datalist></label>
      <button class="button" name="simulate" style=${{ alignSelf: "end" }} disabled=${state.busy}>${state.busy ? t("loading") : t("simulation.run")}</button></form>
    ${state.failure && html`<${Failed} failure=${state.failure} />`}
    ${state.report && html`<${Report} r=${state.report} pool=${state.form.pool} />`}</section>`;
}

const list = (all) => (all ?? []).map((a, i) => html`${i > 0 && ", "}<span class="num">${dec(a.each ?? 0, 3)}</span> <${Thing} id=${a.item} plain />`);

function Report({ r, pool }) {
  return html`<div class="stack" id="simulated">
    <dl class="stats"><div><dt>${t("simulation.drawn")}</dt><dd>${num(r.draws ?? 0)}</dd></div><div><dt>${t("simulation.players")}</dt><dd>${num(r.players ?? 0)}</dd></div></dl>
    ${(r.refused ?? []).map((f) => html`<p class="note">${word("status", `STATUS_${f.status.toUpperCase()}`)}: ${num(f.requests ?? 0)}</p>`)}
    ${r.paid?.length > 0 && html`<p><strong>${t("simulation.paid")}</strong> ${list(r.paid)}</p>`}
    ${r.given?.length > 0 && html`<p><strong>${t("simulation.given")}</strong> ${list(r.given)}</p>`}
    <${Odds} odds=${r.odds ?? []} pool=${pool} />
    ${r.costs && html`<${Costs} c=${r.costs} />`}
    ${r.stock?.samples?.length > 1 && r.stock.entries?.length > 0 && html`<${Stock} s=${r.stock} />`}</div>`;
}

function Odds({ odds, pool }) {
  const shown = odds.slice(0, 100);
  return html`<div class="table" tabindex="0" role="region" aria-label=${t("pools.wantedSeen")}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col" class="num">${t("pools.wanted")}</th><th scope="col" class="num">${t("simulation.longRun")}</th><th scope="col" class="num">${t("pools.seen")}</th><th scope="col">${t("pools.band")}</th></tr></thead>
    <tbody>${shown.map((o) => {
      const wanted = o.longRun ?? o.wanted ?? 0;
      const top = Math.max(o.high ?? 0, wanted, 1e-12) * 1.15;
      const at = (x) => `${Math.min(100, (x / top) * 100)}%`;
      const text = t("pools.bandFrom", { low: percent(o.low ?? 0), high: percent(o.high ?? 0) });
      return html`<tr key=${`${o.pool}/${o.entry}`}><th scope="row" class="break">${o.entry}${o.pool !== pool && html` <span class="id">${o.pool}</span>`}</th><td class="num">${percent(o.wanted ?? 0)}</td><td class="num">${o.longRun === undefined ? "–" : percent(o.longRun)}</td><td class="num">${percent(o.seen ?? 0)}</td>
        <td style=${{ minWidth: "7rem" }}><span class="band" role="img" aria-label=${text} title=${text}><i style=${{ left: at(o.low ?? 0), width: `${(((o.high ?? 0) - (o.low ?? 0)) / top) * 100}%` }}></i><b style=${{ left: at(wanted) }}></b></span></td></tr>`;
    })}</tbody></table></div>`;
}

// Costs is what an item costs, with the share of players who have it after so many draws.
function Costs({ c }) {
  const steps = c.distribution ?? [];
  const data = useMemo(() => {
    const all = Math.max(1, steps.reduce((n, s) => n + Number(s.players ?? 0), 0));
    let sum = 0;
    return [[0, ...steps.map((s) => Number(s.draws))], [0, ...steps.map((s) => { sum += Number(s.players ?? 0); return (100 * sum) / all; })]];
  }, [steps]);
  return html`<h3>${t("simulation.costs")} <${Thing} id=${c.item} plain /></h3>
    <div class="table" tabindex="0" role="region" aria-label=${t("simulation.costs")}><table><thead><tr><th scope="col">${t("simulation.in")}</th><th scope="col" class="num">${t("simulation.mean")}</th><th scope="col" class="num">${t("simulation.median")}</th><th scope="col" class="num">90 %</th><th scope="col" class="num">99 %</th><th scope="col" class="num">${t("simulation.worst")}</th></tr></thead>
      <tbody>${(c.costs ?? []).map((x) => html`<tr key=${x.item ?? ""}><th scope="row">${x.item ? html`<${Thing} id=${x.item} plain />` : t("odds.draws")}</th><td class="num">${x.mean === undefined ? "–" : dec(x.mean, 1)}</td>${["median", "p90", "p99", "worst"].map((k) => html`<td class="num">${x[k] === undefined ? "–" : num(x[k])}</td>`)}</tr>`)}</tbody></table></div>
    ${steps.length > 1 && html`<${Plot} data=${data} series=${[{ label: t("simulation.share"), fill: true }]} label=${t("simulation.share")} format=${(v) => `${dec(v)} %`} xFormat=${(v) => num(Math.round(v))} /><p class="small muted">${t("simulation.share")}</p>`}`;
}

// Stock is how the stock that all share went down.
function Stock({ s }) {
  const n = Math.min(COLOURS.length, s.sampledEntries ?? 0, s.entries.length);
  const data = useMemo(() => [s.samples.map((one) => Number(one.at?.draws ?? 0)), ...Array.from({ length: n }, (_, i) => s.samples.map((one) => Number(one.left?.[i] ?? 0)))], [s]);
  if (!n) return null;
  return html`<h3>${t("simulation.stock")}</h3>
    <${Plot} data=${data} series=${s.entries.slice(0, n).map((e, i) => ({ label: e.entry, colour: COLOURS[i] }))} label=${t("simulation.stock")} format=${(v) => num(Math.round(v))} xFormat=${(v) => num(Math.round(v))} />
    ${s.soldOut && html`<p class="note warn">${t("simulation.soldOut", { n: num(s.soldOut.draws ?? 0) })}</p>`}`;
}
