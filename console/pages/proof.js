// Proof: what a receipt says, what the log and the epoch say, and whether they agree.
import { html, useEffect, useState } from "../dom.js";
import { Failure, call } from "../api.js";
import { follow } from "../feed.js";
import { longDate, num, t, word } from "../i18n.js";
import { app } from "../store.js";
import { commitmentOf, fromBase64, hex } from "../sha256.js";
import { Copy, Failed, Field, Head, PlayerLink, Stacks, StatusChip, Thing, Time, link, useLoad } from "../ui.js";

export default function Proof({ rest }) {
  const [given, set] = useState(null); // null: nothing was pasted; false: nothing that can be checked
  const [turn, setTurn] = useState(0);
  const give = (what) => { set(what); setTurn(turn + 1); }; // what is checked again is read again
  const [place, index] = rest;
  return html`<div class="page"><${Head} title=${t("page.proof")}>${t("proof.text")}</${Head}>
    <${Paste} give=${give} />
    ${given ? html`<${Steps} key=${turn} given=${given} />`
      : given === null && /^\d+$/.test(place ?? "") && html`<${Steps} key=${place + index} given=${{ realm: app.realm, position: place, index: Number(index ?? 0) }} />`}</div>`;
}

function Paste({ give }) {
  const [text, set] = useState("");
  const [wrong, setWrong] = useState("");
  const go = (e) => {
    e.preventDefault();
    try {
      const read = readReceipt(text);
      setWrong("");
      give(read);
    } catch (error) {
      setWrong(error.message);
      give(false); // the steps of what was there before say nothing about this
    }
  };
  return html`<form class="card" onSubmit=${go}><${Field} label=${t("proof.paste")}><textarea class="code" name="receipt" rows="6" spellcheck=${false} value=${text} onInput=${(e) => set(e.target.value)}></textarea></${Field}>
    ${wrong && html`<p class="note bad" role="alert">${wrong}</p>`}
    <div class="row"><button class="button primary" disabled=${!text.trim()}>${t("proof.check")}</button><span class="small muted">${t("proof.anyForm")}</span></div></form>`;
}

// readReceipt finds the receipt in what was pasted: an answer, a result or a receipt, as the API or the
// command line writes it.
export function readReceipt(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(t("proof.noJSON"));
  }
  const result = value?.result ?? value;
  const receipt = result?.receipt ?? result;
  const position = receipt?.position;
  if (position === undefined || !/^\d+$/.test(String(position))) throw new Error(t("proof.noReceipt"));
  const full = result.status !== undefined || result.outcomes !== undefined; // not only where it stands
  const commitment = receipt.commitment ?? null;
  return {
    realm: receipt.realm || app.realm, position: String(position), index: Number(receipt.index ?? 0),
    epoch: receipt.epoch === undefined ? null : String(receipt.epoch), result: full ? saidBy(result) : null,
    commitment: commitment && (/^[0-9a-f]{64}$/i.test(commitment) ? commitment.toLowerCase() : hex(fromBase64(commitment))),
    time: receipt.timeUnixMs ?? receipt.time_unix_ms ?? null, catalog: receipt.catalogVersion ?? receipt.catalog_version ?? null,
  };
}

// eventAt reads the event at a place of the log; null: there is none.
async function eventAt({ realm, position, index }, signal) {
  try {
    const { realms = [] } = await call("GetStatus", { realm }, { signal });
    if (realms[0] && BigInt(realms[0].position ?? 0) < BigInt(position)) return null;
  } catch (e) {
    if (!(e instanceof Failure) || e.code !== "permission_denied") throw e; // the feed may be allowed
  }
  return new Promise((done, fail) => {
    let stop = () => {};
    let idle = 0;
    const end = (f, v) => { stop(); f(v); };
    signal.addEventListener("abort", () => end(fail, signal.reason), { once: true });
    stop = follow({ realm, from: position, pool: app.access?.pools?.[0] }, {
      event(e) {
        if (e.position === position && (e.index ?? 0) === index) end(done, e);
        else if (BigInt(e.position) > BigInt(position) || (e.index ?? 0) > index) end(done, null);
      },
      idle(next) { // the first message only says that it is connected, the second one that nothing came for 10 s
        if (++idle > 1 || BigInt(next ?? 0) > BigInt(position)) end(done, null);
      },
      state({ live, failure }) {
        if (!live) idle = 0;
        if (!failure || failure.code === "unreachable") return;
        const beyond = failure.code === "not_found" || failure.code === "invalid_argument"; // the log ends before
        end(beyond ? done : fail, beyond ? null : failure);
      },
    });
  });
}

async function gather(given, signal) {
  const event = await eventAt(given, signal);
  let { epoch } = given;
  if (!epoch && event?.requestId) { // the feed does not name the epoch; the remembered answer does
    try {
      const got = await call("GetResult", { realm: given.realm, requestId: event.requestId }, { signal });
      epoch = got.result?.receipt?.epoch ?? null; // its commitment is the server's word of now, and compares with nothing
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
    }
  }
  let begun = null;
  let failure = null;
  let other = false; // the event is not of this epoch
  if (/^[1-9]\d*$/.test(epoch ?? "")) {
    const read = async (number) => (await call("GetEpoch", { realm: given.realm, epoch: String(number) }, { signal, timeout: 60_000 })).epoch;
    try {
      begun = await read(epoch);
      const at = BigInt(given.position);
      other = BigInt(begun.position ?? 0) >= at || (!begun.current && BigInt((await read(BigInt(epoch) + 1n)).position ?? 0) < at);
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      if (!begun) failure = e; // otherwise it is the last epoch that there is
    }
  }
  return { event, epoch, begun, failure, other };
}

function Steps({ given }) {
  const load = useLoad((signal) => gather(given, signal), []);
  if (load.failure) return html`<${Failed} failure=${load.failure} retry=${load.reload} />`;
  if (!load.data) return html`<p class="muted" aria-busy="true">${t("loading")}</p>`;
  const { event, epoch, begun, failure, other } = load.data;
  const { commitment } = given;
  const logged = begun && hex(fromBase64(begun.commitment ?? ""));
  const seed = begun?.seed ? fromBase64(begun.seed) : null;
  const computed = seed && hex(commitmentOf(given.realm, epoch, seed));
  const same = event ? agrees(given, event) : null;
  return html`<p class="row"><button class="button" id="again" type="button" onClick=${load.reload}>${t("reload")}</button></p><ol class="steps card" id="steps">
    <${Step} n="1" mark=${event ? (same === false ? "bad" : "good") : "bad"} title=${t("proof.inTheLog")}>
      ${event ? html`<p>${t("proof.found", { position: num(event.position), index: num(event.index ?? 0), realm: given.realm })}</p><${Event} e=${event} />
        ${same === true && html`<p class="note good">${t("proof.same")}</p>`}${same === false && html`<p class="note bad">${t("proof.differs")}</p>`}`
        : html`<p>${t("proof.notFound", { position: num(given.position), index: num(given.index), realm: given.realm })}</p>`}</${Step}>
    <${Step} n="2" mark=${other ? "bad" : !begun || !commitment ? "warn" : commitment === logged ? "good" : "bad"} title=${t("proof.committed")}>
      ${begun ? html`<p>${t("proof.committedText", { epoch: num(epoch), position: num(begun.position ?? 0) })}</p><dl class="pairs small"><dt>${t("proof.commitment")}</dt><dd><code class="break">${logged}</code></dd><dt>${t("why.when")}</dt><dd><${Time} ms=${begun.timeUnixMs} seconds /></dd></dl>
          ${other && html`<p class="note bad">${t("proof.otherEpoch", { position: num(given.position) })}</p>`}
          ${!commitment ? html`<p>${t("proof.noCommitment")}</p>` : commitment === logged ? html`<p class="note good">${t("proof.commitmentSame")}</p>` : html`<p class="note bad">${t("proof.commitmentDiffers")} <code class="break">${commitment}</code></p>`}`
        : failure ? (failure.notOffered ? html`<p>${t("failure.unimplemented")}</p>` : html`<${Failed} failure=${failure} />`) : html`<p>${t("proof.noEpoch")}</p>`}</${Step}>
    <${Step} n="3" mark=${seed ? (computed === logged ? "good" : "bad") : "warn"} title=${t("proof.revealed")}>
      ${seed ? html`<dl class="pairs small"><dt>${t("proof.seed")}</dt><dd><code class="break" id="seed">${hex(seed)}</code></dd><dt>SHA-256</dt><dd><code class="break" id="computed">${computed}</code></dd></dl>
          <p class=${`note ${computed === logged ? "good" : "bad"}`} id="belongs">${computed === logged ? t("proof.belongs") : t("proof.notBelongs")}</p><p class="small muted">${t("proof.how")}</p>`
        : html`<p>${begun?.current ? t("proof.current") : t("proof.notRevealed")}</p>`}</${Step}>
    <${Step} n="4" mark="" title=${t("proof.again")}>
      ${begun?.current ? html`<p class="note" id="later">${t("proof.againLater")}</p><details><summary>${t("proof.againThen")}</summary><${Again} /></details>` : html`<${Again} />`}</${Step}>
  </ol>`;
}

// Again is how to have every choice decided again. Of an epoch that runs, nobody can: its seed is secret.
function Again() {
  return html`<p>${t("proof.againText")}</p><pre tabindex="0">${commands()}</pre><${Copy} text=${commands()} />`;
}

const commands = () => `kuji backup --to ./kuji-copy --server ${location.origin} --key-file admin.key\nkuji verify --data ./kuji-copy`;

// saidBy returns what a result, or an event of the log, says of how a command ended, in one form whoever has
// written it: the API has names in camel case and large numbers as texts, the command line neither.
function saidBy(of) {
  const plain = (value) => {
    if (Array.isArray(value)) return value.map(plain);
    if (value === null || typeof value !== "object") return String(value ?? "");
    const pairs = Object.entries(value).map(([key, v]) => [key.replace(/_(\w)/g, (_, c) => c.toUpperCase()), plain(v)]);
    return Object.fromEntries(pairs.filter(([key, v]) => v !== "" && v !== "0" && v !== "false" && v.length !== 0 && key !== "code") // codes are redacted in the log's feed
      .sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  return JSON.stringify({
    status: String(of.status ?? "").replace(/^STATUS_/, "").toLowerCase(), subject: of.subject ?? "",
    outcomes: plain(of.outcomes ?? []), paid: plain(of.paid ?? []), members: (of.members ?? []).map(saidBy),
  });
}

// agrees compares what was pasted with what stands in the log; null: nothing but a receipt was pasted.
function agrees(given, event) {
  if (given.time !== null && String(given.time) !== String(event.timeUnixMs)) return false;
  if (given.catalog !== null && String(given.catalog) !== String(event.catalogVersion ?? 0)) return false;
  return given.result === null || given.result === undefined ? null : given.result === saidBy(event);
}

function Step({ n, mark, title, children }) {
  return html`<li class=${mark}><span class="mark" aria-hidden="true">${mark === "good" ? "✓" : mark === "bad" ? "✗" : n}</span><div class="body"><h2>${title}${mark && html` <span class="vh">${t(`proof.mark.${mark}`)}</span>`}</h2>${children}</div></li>`;
}

function Event({ e }) {
  return html`<dl class="pairs small">
    <dt>${t("why.what")}</dt><dd><strong>${word("kind", e.kind)}</strong> <${StatusChip} status=${e.status} /></dd>
    ${e.player && html`<dt>${t("player")}</dt><dd><${PlayerLink} id=${e.player} /></dd>`}
    ${e.pool && html`<dt>${t("pool")}</dt><dd><${Thing} kind="pools" id=${e.pool} /></dd>`}
    ${e.outcomes?.length > 0 && html`<dt>${t("proof.outcomes")}</dt><dd>${e.outcomes.map((o, i) => html`${i > 0 && "; "}<strong>${o.entry}</strong>${o.items?.length > 0 && html` (<${Stacks} items=${o.items} />)`}`)}</dd>`}
    ${e.requestId && html`<dt>${t("receipt.id")}</dt><dd><code class="break">${e.requestId}</code></dd>`}
    <dt>${t("why.when")}</dt><dd>${longDate(e.timeUnixMs)}</dd>
    <dt>${t("receipt.catalog")}</dt><dd class="num">${num(e.catalogVersion ?? 0)}</dd>
    ${e.by && html`<dt>${t("why.who")}</dt><dd>${e.by}</dd>`}${e.reason && html`<dt>${t("act.reason")}</dt><dd class="break">${e.reason}</dd>`}</dl>`;
}
