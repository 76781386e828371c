// What a person can do to a player: a form, a preview of what it changes, a confirmation that says so,
// and the receipt. One request id belongs to one intended action: it is made with the preview, and kept
// through all attempts, so that a second press of the button cannot do it twice.
import { html, useEffect, useMemo, useRef, useState } from "./dom.js";
import { Failure, call, newId, send } from "./api.js";
import { num, t, word } from "./i18n.js";
import { app, may, named, names } from "./store.js";
import { Dialog, Failed, Field, Stacks, StatusChip, Subject, Thing, Time, link } from "./ui.js";

const MOST = 2n ** 53n - 1n;
const whole = (text, least, most = MOST) => /^\d{1,16}$/.test(text ?? "") && BigInt(text) >= least && BigInt(text) <= most;
const held = (player, item) => BigInt(player.items?.find((s) => s.item === item)?.quantity ?? 0);
const size = (text) => new TextEncoder().encode(text ?? "").length;

// ACTIONS: command is the word of the key file; fields, the form; problem, what is wrong with it; preview,
// what changes; says, the confirmation; request, what is sent. minus marks what takes something away.
export const ACTIONS = {
  grant: {
    command: "grant", method: "Grant",
    fields: ({ form, set }) => html`<${ItemFields} form=${form} set=${set} items=${allItems()} />`,
    problem: itemProblem,
    preview: async (form, player) => {
      const before = held(player, form.item);
      const after = before + BigInt(form.quantity);
      const notes = [];
      const item = names()?.catalog?.items?.find((i) => i.id === form.item);
      const most = BigInt(item?.most ?? 0);
      if (after > MOST) notes.push(t("act.overflow"));
      if (most > 0n && after > most) notes.push(t("act.beyondMost", { most: num(most), what: word("beyond", item.beyond ?? "") }));
      return { rows: [{ kind: "items", id: form.item, before: num(before), after: num(after) }], notes };
    },
    says: (form, player) => t("act.says.grant", { player: player.id, n: num(form.quantity), item: named("items", form.item).name }),
    request: (form, player) => ({ player: player.id, items: [{ item: form.item, quantity: form.quantity }] }),
  },
  take: {
    command: "consume", method: "Consume", minus: true,
    fields: ({ form, set, player }) => html`<${ItemFields} form=${form} set=${set} items=${(player.items ?? []).map((s) => s.item)} />`,
    problem: itemProblem,
    preview: async (form, player) => {
      const before = held(player, form.item);
      const after = before - BigInt(form.quantity);
      return { rows: [{ kind: "items", id: form.item, before: num(before), after: after < 0n ? num(before) : num(after) }], notes: after < 0n ? [t("act.tooFew")] : [] };
    },
    says: (form, player) => t("act.says.take", { player: player.id, n: num(form.quantity), item: named("items", form.item).name }),
    request: (form, player) => ({ player: player.id, items: [{ item: form.item, quantity: form.quantity }] }),
  },
  track: {
    command: "admin", method: "SetTrack",
    fields: ({ form, set, player }) => {
      const [tracks, setTracks] = useState((player.pity ?? []).map((p) => p.track));
      useEffect(() => { allTracks().then((more) => setTracks((old) => [...new Set([...old, ...more])]), () => {}); }, []);
      return html`<${Choice} label=${t("track")} name="track" options=${tracks} form=${form} set=${set} />
        <${Amount} label=${t("act.draws")} name="draws" form=${form} set=${set} />`;
    },
    problem: (form) => !form.track ? t("act.need.track") : !whole(form.draws, 0n, 1000000n) ? t("act.need.draws") : "",
    preview: async (form, player) => {
      const p = player.pity?.find((one) => one.track === form.track);
      return { rows: [{ label: form.track, before: num(p?.draws ?? 0), after: num(form.draws) }],
        notes: p?.certainIn && p.certainIn !== "0" ? [t("act.certainNow", { n: num(p.certainIn) })] : [] };
    },
    says: (form, player) => t("act.says.track", { player: player.id, track: form.track, n: num(form.draws) }),
    request: (form, player) => ({ player: player.id, track: form.track, draws: form.draws }),
  },
  counter: {
    command: "admin", method: "SetCounter",
    fields: ({ form, set, player }) => {
      const known = [...(player.counters ?? []).filter((c) => !c.realm).map((c) => c.counter), ...(player.quests ?? []).flatMap((q) => (q.needs ?? []).map((n) => n.counter)),
        ...(names()?.counters.keys() ?? [])];
      return html`<${Choice} label=${t("counter")} name="counter" kind="counters" options=${[...new Set(known)]} form=${form} set=${set} />
        <${Amount} label=${t("act.value")} name="value" form=${form} set=${set} />`;
    },
    problem: (form) => !form.counter ? t("act.need.counter") : !whole(form.value, 0n) ? t("act.need.value") : "",
    preview: async (form, player) => ({
      rows: [{ kind: "counters", id: form.counter, before: num(player.counters?.find((c) => c.counter === form.counter)?.value ?? 0), after: num(form.value) }],
      notes: player.quests?.length ? [t("act.questsFollow")] : [],
    }),
    says: (form, player) => t("act.says.counter", { player: player.id, counter: named("counters", form.counter).name, n: num(form.value) }),
    request: (form, player) => ({ player: player.id, counter: form.counter, value: form.value }),
  },
  block: {
    command: "admin", method: "Block", minus: true,
    fields: () => null,
    problem: () => "",
    preview: async () => ({ rows: [{ label: t("player.blocked"), before: t("no"), after: t("yes") }], notes: [t("act.blockMeans")] }),
    says: (form, player) => t("act.says.block", { player: player.id }),
    request: (form, player) => ({ player: player.id }),
  },
  unblock: {
    command: "admin", method: "Block",
    fields: () => null,
    problem: () => "",
    preview: async (form, player) => ({ rows: [{ label: t("player.blocked"), before: t("yes"), after: t("no") }], notes: [player.blocked] }),
    says: (form, player) => t("act.says.unblock", { player: player.id }),
    request: (form, player) => ({ player: player.id, ends: true }),
  },
  merge: {
    command: "admin", method: "Merge", minus: true, final: (form) => form.from,
    fields: ({ form, set }) => html`<${Field} label=${t("act.from")} hint=${t("act.fromHint")}>
        <input name="from" autocomplete="off" spellcheck=${false} value=${form.from ?? ""} onInput=${(e) => set({ from: e.target.value })} /></${Field}>
      <label class="check"><input type="checkbox" name="strict" checked=${form.strict} onChange=${(e) => set({ strict: e.target.checked })} />${t("act.strict")}</label>`,
    problem: (form) => !form.from || size(form.from) > 64 ? t("act.need.from") : "",
    preview: async (form, player) => {
      const other = (await call("GetPlayer", { realm: app.realm, player: form.from, names: true })).player;
      if (other.id === player.id) throw new Failure("invalid_argument", t("act.samePlayer"));
      const ids = [...new Set([...(player.items ?? []), ...(other.items ?? [])].map((s) => s.item))];
      return {
        rows: ids.map((id) => ({ kind: "items", id, before: `${num(held(player, id))} + ${num(held(other, id))}`, after: num(held(player, id) + held(other, id)) })),
        notes: [t("act.mergeMeans", { from: other.id, player: player.id }), ...(other.blocked ? [other.blocked] : [])],
      };
    },
    says: (form, player) => t("act.says.merge", { from: form.from, player: player.id }),
    request: (form, player) => ({ player: player.id, from: form.from, strict: Boolean(form.strict) }),
  },
  reverse: {
    command: "admin", method: "Reverse", minus: true,
    fields: ({ form, set }) => html`<${Field} label=${t("act.request")} hint=${t("act.requestHint")}>
      <input class="code" name="request" autocomplete="off" spellcheck=${false} value=${form.request ?? ""} onInput=${(e) => set({ request: e.target.value })} /></${Field}>`,
    problem: (form) => !form.request || size(form.request) > 64 ? t("act.need.request") : "",
    preview: async (form, player) => {
      const got = await call("GetResult", { realm: app.realm, requestId: form.request });
      if (got.seen !== "SEEN_ANSWERED") return { rows: [], notes: [word("seen", got.seen)] };
      const notes = [];
      if (got.player && got.player !== player.id) notes.push(t("act.otherPlayer", { player: got.player }));
      const gave = new Map();
      for (const o of got.result.outcomes ?? []) for (const s of o.items ?? []) gave.set(s.item, (gave.get(s.item) ?? 0n) + BigInt(s.quantity));
      if (got.result.status && got.result.status !== "STATUS_OK") notes.push(word("status", got.result.status));
      const rows = [...gave].map(([id, n]) => {
        const before = held(player, id);
        if (before < n) notes.push(t("act.missing", { item: named("items", id).name, n: num(n - before) }));
        return { kind: "items", id, before: num(before), after: num(before > n ? before - n : 0n) };
      });
      for (const s of got.result.paid ?? []) rows.push({ kind: "items", id: s.item, before: num(held(player, s.item)), after: num(held(player, s.item) + BigInt(s.quantity)) });
      if (!rows.length) notes.push(t("act.grantedOnly"));
      return { rows, notes };
    },
    says: (form, player) => t("act.says.reverse", { request: form.request, player: player.id }),
    request: (form) => ({ request: form.request }),
  },
};

function allItems() {
  return [...(names()?.items.keys() ?? [])];
}

async function allTracks() {
  const pools = (names()?.poolIds ?? []).slice(0, 60);
  const got = await Promise.all(pools.map((pool) => call("GetPool", { realm: app.realm, pool, entryLimit: 1 })));
  return got.flatMap(({ pool }) => (pool.pity ?? []).map((p) => p.share || `${pool.id}/${p.name}`));
}

function itemProblem(form) {
  if (!form.item || size(form.item) > 64) return t("act.need.item");
  return whole(form.quantity, 1n) ? "" : t("act.need.quantity");
}

function ItemFields({ form, set, items }) {
  return html`<${Choice} label=${t("act.item")} name="item" kind="items" options=${items} form=${form} set=${set} />
    <${Amount} label=${t("act.quantity")} name="quantity" form=${form} set=${set} />`;
}

function Choice({ label, name, kind, options, form, set }) {
  const list = `choices-${name}`;
  return html`<${Field} label=${label}><input name=${name} list=${list} autocomplete="off" spellcheck=${false} value=${form[name] ?? ""} onInput=${(e) => set({ [name]: e.target.value })} />
    <datalist id=${list}>${options.map((o) => html`<option key=${o} value=${o} label=${kind ? named(kind, o).name : o} />`)}</datalist></${Field}>`;
}

function Amount({ label, name, form, set }) {
  return html`<${Field} label=${label}><input name=${name} inputmode="numeric" autocomplete="off" value=${form[name] ?? ""} onInput=${(e) => set({ [name]: e.target.value.trim() })} /></${Field}>`;
}

// ActionDialog carries out one action. changed is called once something may have happened.
export function ActionDialog({ kind, player, preset, close, changed }) {
  const action = ACTIONS[kind];
  const [form, setForm] = useState({ ...preset });
  const [reason, setReason] = useState("");
  const [tried, setTried] = useState(false);
  const [preview, setPreview] = useState(null); // { rows, notes, id }
  const [state, setState] = useState({ step: "form" });
  const [typed, setTyped] = useState("");
  const heading = useRef();
  const set = (part) => setForm((old) => ({ ...old, ...part }));
  const problem = action.problem(form) || (!reason.trim() ? t("act.need.reason") : size(reason) > 1024 ? t("act.need.shorter") : "");

  useEffect(() => { heading.current?.focus(); }, [state.step]);

  const look = async (e) => {
    e.preventDefault();
    setTried(true);
    if (problem) return;
    setState({ step: "form", busy: true });
    try {
      setPreview({ ...(await action.preview(form, player)), id: newId() });
      setState({ step: "preview" });
    } catch (failure) {
      setState({ step: "form", failure });
    }
  };
  const act = async () => {
    setState({ step: "preview", busy: true });
    try {
      const { result } = await send(action.method, { realm: app.realm, requestId: preview.id, ...action.request(form, player), reason: reason.trim() });
      setState({ step: "done", result });
      changed();
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      setState({ step: "preview", failure, unsure: failure.passing });
    }
  };

  const title = t(`act.${kind}`);
  if (state.step === "done") {
    return html`<${Dialog} title=${title} close=${close}><p tabindex="-1" ref=${heading}>${action.says(form, player)}</p>
      <${Receipt} result=${state.result} id=${preview.id} />
      <footer><button class="button primary" type="button" onClick=${close}>${t("close")}</button></footer></${Dialog}>`;
  }
  if (state.step === "preview") {
    const ready = !action.final || typed === action.final(form);
    return html`<${Dialog} title=${title} close=${state.busy ? () => {} : close}>
      <p tabindex="-1" ref=${heading}><strong>${action.says(form, player)}</strong></p>
      ${preview.rows.length > 0 && html`<div class="table" tabindex="0" role="region" aria-label=${t("act.preview")}><table><thead><tr><th scope="col">${t("act.what")}</th><th scope="col" class="num">${t("act.now")}</th><th scope="col" class="num">${t("act.then")}</th></tr></thead>
        <tbody>${preview.rows.map((r) => html`<tr><th scope="row">${r.kind ? html`<${Thing} kind=${r.kind} id=${r.id} />` : r.label}</th><td class="num">${r.before}</td><td class="num"><strong>${r.after}</strong></td></tr>`)}</tbody></table></div>`}
      ${preview.notes.map((n) => html`<p class="note warn">${n}</p>`)}
      <p class="small muted">${t("act.logged", { reason: reason.trim() })}</p>
      ${action.final && html`<${Field} label=${t("act.type", { text: action.final(form) })}><input name="final" autocomplete="off" spellcheck=${false} value=${typed} onInput=${(e) => setTyped(e.target.value)} /></${Field}>`}
      ${state.failure && html`<${Failed} failure=${state.failure} />`}
      ${state.unsure && html`<p class="note warn" role="status">${t("act.unsure")} <code class="break">${preview.id}</code></p>`}
      <footer>${!state.unsure && html`<button class="button" type="button" disabled=${state.busy} onClick=${() => setState({ step: "form" })}>${t("back")}</button>`}
        <button class=${`button ${action.minus ? "danger" : "primary"}`} type="button" name="confirm" disabled=${state.busy || !ready} onClick=${act}>${state.busy ? t("act.sending") : state.unsure ? t("again") : title}</button></footer></${Dialog}>`;
  }
  return html`<${Dialog} title=${title} close=${close}>
    <form class="form" onSubmit=${look} noValidate>
      <p class="muted">${t("act.for", { player: player.id })}</p>
      <${action.fields} form=${form} set=${set} player=${player} />
      <${Field} label=${t("act.reason")} hint=${t("act.reasonHint")}><input name="reason" maxlength="1024" autocomplete="off" value=${reason} onInput=${(e) => setReason(e.target.value)} /></${Field}>
      ${tried && problem && html`<p class="note bad" role="alert">${problem}</p>`}
      ${state.failure && html`<${Failed} failure=${state.failure} />`}
      <footer class="row end"><button class="button" type="button" onClick=${close}>${t("cancel")}</button>
        <button class="button primary" name="preview" disabled=${state.busy}>${t("act.preview")}</button></footer>
    </form></${Dialog}>`;
}

// Receipt is what came of a command.
export function Receipt({ result, id }) {
  const r = result.receipt ?? {};
  return html`<div class="stack">
    <p class="row"><${StatusChip} status=${result.status} />${result.replayed && html`<span class="chip">${t("act.replayed")}</span>`}
      ${result.subject && html`<${Subject} id=${result.subject} />`}</p>
    ${result.beyond?.length > 0 && html`<p class="note warn">${result.beyond.map((b, i) => html`${i > 0 && "; "}<${Stacks} items=${[b]} />: ${word("how", b.how)}`)}</p>`}
    <dl class="pairs small">
      <dt>${t("receipt.id")}</dt><dd><code class="break">${id}</code></dd>
      <dt>${t("receipt.place")}</dt><dd class="num">${r.position ? html`<a href=${link("proof", r.position, String(r.index ?? 0))}>${num(r.position)} / ${num(r.index ?? 0)}</a>` : "–"}</dd>
      <dt>${t("receipt.time")}</dt><dd><${Time} ms=${r.timeUnixMs} /></dd>
      <dt>${t("receipt.catalog")}</dt><dd class="num">${num(r.catalogVersion ?? 0)}</dd>
      <dt>${t("receipt.epoch")}</dt><dd class="num">${num(r.epoch ?? 0)}</dd>
    </dl></div>`;
}

export const allowed = (kind) => may(ACTIONS[kind].command);
