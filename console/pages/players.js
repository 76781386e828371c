// Players: who holds what, why, and what a draw would give; and what may be done about it.
import { html, useState } from "../dom.js";
import { Failure, call } from "../api.js";
import { dec, num, percent, t, word } from "../i18n.js";
import { app, named, names, offers } from "../store.js";
import { ActionDialog, allowed } from "../actions.js";
import { EntryName, Head, Loading, NotOffered, PlayerLink, Stacks, StatusChip, Subject, Thing, Time, link, useLoad } from "../ui.js";

export default function Players({ rest }) {
  const [id] = rest;
  return html`<div class="page"><${Head} title=${t("page.players")}>${t("players.text")}</${Head}>
    <${Find} id=${id} key=${`find ${id ?? ""}`} />${id ? html`<${Player} id=${id} key=${id} />` : html`<${List} />`}</div>`;
}

function Find({ id = "" }) {
  const [value, set] = useState(id);
  const go = (e) => {
    e.preventDefault();
    if (value) location.hash = link("players", value);
  };
  return html`<form class="row" role="search" onSubmit=${go}>
    <label class="field"><span>${t("players.find")}</span><input name="player" autocomplete="off" spellcheck=${false} value=${value} onInput=${(e) => set(e.target.value)} placeholder=${t("players.findHint")} /></label>
    <button class="button primary" style=${{ alignSelf: "end" }}>${t("players.open")}</button></form>`;
}

// List shows the players whom the history knows.
function List() {
  const [after, setAfter] = useState([""]);
  const last = after.at(-1);
  const load = useLoad((signal) => call("ListPlayers", { realm: app.realm, after: last, limit: 50 }, { signal }), [last]);
  if (offers("history") === false || load.failure?.code === "failed_precondition") return html`<p class="empty">${t("players.noHistory")}</p>`;
  if (load.failure?.code === "permission_denied") return html`<p class="empty">${t("players.byNameOnly")}</p>`;
  return html`<section class="card"><h2>${t("players.all")}</h2><${Loading} load=${load}>${({ players = [], more }) => html`
    ${players.length === 0 ? html`<p class="muted">${t("players.none")}</p>` : html`<ul class="list">${players.map((p) => html`<li key=${p}><${PlayerLink} id=${p} /></li>`)}</ul>`}
    <div class="row">${after.length > 1 && html`<button class="button" type="button" onClick=${() => setAfter(after.slice(0, -1))}>${t("before")}</button>`}
      ${more && html`<button class="button" type="button" onClick=${() => setAfter([...after, players.at(-1)])}>${t("next")}</button>`}</div>`}</${Loading}></section>`;
}

const OFFERED = ["grant", "take", "track", "counter", "reverse", "merge"];

function Player({ id }) {
  const load = useLoad((signal) => call("GetPlayer", { realm: app.realm, player: id, names: true }, { signal }), [id]);
  const [doing, act] = useState(null);
  if (load.failure?.code === "not_found") return html`<p class="empty">${t("players.unknown", { player: id })}</p>`;
  return html`<${Loading} load=${load}>${({ player }) => {
    const kinds = [...OFFERED, player.blocked ? "unblock" : "block"].filter(allowed);
    return html`<section class="card" id="player">
      <div class="row apart top-aligned"><div><h2 class="break" dir="auto">${player.id}</h2>
        ${id !== player.id && html`<p class="small muted break">${t("players.alsoKnown", { name: id })}</p>`}</div>
        <button class="button" type="button" onClick=${load.reload}>${t("reload")}</button></div>
      ${player.blocked && html`<p class="note bad"><strong>${t("player.blocked")}:</strong> ${player.blocked}</p>`}
      ${player.aliases?.length > 0 && html`<p class="row">${player.aliases.map((a) => html`<span class="chip" key=${a.name} dir="auto">${a.name}${a.merged && ` · ${t("player.merged")}`}</span>`)}</p>`}
      ${kinds.length > 0 ? html`<div class="row" role="group" aria-label=${t("player.actions")}>${kinds.map((k) => html`<button class="button" type="button" key=${k} data-act=${k} onClick=${() => act({ kind: k })}>${t(`act.${k}`)}</button>`)}</div>`
        : html`<p class="small muted">${t("player.readOnly")}</p>`}
    </section>
    <div class="cards two"><div class="stack"><${Inventory} player=${player} /><${Holds} id=${player.id} turn=${player.position} /></div>
      <div class="stack"><${Standing} player=${player} /><${WouldGive} id=${player.id} turn=${player.position} /></div></div>
    <${Why} player=${player} turn=${player.position} reverse=${allowed("reverse") && ((request) => act({ kind: "reverse", preset: { request } }))} />
    ${doing && html`<${ActionDialog} key=${doing.kind} kind=${doing.kind} preset=${doing.preset} player=${player} close=${() => act(null)} changed=${load.reload} />`}`;
  }}</${Loading}>`;
}

function Inventory({ player }) {
  const lots = (item) => (player.lots ?? []).filter((l) => l.item === item);
  return html`<section class="card"><h2>${t("player.inventory")}</h2>
    ${!player.items?.length ? html`<p class="muted">${t("player.holdsNothing")}</p>` : html`<table><thead><tr><th scope="col">${t("act.item")}</th><th scope="col" class="num">${t("act.quantity")}</th></tr></thead>
      <tbody>${player.items.map((s) => html`<tr key=${s.item}><th scope="row"><${Thing} id=${s.item} />
        ${lots(s.item).map((l) => html`<span class="small muted" style=${{ display: "block" }}>${t("player.lot", { n: num(l.quantity) })} <${Time} ms=${l.untilUnixMs} distance /></span>`)}</th>
        <td class="num">${num(s.quantity)}</td></tr>`)}</tbody></table>`}
    ${player.held?.length > 0 && html`<p><strong>${t("player.held")}</strong> <${Stacks} items=${player.held} /></p>`}
    ${player.mail?.length > 0 && html`<h3>${t("player.mail")}</h3><ul class="list">${player.mail.map((l) => html`<li><${Stacks} items=${[l]} /> <small class="muted">${t("player.until")} <${Time} ms=${l.untilUnixMs} distance /></small></li>`)}</ul>`}
  </section>`;
}

function Holds({ id, turn }) {
  const load = useLoad((signal) => call("ListHolds", { realm: app.realm, player: id, limit: 100 }, { signal }), [id, turn]);
  if (load.failure?.refused) return null;
  return html`<section class="card"><h2>${t("player.holds")}</h2><${Loading} load=${load}>${({ holds = [] }) => holds.length === 0 ? html`<p class="muted">${t("player.noHolds")}</p>`
    : html`<ul class="list">${holds.map((h) => html`<li key=${h.hold}><code class="break">${h.hold}</code> <small class="muted">${t("player.until")} <${Time} ms=${h.untilUnixMs} distance /></small>
      ${(h.parts ?? []).map((p) => html`<div class="small">${word("kind", p.kind)}${p.pool && html` <${Thing} kind="pools" id=${p.pool} plain />`}${p.takes?.length > 0 && html` −<${Stacks} items=${p.takes} />`}${p.gives?.length > 0 && html` +<${Stacks} items=${p.gives} />`}</div>`)}</li>`)}</ul>`}</${Loading}></section>`;
}

// Standing is where a player is in tracks, limits, counters and quests.
function Standing({ player }) {
  const { pity = [], limits = [], free = [], counters = [], quests = [] } = player;
  if (!pity.length && !limits.length && !free.length && !counters.length && !quests.length) {
    return html`<section class="card"><h2>${t("player.standing")}</h2><p class="muted">${t("player.nothingCounted")}</p></section>`;
  }
  return html`<section class="card"><h2>${t("player.standing")}</h2>
    ${pity.length > 0 && html`<table><caption>${t("player.pity")}</caption><thead><tr><th scope="col">${t("track")}</th><th scope="col" class="num">${t("player.since")}</th><th scope="col" class="num">${t("player.certainIn")}</th></tr></thead>
      <tbody>${pity.map((p) => html`<tr key=${p.track}><th scope="row" class="break">${p.track}${p.unless && html`<span class="small muted" style=${{ display: "block" }}>${t("player.unless", { what: p.unless })}</span>`}</th><td class="num">${num(p.draws)}</td><td class="num">${p.certainIn && p.certainIn !== "0" ? num(p.certainIn) : "–"}</td></tr>`)}</tbody></table>`}
    ${limits.length + free.length > 0 && html`<table><caption>${t("player.limits")}</caption><thead><tr><th scope="col">${t("pool")}</th><th scope="col" class="num">${t("player.left")}</th><th scope="col" class="num">${t("player.of")}</th></tr></thead>
      <tbody>${[...limits, ...free.map((f) => ({ ...f, gratis: true }))].map((l) => html`<tr><th scope="row"><${Thing} kind="pools" id=${l.pool} /><span class="small muted" style=${{ display: "block" }}>${l.gratis && `${t("player.free")}, `}${word("period", l.per)}${l.resetsUnixMs && l.resetsUnixMs !== "0" && html` · ${t("player.moreAt")} <${Time} ms=${l.resetsUnixMs} />`}</span></th>
        <td class="num">${num(l.left ?? 0)}</td><td class="num">${num(l.draws)}</td></tr>`)}</tbody></table>`}
    ${counters.length > 0 && html`<table><caption>${t("player.counters")}</caption><thead><tr><th scope="col">${t("counter")}</th><th scope="col" class="num">${t("act.value")}</th></tr></thead>
      <tbody>${counters.map((c) => html`<tr key=${c.counter}><th scope="row"><${Thing} kind="counters" id=${c.counter} />${c.realm && html` <span class="chip">${t("player.ofRealm")}</span>`}${c.rank && c.rank !== "0" && html` <span class="chip">${t("player.rank", { n: num(c.rank) })}</span>`}
        ${c.resetsUnixMs && c.resetsUnixMs !== "0" && html`<span class="small muted" style=${{ display: "block" }}>${t("player.resets")} <${Time} ms=${c.resetsUnixMs} /></span>`}</th><td class="num">${num(c.value)}</td></tr>`)}</tbody></table>`}
    ${quests.length > 0 && html`<table><caption>${t("player.quests")}</caption><thead><tr><th scope="col">${t("quest")}</th><th scope="col" class="num">${t("player.claimed")}</th><th scope="col" class="num">${t("player.claimable")}</th></tr></thead>
      <tbody>${quests.map((q) => html`<tr key=${q.quest}><th scope="row"><${Thing} kind="quests" id=${q.quest} />${!q.open && html` <span class="chip">${t("player.notOpen")}</span>`}
        ${(q.needs ?? []).map((n) => html`<span class="small muted" style=${{ display: "block" }}>${t("player.need", { counter: n.counter, value: num(n.value ?? 0), min: num(n.min ?? 0) })}</span>`)}</th>
        <td class="num">${num(q.claimed ?? 0)} / ${num(q.tiers ?? 0)}</td><td class="num">${num(q.claimable ?? 0)}</td></tr>`)}</tbody></table>`}
  </section>`;
}

// WouldGive is what a draw would give this player now, exactly.
function WouldGive({ id, turn }) {
  const pools = names()?.poolIds ?? [];
  const [chosen, choose] = useState("");
  const [count, setCount] = useState("1");
  const pool = chosen || pools[0];
  const load = useLoad((signal) => (pool ? oddsOf({ pool, player: id, count: Number(count) || 1 }, signal) : Promise.resolve(null)), [id, pool, count, turn]);
  if (!pools.length) return null;
  return html`<section class="card"><h2>${t("odds.now")}</h2>
    <div class="row"><label class="field"><span>${t("pool")}</span><select name="odds-pool" value=${pool} onChange=${(e) => choose(e.target.value)}>${pools.map((p) => html`<option key=${p} value=${p}>${named("pools", p).name}</option>`)}</select></label>
      <label class="field" style=${{ flex: "0 1 7rem" }}><span>${t("odds.draws")}</span><input name="odds-count" inputmode="numeric" value=${count} onChange=${(e) => setCount(/^[1-9]\d{0,2}$|^1000$/.test(e.target.value) ? e.target.value : "1")} /></label></div>
    <${Loading} load=${load}>${(got) => got && html`<${OddsTable} odds=${got.odds} entries=${got.entries} pool=${pool} />`}</${Loading}></section>`;
}

// oddsOf reads the odds of a pool, with what its entries give.
async function oddsOf(request, signal) {
  const [{ odds }, { pool }] = await Promise.all([call("GetOdds", { realm: app.realm, ...request }, { signal }), call("GetPool", { realm: app.realm, pool: request.pool, entryLimit: 1000 }, { signal })]);
  return { odds, entries: new Map((pool.entries ?? []).map((e) => [e.id, e])) };
}

function OddsTable({ odds, entries, pool }) {
  const several = (odds.count ?? 1) > 1;
  return html`<div class="stack">
    ${odds.status !== "STATUS_OK" && html`<p class="note warn">${t("odds.wouldFail")} <${StatusChip} status=${odds.status} /> ${odds.subject && html`<${Subject} id=${odds.subject} />`}</p>`}
    <div class="table" tabindex="0" role="region" aria-label=${t("odds.now")}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col" class="num">${several ? t("odds.average") : t("odds.chance")}</th><th scope="col" class="num">${t("odds.exact")}</th></tr></thead>
      <tbody>${(odds.outcomes ?? []).slice(0, 200).map((o) => {
        const f = (several ? o.expected : o.chance) ?? {};
        return html`<tr key=${`${o.pool}/${o.entry}`}><th scope="row"><${EntryName} entry=${o.pool === pool ? entries.get(o.entry) : null} id=${o.entry} />${o.pool !== pool && html` <span class="id">${o.pool}</span>`}</th>
          <td class="num">${several ? dec(f.value ?? 0, 4) : percent(f.value ?? 0)}</td><td class="num muted">${(f.exact ?? "").length > 24 ? "…" : f.exact || "0"}</td></tr>`;
      })}</tbody></table></div>
    ${odds.items?.length > 0 && html`<p class="small"><strong>${t("odds.items")}</strong> ${odds.items.slice(0, 30).map((i, n) => html`${n > 0 && ", "}<span class="num">${dec(i.expected?.value ?? 0, 3)}</span> <${Thing} id=${i.item} plain />`)}</p>`}</div>`;
}

// Why says how a player came by what they have: every event, with who asked and why.
function Why({ player, turn, reverse }) {
  const [item, setItem] = useState("");
  const [before, setBefore] = useState([null]);
  const at = before.at(-1);
  const load = useLoad((signal) => call("GetHistory", { realm: app.realm, player: player.id, ...(item && { item }), ...(at && { before: at }), limit: 25, fresh: true }, { signal }), [player.id, item, at, turn]);
  if (load.failure instanceof Failure && load.failure.code === "failed_precondition") return html`<section class="card"><h2>${t("why.title")}</h2><${NotOffered} what=${t("why.noHistory")} /></section>`;
  return html`<section class="card" id="why"><h2>${t("why.title")}</h2>
    <label class="field" style=${{ maxWidth: "20rem" }}><span>${t("why.item")}</span><select name="why-item" value=${item} onChange=${(e) => { setItem(e.target.value); setBefore([null]); }}>
      <option value="">${t("why.everything")}</option>${(player.items ?? []).map((s) => html`<option key=${s.item} value=${s.item}>${named("items", s.item).name}</option>`)}</select></label>
    <${Loading} load=${load}>${(got) => html`<${Events} events=${got.events ?? []} player=${player.id} reverse=${reverse} />
      ${got.state?.completeFrom && got.state.completeFrom !== "1" && html`<p class="small muted">${t("why.from", { position: num(got.state.completeFrom) })}</p>`}
      <div class="row">${before.length > 1 && html`<button class="button" type="button" onClick=${() => setBefore(before.slice(0, -1))}>${t("newer")}</button>`}
        ${got.before && html`<button class="button" type="button" onClick=${() => setBefore([...before, got.before])}>${t("older")}</button>`}</div>`}</${Loading}></section>`;
}

const REVERSIBLE = new Set(["grant", "draw", "redeem"]);
const UNNAMED = new Set(["draw", "redeem"]); // of these, the log keeps no key's name: see docs/reference/keys.md

const unnamed = (e) => !e.by && UNNAMED.has(e.kind);

function Events({ events, player, reverse }) {
  if (!events.length) return html`<p class="muted">${t("why.none")}</p>`;
  return html`${events.some(unnamed) && html`<p class="small muted">${t("why.unnamed")}</p>`}
    <div class="table" tabindex="0" role="region" aria-label=${t("why.title")}><table class="flow"><thead><tr><th scope="col">${t("why.when")}</th><th scope="col">${t("why.what")}</th><th scope="col" class="num">${t("why.change")}</th><th scope="col">${t("why.who")}</th><th scope="col"><span class="vh">${t("player.actions")}</span></th></tr></thead>
    <tbody>${events.map((e) => html`<tr key=${`${e.position}/${e.index ?? 0}`}>
      <td><${Time} ms=${e.timeUnixMs} seconds /><a class="small num" style=${{ display: "block" }} href=${link("proof", e.position, String(e.index ?? 0))}>${num(e.position)} / ${num(e.index ?? 0)}</a></td>
      <td style=${{ minWidth: "11rem" }}><strong>${word("kind", e.kind)}</strong> ${e.pool && html`<${Thing} kind="pools" id=${e.pool} plain />`} ${e.status !== "STATUS_OK" && html`<${StatusChip} status=${e.status} />`}
        ${e.outcomes?.length > 0 && html`<span class="small muted break" style=${{ display: "block" }}>${e.outcomes.slice(0, 10).map((o) => o.entry).join(", ")}${e.outcomes.length > 10 && " …"}</span>`}
        ${(e.claims ?? []).map((c) => html`<span class="small muted" style=${{ display: "block" }}><${Thing} kind="quests" id=${c.quest || c.counter || ""} plain /></span>`)}
        ${e.requestId && html`<code class="id">${e.requestId}</code>`}</td>
      <td class="num wrap">${(e.changes ?? []).filter((c) => c.player === player).map((c) => html`<span style=${{ display: "block" }}><span class="nowrap">${c.delta?.startsWith("-") ? "" : "+"}${num(c.delta ?? 0)}</span> <${Thing} id=${c.item} plain />${c.balance !== undefined && html` <span class="muted nowrap">= ${num(c.balance)}</span>`}</span>`)}</td>
      <td style=${{ minWidth: "8rem" }}>${e.by ? html`<strong class="break">${e.by}</strong>` : html`<span class="muted">${unnamed(e) ? t(`why.by.${e.kind}`) : "–"}</span>`}${e.reason && html`<span class="small break" style=${{ display: "block" }}>${e.reason}</span>`}${e.metadata && html`<span class="id">${e.metadata}</span>`}</td>
      <td>${reverse && e.requestId && e.status === "STATUS_OK" && REVERSIBLE.has(e.kind) && html`<button class="button quiet" type="button" onClick=${() => reverse(e.requestId)} aria-label=${t("act.reverseThis", { request: e.requestId })}>${t("act.reverse")}</button>`}</td></tr>`)}</tbody></table></div>`;
}
