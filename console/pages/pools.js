// Pools live: what is left, how fast it goes, and whether what comes is what should.
import { html, useEffect, useMemo, useRef, useState } from "../dom.js";
import { clock, date, dec, num, percent, t, word } from "../i18n.js";
import { loadNames, names } from "../store.js";
import { Live, decades, wilson } from "../live.js";
import { Plot, Spark } from "../plot.js";
import { Bar, EntryName, Failed, Head, PlayerLink, Stacks, StatusChip, Thing, Time, link, useApp } from "../ui.js";

export default function Pools({ rest }) {
  useApp();
  const ids = names()?.poolIds;
  if (!ids) return html`<div class="page"><${Head} title=${t("page.pools")} /><p class="muted" aria-busy="true">${t("loading")}</p></div>`;
  return html`<div class="page"><${Head} title=${t("page.pools")}>${t("pools.text")}</${Head}>
    ${names().failure ? html`<${Failed} failure=${names().failure} retry=${() => loadNames()} />` : ids.length === 0 ? html`<p class="empty">${t("pools.none")}</p>` : html`<${All} ids=${ids} key=${ids.join(" ")} only=${rest[0]} />`}</div>`;
}

function All({ ids, only }) {
  const [, draw] = useState(0);
  const live = useRef(null);
  const [shown, setShown] = useState(24);
  const [find, setFind] = useState("");
  useEffect(() => {
    const l = new Live(ids, () => draw((n) => n + 1));
    live.current = l;
    draw(1);
    return () => l.close();
  }, []);
  const l = live.current;
  if (!l) return null;
  if (only && l.pools.has(only)) return html`<${One} live=${l} p=${l.pools.get(only)} />`;
  const found = [...l.pools.values()].filter((p) => !find || p.id.includes(find) || (p.pool?.name ?? "").toLowerCase().includes(find.toLowerCase()));
  const total = l.total.last;
  return html`<${Connection} live=${l} />
    <section class="card"><div class="row apart"><h2>${t("pools.drawsASecond")}</h2><strong class="num" style=${{ fontSize: "var(--t2)" }}>${total === null ? "–" : dec(total, total < 100 ? 1 : 0)}</strong></div>
      <${Plot} data=${[[...l.times.values], [...l.total.values]]} series=${[{ label: t("pools.drawsASecond"), fill: true }]} time label=${t("pools.drawsASecond")} format=${(v) => dec(v, 2)} /></section>
    <div class="cards two"><div style=${{ gridColumn: "1 / -1" }}>
      ${ids.length > 12 && html`<label class="field" style=${{ maxWidth: "20rem", marginBottom: "var(--s4)" }}><span>${t("pools.find")}</span><input name="find" value=${find} onInput=${(e) => setFind(e.target.value)} /></label>`}
      <div class="pools">${found.slice(0, shown).map((p) => html`<${Card} key=${p.id} p=${p} />`)}</div>
      ${found.length > shown && html`<p class="row" style=${{ marginTop: "var(--s4)" }}><button class="button" type="button" onClick=${() => setShown(shown + 48)}>${t("showMore")}</button><span class="small muted">${t("shownOf", { shown: num(shown), all: num(found.length) })}</span></p>`}
    </div></div>
    <${Newest} live=${l} />`;
}

// Connection says whether what is shown is what happens.
function Connection({ live }) {
  const { feed } = live;
  if (feed.live) return html`<p class="row small" role="status"><span class="chip good"><span class="dot"></span>${t("pools.live")}</span>${feed.sampling && html`<span class="muted">${t("pools.sampled")}</span>`}</p>`;
  if (!feed.since) return html`<p class="row small" role="status"><span class="chip">${t("pools.connecting")}</span></p>`;
  if (feed.failure?.refused) return html`<p class="note" role="status">${t("pools.feedRefused")}</p>`;
  return html`<p class="note warn" role="status" id="feed-lost">${t("pools.lost", { time: clock(feed.since) })}</p>`;
}

// visible tells a pool whether it can be seen, so that only those are read.
function useVisible(p) {
  const box = useRef();
  useEffect(() => {
    const watch = new IntersectionObserver((all) => { p.seen = all.at(-1).isIntersecting; }, { rootMargin: "200px" });
    watch.observe(box.current);
    return () => { watch.disconnect(); p.seen = false; };
  }, []);
  return box;
}

const set = (ms) => ms !== undefined && ms !== "0";

const state = (pool, now = Date.now()) => {
  if (pool.internal) return ["", t("pools.internal")];
  if (pool.startsUnixMs && pool.startsUnixMs !== "0" && Number(pool.startsUnixMs) > now) return ["warn", t("pools.startsAt", { time: date(pool.startsUnixMs) })];
  if (pool.endsUnixMs && pool.endsUnixMs !== "0" && Number(pool.endsUnixMs) <= now) return ["", t("pools.ended")];
  if (pool.totalWeight === undefined || pool.totalWeight === "0") return ["bad", t("pools.soldOut")];
  return ["good", t("pools.open")];
};

function Card({ p }) {
  const box = useVisible(p);
  const { pool } = p;
  const [kind, what] = pool ? state(pool) : ["", "…"];
  const rate = p.rate.last;
  const stocked = (pool?.entries ?? []).filter((e) => e.left !== undefined);
  return html`<article class="card pool" ref=${box} data-pool=${p.id}>
    <div class="row apart top-aligned"><h3 style=${{ minWidth: 0 }}><a class="break" href=${link("pools", p.id)}>${pool?.name || p.id}</a>${pool?.name && pool.name !== p.id && html`<span class="id" style=${{ display: "block" }}>${p.id}</span>`}</h3>
      <span class=${`chip ${kind}`}>${p.gone ? t("pools.gone") : what}</span></div>
    <div class="row apart"><span class="small muted">${t("pools.drawsASecond")}</span><strong class="num">${rate === null ? "–" : dec(rate)}</strong></div>
    <${Spark} values=${p.rate.values} label=${t("pools.course", { rate: rate === null ? "–" : dec(rate) })} />
    ${stocked.length > 0 && html`<div class="entries">${stocked.slice(0, 4).map((e) => html`<${StockLine} key=${e.id} e=${e} />`)}</div>`}
    ${stocked.length > 4 && html`<a class="small" href=${link("pools", p.id)}>${t("pools.moreEntries", { n: num(stocked.length - 4) })}</a>`}
    ${(pool?.budgets ?? []).slice(0, 2).map((b) => html`<${BudgetLine} b=${b} />`)}
  </article>`;
}

// total is how many there were of an entry: what is left and what was drawn.
function StockLine({ e }) {
  const left = Number(e.left);
  const all = left + Number(e.drawn ?? 0);
  return html`<div class="entry"><span class="small break"><${EntryName} entry=${e} /></span><span class="small num">${t("pools.leftOf", { left: num(e.left), all: num(all) })}</span>
    <${Bar} part=${left} whole=${all} label=${t("pools.leftOf", { left: num(e.left), all: num(all) })} /></div>`;
}

function BudgetLine({ b }) {
  return html`<div class="entry"><span class="small">${t("pools.budget", { period: word("period", b.per) })} <${Thing} id=${b.item} plain /></span><span class="small num">${t("pools.leftOf", { left: num(b.left ?? 0), all: num(b.limit ?? 0) })}</span>
    <${Bar} part=${Number(b.left ?? 0)} whole=${Number(b.limit ?? 0)} label=${t("pools.leftOf", { left: num(b.left ?? 0), all: num(b.limit ?? 0) })} /></div>`;
}

// One is a pool by itself: its odds wanted and seen, its stock, budgets and moments.
function One({ live, p }) {
  const box = useVisible(p);
  const [since, setSince] = useState("all");
  const { pool } = p;
  const rate = p.rate.last;
  return html`<p ref=${box}><a href=${link("pools")}>← ${t("pools.all")}</a></p><${Connection} live=${live} />
    ${!pool ? html`<p class="muted" aria-busy="true">${p.gone ? t("pools.gone") : t("loading")}</p>` : html`
    <section class="card"><div class="row apart top-aligned"><h2><${Thing} kind="pools" id=${p.id} /></h2><span class=${`chip ${state(pool)[0]}`}>${state(pool)[1]}</span></div>
      <dl class="stats"><div><dt>${t("pools.drawsASecond")}</dt><dd>${rate === null ? "–" : dec(rate)}</dd></div>
        <div><dt>${t("pools.mode")}</dt><dd class="said">${word("mode", pool.mode)}</dd></div>
        <div><dt>${t("pools.price")}</dt><dd class="said">${(pool.prices ?? []).length ? pool.prices.map((x, i) => html`${i > 0 && ` ${t("or")} `}<${Stacks} items=${x.items} />`) : t("free")}</dd></div>
        <div><dt>${t("pools.runs")}</dt><dd class="said">${set(pool.startsUnixMs) || set(pool.endsUnixMs) ? html`<${Time} ms=${pool.startsUnixMs} /> – <${Time} ms=${pool.endsUnixMs} />` : t("pools.always")}</dd></div></dl>
      <${Spark} values=${p.rate.values} label=${t("pools.course", { rate: rate === null ? "–" : dec(rate) })} /></section>
    <section class="card" id="odds-seen"><div class="row apart"><h2>${t("pools.wantedSeen")}</h2>
      <div class="segments" role="group" aria-label=${t("pools.since")}>${["all", "opened"].map((s) => html`<button class="button" type="button" aria-pressed=${String(s === since)} onClick=${() => setSince(s)}>${t(s === "all" ? "pools.sinceEver" : "pools.sinceOpened")}</button>`)}</div></div>
      <${Seen} pool=${pool} first=${since === "opened" ? p.first : null} /></section>
    ${(pool.budgets ?? []).length > 0 && html`<section class="card"><h2>${t("pools.budgets")}</h2><div class="entries">${pool.budgets.map((b) => html`<div><${BudgetLine} b=${b} />${b.resetsUnixMs && b.resetsUnixMs !== "0" && html`<p class="small muted">${t("pools.fullAt")} <${Time} ms=${b.resetsUnixMs} distance /></p>`}</div>`)}</div></section>`}
    <${Moments} pool=${pool} />`}
    <${Newest} live=${live} pool=${p.id} />`;
}

// Seen compares for each entry the chance by weight with how often it came, with Wilson's band of 95 %.
function Seen({ pool, first }) {
  const entries = pool.entries ?? [];
  const before = new Map((first?.entries ?? []).map((e) => [e.id, Number(e.drawn ?? 0)]));
  const counts = entries.map((e) => Math.max(0, Number(e.drawn ?? 0) - (before.get(e.id) ?? 0)));
  const all = counts.reduce((a, b) => a + b, 0);
  const raffle = pool.mode === "POOL_MODE_RAFFLE";
  // What the chance should be: by weight now, and of a box by what it began with.
  const weight = (e) => (raffle ? Number(e.left ?? 0) + Number(e.drawn ?? 0) : Number(e.weight ?? 0));
  const total = raffle ? entries.reduce((n, e) => n + weight(e), 0) : Number(pool.totalWeight ?? 0);
  const each = pool.mode === "POOL_MODE_EACH";
  const bent = (pool.pity ?? []).length + (pool.guarantees ?? []).length > 0 || entries.some((e) => e.luck || e.when || e.moments || (!raffle && (e.weight ?? "0") !== (e.catalogWeight ?? "0")));
  const rows = entries.map((e, i) => {
    const [low, high] = wilson(counts[i], all);
    return { e, wanted: total > 0 ? weight(e) / total : 0, seen: all > 0 ? counts[i] / all : 0, low, high };
  });
  const banded = all > 0 && !each;
  const scale = decades(rows.flatMap((r) => [r.wanted, r.low, r.high]));
  const at = (chance) => `${scale.at(chance) * 100}%`;
  return html`<p class="small muted">${t("pools.bandText", { n: num(all) })} ${bent && t("pools.bent")} ${each && t("pools.each")}
      ${pool.entryCount > entries.length && t("shownOf", { shown: num(entries.length), all: num(pool.entryCount) })}</p>
    <div class="table" tabindex="0" role="region" aria-label=${t("pools.wantedSeen")}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col" class="num">${t("pools.wanted")}</th><th scope="col" class="num">${t("pools.seen")}</th><th scope="col">${t("pools.band")}${banded && html`<span class="ends"><span>${percent(scale.ends[0])}</span><span>${percent(scale.ends[1])}</span></span>`}</th><th scope="col" class="num">${t("pools.drawn")}</th><th scope="col" class="num">${t("pools.left")}</th></tr></thead>
    <tbody>${rows.map(({ e, wanted, seen, low, high }) => {
      const off = !bent && banded && (wanted < low || wanted > high);
      const text = t("pools.bandFrom", { low: percent(low), high: percent(high) });
      return html`<tr key=${e.id}><th scope="row"><${EntryName} entry=${e} /><span class="id">${e.id}</span></th><td class="num">${percent(wanted)}</td><td class="num">${banded ? percent(seen) : "–"}</td>
        <td style=${{ minWidth: "8rem" }}>${banded && html`<span class=${`band ${off ? "off" : ""}`} role="img" aria-label=${text} title=${text}>${scale.lines.map((x) => html`<u style=${{ left: `${x * 100}%` }}></u>`)}<i style=${{ left: at(low), width: `${(scale.at(high) - scale.at(low)) * 100}%` }}></i>${wanted > 0 && html`<b style=${{ left: at(wanted) }}></b>`}</span>`}</td>
        <td class="num">${num(e.drawn ?? 0)}</td><td class="num">${e.left === undefined ? "∞" : num(e.left)}</td></tr>`;
    })}</tbody></table></div>`;
}

function Moments({ pool }) {
  const with_ = (pool.entries ?? []).filter((e) => e.moments);
  if (!with_.length) return null;
  return html`<section class="card"><h2>${t("pools.moments")}</h2><div class="table" tabindex="0" role="region" aria-label=${t("pools.moments")}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col" class="num">${t("pools.momentsAll")}</th><th scope="col" class="num">${t("pools.momentsCome")}</th><th scope="col" class="num">${t("pools.momentsTaken")}</th><th scope="col" class="num">${t("pools.momentsWaiting")}</th><th scope="col">${t("pools.momentsNext")}</th></tr></thead>
    <tbody>${with_.map((e) => html`<tr key=${e.id}><th scope="row"><${EntryName} entry=${e} /><span class="id">${e.id}</span></th><td class="num">${num(e.moments.count ?? 0)}</td><td class="num">${num(e.moments.come ?? 0)}</td><td class="num">${num(e.drawn ?? 0)}</td><td class="num">${num(e.moments.waiting ?? 0)}</td>
      <td>${e.moments.nextUnixMs && e.moments.nextUnixMs !== "0" ? html`<${Time} ms=${e.moments.nextUnixMs} />` : html`<span class="muted">${t("pools.momentsHidden")}</span>`}<${Hours} weights=${e.moments.weights ?? []} /></td></tr>`)}</tbody></table></div></section>`;
}

// Hours shows how moments lie over the day: hours that are not named weigh 1.
function Hours({ weights }) {
  const hours = useMemo(() => {
    const w = Array(24).fill(1);
    for (const one of weights) {
      const m = /^(\d+)(?:-(\d+))?$/.exec(one.when);
      if (!m) continue;
      const from = Number(m[1]);
      const to = m[2] === undefined ? from + 1 : Number(m[2]);
      for (let h = from; h < to && h < 24; h++) w[h] = Number(one.weight);
    }
    return w;
  }, [weights]);
  if (!weights.length) return null;
  return html`<${Spark} values=${hours} label=${t("pools.overTheDay")} /><span class="small muted">${weights.map((w) => `${w.when} ×${num(w.weight)}`).join(", ")}</span>`;
}

function Newest({ live, pool }) {
  const [paused, pause] = useState(null);
  const all = (paused ?? live.newest).filter((e) => !pool || e.pool === pool).slice(0, 30);
  return html`<section class="card" id="newest"><div class="row apart"><h2>${t("pools.newest")}</h2>
    <button class="button" type="button" aria-pressed=${String(Boolean(paused))} onClick=${() => pause(paused ? null : [...live.newest])}>${t("pools.pause")}</button></div>
    ${all.length === 0 ? html`<p class="muted">${t("pools.noDraws")}</p>` : html`<div>${all.map((e) => html`<div class="feedline" key=${`${e.position}/${e.index ?? 0}`}>
      <a class="small num" href=${link("proof", e.position, String(e.index ?? 0))}><time>${clock(e.timeUnixMs)}</time></a>
      <span class="break">${e.player && html`<${PlayerLink} id=${e.player} /> `}${!pool && e.pool && html`<${Thing} kind="pools" id=${e.pool} plain />: `}${e.status === "STATUS_OK"
        ? (e.outcomes ?? []).slice(0, 10).map((o, i) => html`${i > 0 && ", "}${o.items?.length ? html`<${Stacks} items=${o.items} />` : o.entry}`) : html`<${StatusChip} status=${e.status} />`}</span></div>`)}</div>`}</section>`;
}
