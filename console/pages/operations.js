// Operations: how the server, its realms and their logs are.
import { html, useState } from "../dom.js";
import { Failure, call, text } from "../api.js";
import { ago, bytes, dec, num, t, word } from "../i18n.js";
import { app, mayWhole, may, names, offers } from "../store.js";
import { metricsOf } from "../live.js";
import { Bar, Failed, Field, Head, Loading, NotOffered, Stacks, Time, useLoad, usePoll } from "../ui.js";

const WANTED = new Set(["kuji_realm_snapshot_failed", "kuji_realm_request_ids_young", "kuji_realm_request_ids_limit",
  "kuji_realm_request_ids_refused_total", "kuji_realm_feed_readers", "kuji_realm_feed_lag", "kuji_realm_history_lag", "kuji_realm_history_down", "kuji_realm_leads", "kuji_realm_behind",
  "kuji_results_total", "kuji_rpc_requests_total", "kuji_log_lines_left_out_total", "process_start_time_seconds", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"]);

export default function Operations() {
  const [status, setStatus] = useState(null);
  const [failure, fail] = useState(null);
  const [metrics, setMetrics] = useState(null);
  const [cluster, setCluster] = useState(null);
  usePoll(async (signal) => {
    try {
      setStatus(await call("GetStatus", mayWhole() ? {} : { realm: app.realm }, { signal }));
      fail(null);
    } catch (e) {
      fail(e);
      throw e;
    }
    if (!mayWhole()) return;
    setMetrics(metricsOf(await text("/metrics", { signal }), WANTED));
  }, 5000, [app.realm]);
  usePoll(async (signal) => {
    if (!mayWhole() || !offers("cluster")) return;
    try {
      setCluster({ answer: await call("ListNodes", {}, { signal, timeout: 10_000 }) });
    } catch (failure) {
      if (!signal.aborted) setCluster({ failure });
      throw failure;
    }
  }, 10_000, []);
  return html`<div class="page"><${Head} title=${t("page.operations")}>${t("operations.text")}</${Head}>
    ${failure && html`<${Failed} failure=${failure} />`}
    ${!status && !failure && html`<p class="muted" aria-busy="true">${t("loading")}</p>`}
    ${status && html`<${Server} status=${status} metrics=${metrics} />${cluster?.failure && html`<${Failed} failure=${cluster.failure} />`}${cluster?.answer && html`<${Nodes} cluster=${cluster.answer} />`}<${Realms} realms=${status.realms ?? []} metrics=${metrics} leaders=${cluster?.answer?.realms} />`}
    ${metrics && html`<${Refusals} metrics=${metrics} />`}
    <div class="cards two"><div class="stack"><${Slow} /><${Codes} /></div><div class="stack"><${Keys} /><${Verify} /></div></div></div>`;
}

const sum = (metrics, name) => metrics.filter((m) => m.name === name).reduce((n, m) => n + m.value, 0);
const of = (metrics, name, realm) => metrics?.find((m) => m.name === name && m.labels.realm === realm)?.value;

function Server({ status, metrics }) {
  const started = metrics?.find((m) => m.name === "process_start_time_seconds")?.value;
  const memory = metrics?.find((m) => m.name === "process_resident_memory_bytes")?.value;
  return html`<section class="card" id="server"><div class="row apart"><h2>${t("operations.server")}</h2>${status.draining ? html`<span class="chip warn">${t("operations.draining")}</span>` : html`<span class="chip good"><span class="dot"></span>${t("operations.up")}</span>`}</div>
    <dl class="stats"><div><dt>${t("operations.version")}</dt><dd class="said">${status.version || app.version || "–"}</dd></div>
      <div><dt>${t("operations.sync")}</dt><dd class="said">${word("sync", status.sync ?? "SYNC_POLICY_UNSPECIFIED")}</dd></div>
      ${started && html`<div><dt>${t("operations.started")}</dt><dd class="said"><${Time} ms=${Math.round(started * 1000)} /></dd></div>`}
      ${memory && html`<div><dt>${t("operations.memory")}</dt><dd>${bytes(memory)}</dd></div>`}
      <div><dt>${t("operations.realms")}</dt><dd>${num(status.realms?.length ?? 0)}</dd></div>
      <div><dt>${t("operations.cluster")}</dt><dd class="said">${offers("cluster") === null ? "–" : offers("cluster") ? t("yes") : t("no")}</dd></div></dl></section>`;
}

// Nodes are the servers of a cluster, as each describes itself.
function Nodes({ cluster }) {
  const { nodes = [], realms = [] } = cluster;
  const lost = realms.filter((r) => !r.leader);
  const state = (n) => n.state === "NODE_STATE_UNREACHABLE" ? "bad" : n.ready && !n.why && !n.behind ? "good" : "warn";
  return html`<section class="card" id="nodes"><h2>${t("operations.nodes", { cluster: cluster.cluster })}</h2>
    ${lost.map((r) => html`<p class="note bad" key=${r.realm}>${t("operations.nobodyLeads", { realm: r.realm })}</p>`)}
    <div class="table" tabindex="0" role="region" aria-label=${t("operations.cluster")}><table><thead><tr><th scope="col">${t("operations.node")}</th><th scope="col">${t("operations.state")}</th>
      ${["leads", "behindBy", "stored", "free", "clockOff"].map((k) => html`<th scope="col" class="num" key=${k}>${t(`operations.${k}`)}</th>`)}<th scope="col">${t("operations.version")}</th></tr></thead>
    <tbody>${nodes.map((n) => html`<tr key=${n.node}><th scope="row" class="break says">${n.node}<span class="small muted" style=${{ display: "block" }}>${n.address}</span></th>
      <td class="says"><span class=${`chip ${state(n)}`}>${word("node", n.state)}</span>${[n.why, n.behind].map((why) => why && html`<span class="small break" style=${{ display: "block" }}>${why}</span>`)}</td>
      <td class="num">${num(n.leads ?? 0)}</td><td class="num">${num(n.lag ?? 0)}</td>
      <td class="num">${n.storedBytes && n.storedBytes !== "0" ? bytes(n.storedBytes) : "–"}</td><td class="num">${n.freeBytes && n.freeBytes !== "0" ? bytes(n.freeBytes) : "–"}</td>
      <td class="num">${n.clockMs === undefined ? "–" : `${dec(Number(n.clockMs) / 1000, 1)} s`}</td><td class="small break">${n.version || "–"}</td></tr>`)}</tbody></table></div></section>`;
}

function Realms({ realms, metrics, leaders }) {
  if (!realms.length) return html`<p class="empty">${t("operations.noRealms")}</p>`;
  return html`<div class="cards">${realms.map((r) => html`<${Realm} key=${r.realm} r=${r} metrics=${metrics} leader=${leaders?.find((l) => l.realm === r.realm)?.leader} />`)}</div>`;
}

function Realm({ r, metrics, leader }) {
  const drift = Number(r.clockUnixMs ?? 0) - Number(r.timeUnixMs ?? 0);
  const young = of(metrics, "kuji_realm_request_ids_young", r.realm);
  const limit = of(metrics, "kuji_realm_request_ids_limit", r.realm);
  const leads = of(metrics, "kuji_realm_leads", r.realm);
  const lag = of(metrics, "kuji_realm_history_lag", r.realm);
  const snapshot = Number(r.snapshotPosition ?? 0);
  const one = (label, value) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`;
  return html`<section class="card" data-realm=${r.realm}><div class="row apart"><h2 class="break">${r.realm}</h2>
      ${r.error ? html`<span class="chip bad">${t("operations.stopped")}</span>` : html`<span class="chip good"><span class="dot"></span>${leads === 0 ? t("operations.follows") : t("operations.healthy")}</span>`}</div>
    ${r.error && html`<p class="note bad">${r.error}</p>`}
    ${Math.abs(drift) > 60_000 && html`<p class="note warn">${t(drift > 0 ? "operations.clock" : "operations.clockBehind", { seconds: num(Math.round(Math.abs(drift) / 1000)) })}</p>`}
    ${of(metrics, "kuji_realm_snapshot_failed", r.realm) === 1 && html`<p class="note bad">${t("operations.snapshotFailed")}</p>`}
    ${of(metrics, "kuji_realm_history_down", r.realm) === 1 && html`<p class="note warn">${t("operations.historyDown")}</p>`}
    ${r.level !== r.newestLevel && html`<p class="note">${t("operations.level", { level: num(r.level ?? 0), newest: num(r.newestLevel ?? 0) })}</p>`}
    <dl class="stats">
      ${one(t("operations.position"), num(r.position ?? 0))}${one(t("receipt.epoch"), num(r.epoch ?? 0))}${one(t("receipt.catalog"), num(r.catalogVersion ?? 0))}
      ${one(t("operations.players"), num(r.players ?? 0))}${one(t("operations.draws"), num(r.draws ?? 0))}${one(t("operations.events"), num(r.events ?? 0))}
      ${one(t("operations.failures"), num(r.failures ?? 0))}${one(t("operations.replays"), num(r.replays ?? 0))}
      ${leader && one(t("operations.leader"), leader)}
      ${r.logKeptBytes && r.logKeptBytes !== "0" && one(t("operations.logKept"), bytes(r.logKeptBytes))}${one(t("operations.logBytes"), bytes(r.logBytes))}${one(t("operations.pending"), bytes(r.pendingBytes))}
      ${one(t("operations.snapshot"), snapshot ? html`${bytes(r.snapshotBytes ?? 0)} <small>${t("operations.snapshotAt", { position: num(snapshot), n: num(Math.max(0, Number(r.position ?? 0) - snapshot)) })}</small>` : html`<small>${t("operations.noSnapshot")}</small>`)}
      ${!offers("cluster") && one(t("operations.backup"), Number(r.backupUnixMs ?? 0) > 0 ? html`<${Time} ms=${r.backupUnixMs} />` : html`<small>${t("operations.noBackup")}</small>`)}
      ${lag !== undefined && one(t("operations.historyLag"), num(lag))}
      ${of(metrics, "kuji_realm_feed_readers", r.realm) !== undefined && one(t("operations.feeds"), html`${num(of(metrics, "kuji_realm_feed_readers", r.realm))} <small>${t("operations.lag", { n: num(of(metrics, "kuji_realm_feed_lag", r.realm) ?? 0) })}</small>`)}
      ${one(t("operations.recovered"), html`${num(r.recoveredPosition ?? 0)} <small>${t("operations.replayed", { n: num(r.recoveredEvents ?? 0) })}</small>`)}
    </dl>
    <div class="entry"><span class="small">${t("operations.ids")}</span><span class="small num">${limit ? t("operations.idsOf", { left: num(limit - (young ?? 0)), all: num(limit) }) : num(r.requestIds ?? 0)}</span>
      ${limit > 0 && html`<${Bar} part=${limit - (young ?? 0)} whole=${limit} label=${t("operations.idsLeft", { n: num(limit - (young ?? 0)) })} /><span class="small muted whole">${t("operations.idsKept", { n: num(r.requestIds ?? 0) })}</span>`}</div></section>`;
}

function Refusals({ metrics }) {
  const statuses = metrics.filter((m) => m.name === "kuji_results_total" && m.value > 0);
  const codes = new Map();
  for (const m of metrics) if (m.name === "kuji_rpc_requests_total" && m.labels.code !== "ok" && m.value > 0) codes.set(m.labels.code, (codes.get(m.labels.code) ?? 0) + m.value);
  const leftOut = sum(metrics, "kuji_log_lines_left_out_total");
  const rows = (list) => html`<tbody>${list.sort((a, b) => b[1] - a[1]).map(([name, n]) => html`<tr key=${name}><th scope="row">${name}</th><td class="num">${num(n)}</td></tr>`)}</tbody>`;
  return html`<div class="cards two"><section class="card" id="refusals"><h2>${t("operations.outcomes")}</h2>${statuses.length === 0 ? html`<p class="muted">${t("operations.noneYet")}</p>` : html`<table>${rows(statuses.map((m) => [word("status", `STATUS_${m.labels.status.toUpperCase()}`), m.value]))}</table>`}</section>
    <section class="card"><h2>${t("operations.errors")}</h2>${codes.size === 0 ? html`<p class="muted">${t("operations.noErrors")}</p>` : html`<table>${rows([...codes])}</table>`}
      ${leftOut > 0 && html`<p class="note warn">${t("operations.leftOut", { n: num(leftOut) })}</p>`}</section></div>`;
}

// Part is a card whose content another RPC gives, which a server may lack or a key may not call.
function Part({ title, id, load, children, none }) {
  return html`<section class="card" id=${id}><h2>${title}</h2>
    ${load.failure?.notOffered ? html`<${NotOffered} what=${none} />` : load.failure?.code === "permission_denied" ? html`<p class="muted">${t("failure.permission_denied")}</p>` : html`<${Loading} load=${load}>${children}</${Loading}>`}</section>`;
}

function Slow() {
  const load = useLoad((signal) => call("ListSlow", {}, { signal }), []);
  return html`<${Part} id="slow" title=${t("operations.slow")} load=${load} none=${t("operations.noSlow")}>${({ calls = [] }) => calls.length === 0 ? html`<p class="muted">${t("operations.nothingSlow")}</p>` : html`
    <div class="table" tabindex="0" role="region" aria-label=${t("operations.slow")}><table><thead><tr><th scope="col">${t("operations.call")}</th><th scope="col" class="num">${t("operations.took")}</th></tr></thead><tbody>${calls.slice(0, 20).map((c) => html`<tr><th scope="row" class="break">${c.method.split("/").at(-1)}
      <span class="small muted" style=${{ display: "block" }}><${Time} ms=${c.timeUnixMs} /> ${c.realm} ${c.key} ${c.code !== "ok" && c.code}</span></th><td class="num">${dec(Number(c.tookUs ?? 0) / 1000, 1)} ms</td></tr>`)}</tbody></table></div>`}</${Part}>`;
}

function Keys() {
  const load = useLoad((signal) => call("ListKeys", {}, { signal }), []);
  return html`<${Part} id="keys" title=${t("operations.keys")} load=${load} none=${t("operations.noKeys")}>${({ keys = [] }) => keys.length === 0 ? html`<p class="muted">${t("operations.keyless")}</p>` : html`
    <ul class="list">${keys.map((k) => html`<li key=${k.name}><strong class="break">${k.name}</strong> ${k.issuer && html`<span class="chip">${t("operations.issuer")}</span>`}
      <div class="row" style=${{ gap: "var(--s1)" }}>${(k.commands ?? []).map((c) => html`<span class=${`chip ${c === "admin" ? "warn" : ""}`}>${c}</span>`)}</div>
      <span class="small muted">${k.realms?.length > 0 && `${t("operations.realms")}: ${k.realms.join(", ")} `}${k.pools?.length > 0 && `${t("catalog.pools")}: ${k.pools.join(", ")} `}${k.rate > 0 && t("operations.rate", { n: num(k.rate) })}
        ${(k.grants ?? []).map((g) => ` ${g.item}: ${num(g.request ?? 0)}${g.day && g.day !== "0" ? ` / ${num(g.day)}` : ""}`)}</span></li>`)}</ul>`}</${Part}>`;
}

// Codes finds the lists that the catalog's rewards give codes of, and how many are left.
function Codes() {
  const pools = names()?.poolIds ?? [];
  const load = useLoad(async (signal) => {
    const lists = new Set();
    for (const pool of pools.slice(0, 60)) {
      const got = await call("GetPool", { realm: app.realm, pool, entryLimit: 1000, stale: true }, { signal });
      for (const e of got.pool.entries ?? []) for (const c of e.reward?.codes ?? []) lists.add(c);
      for (const r of got.pool.redeem ?? []) lists.add(r.list);
    }
    return Promise.all([...lists].map((list) => call("GetCodes", { realm: app.realm, list }, { signal }).then((g) => g.list, (e) => {
      if (e instanceof Failure && e.code === "not_found") return { list };
      throw e;
    })));
  }, [pools.join(" ")]);
  return html`<${Part} id="codes" title=${t("operations.codes")} load=${load} none="">${(lists) => lists.length === 0 ? html`<p class="muted">${t("operations.noCodes")}</p>` : html`
    <div class="entries">${lists.map((l) => {
      const all = Number(l.codes ?? 0);
      const left = all - Number(l.given ?? 0);
      return html`<div class="entry"><span class="break">${l.list}</span><span class="small num">${t("pools.leftOf", { left: num(left), all: num(all) })}</span><${Bar} part=${left} whole=${all} label=${t("pools.leftOf", { left: num(left), all: num(all) })} /></div>`;
    })}</div>`}</${Part}>`;
}

// Verify shows a report of "kuji verify --json". It is made from a backup: to decide a realm again takes a
// second copy of its state, which a server should not have to hold.
function Verify() {
  const [given, give] = useState("");
  const { realms, wrong } = readReport(given);
  return html`<section class="card" id="verify"><h2>${t("operations.verify")}</h2>
    <p class="small muted">${t("operations.verifyText")}</p>
    <pre tabindex="0">kuji backup --to /backup/kuji --server ${location.origin}${"\n"}kuji verify --data /backup/kuji --json > report.json</pre>
    <${Field} label=${t("operations.verifyPaste")} error=${wrong}><textarea class="code" name="report" rows="3" spellcheck=${false} value=${given} onInput=${(e) => give(e.target.value)}></textarea></${Field}>
    ${realms.map((r) => html`<div key=${r.realm} class="entry"><div class="row apart"><b class="break">${r.realm}</b>${r.ok ? html`<span class="chip good">${t("operations.verifyOk")}</span>` : html`<span class="chip bad">${t("operations.verifyBad")}</span>`}</div>
      ${r.error && html`<p class="note bad break" role="alert">${typeof r.error === "string" ? r.error : JSON.stringify(r.error)}</p>`}
      <dl class="stats"><div><dt>${t("operations.position")}</dt><dd>${num(r.position ?? 0)}</dd></div>
        <div><dt>${t("operations.verifyDraws")}</dt><dd>${num(r.draws ?? 0)}</dd></div>
        <div><dt>${t("operations.verifyEpochs")}</dt><dd>${num(decided(r))} / ${num((r.epochs ?? []).length)}</dd></div></dl>
      ${r.state_hash && html`<p class="small mono break">${r.state_hash}</p>`}</div>`)}</section>`;
}

const decided = (r) => (r.epochs ?? []).filter((e) => e.revealed && !e.undecided).length;

// readReport finds the realms in a report.
function readReport(text) {
  if (!text.trim()) return { realms: [] };
  try {
    const { realms } = JSON.parse(text);
    if (Array.isArray(realms) && realms.every((r) => typeof r?.realm === "string")) return { realms };
  } catch {
    // the same is wrong with it
  }
  return { realms: [], wrong: t("operations.verifyNoReport") };
}
