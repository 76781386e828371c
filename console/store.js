// What all pages share: the realm, who the key is, what the server offers, and names of things.
import { call, Failure } from "./api.js";
import { current } from "./i18n.js";

export const app = {
  ready: false, // the server was asked who we are
  needsKey: false,
  realms: null, // names; null: the key may not list them
  realm: "default",
  access: null, // of GetAccess; null: a server without that RPC
  features: null,
  version: "",
  lost: 0, // since when the server does not answer, Unix milliseconds; 0: it does
  theme: localStorage.getItem("kuji-console-theme") ?? "system",
};

const listeners = new Set();
export function onChange(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}
export function changed(part) {
  Object.assign(app, part);
  for (const f of listeners) f();
}

// may reports whether the key may do what a word of the key file says. Without GetAccess nobody knows
// before the server refuses, so it is offered.
export function may(command) {
  const a = app.access;
  if (!a) return true;
  if (!a.name && !a.player && !(a.commands?.length)) return true; // a server without keys
  const words = a.commands ?? [];
  return words.includes("admin") || words.includes(command);
}

// mayWhole reports whether the key may read what is about the whole server.
export const mayWhole = () => may("read") && !app.access?.pools?.length && !app.access?.realms?.length;

// offers reports whether the server has a feature: true, false, or null if it does not say.
export const offers = (feature) => (app.features ? Boolean(app.features[feature]) : null);

// meet asks the server who we are.
export async function meet() {
  try {
    const { access, version, features } = await call("GetAccess");
    changed({ access: access ?? {}, version: version ?? "", features: features ?? {}, needsKey: false });
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    if (e.code === "unauthenticated") return changed({ needsKey: true, ready: true });
    if (!e.notOffered && e.code !== "unreachable" && e.code !== "permission_denied") throw e;
    changed({ access: null, features: null, needsKey: false });
  }
  let realms = app.access?.realms?.length ? app.access.realms : null;
  try {
    realms ??= (await call("ListRealms")).realms ?? [];
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    if (e.code === "unauthenticated") return changed({ needsKey: true, ready: true });
  }
  const asked = new URLSearchParams(location.hash.split("?")[1] ?? "").get("realm");
  const stored = sessionStorage.getItem("kuji-console-realm");
  const realm = asked ?? (realms?.includes(stored) ? stored : realms?.includes("default") || !realms?.length ? "default" : realms[0]);
  changed({ realms, realm, needsKey: false, ready: true });
}

export function useRealm(realm) {
  sessionStorage.setItem("kuji-console-realm", realm);
  forget();
  changed({ realm });
}

// Names ------------------------------------------------------------------------------------

// What people see of things, by realm and language: { items, pools, counters, quests: Map id → display }.
let displays = null;
let asking = null;

export function forget() {
  displays = null;
  asking = null;
}

// loadNames fetches the names of a realm once, and again after forget. Pages show ids until it is done.
export function loadNames() {
  asking ??= fetchNames(app.realm).catch((e) => {
    asking = null;
    if (!(e instanceof Failure)) throw e;
    return { ...none(), failure: e };
  }).then((d) => {
    displays = d;
    changed({});
  });
  return asking;
}

const none = () => ({ items: new Map(), pools: new Map(), counters: new Map(), quests: new Map(), rounds: new Map(), rarities: [], version: "0", poolIds: [] });

async function fetchNames(realm) {
  const d = none();
  await readDisplays(d, realm);
  if (app.access?.pools?.length) {
    d.poolIds = app.access.pools;
    return d;
  }
  for (let offset = 0; ; offset += 10000) {
    const c = await call("GetCatalog", { realm, itemOffset: offset, itemLimit: 10000 });
    d.version = c.version ?? "0";
    d.poolIds = c.pools ?? [];
    d.catalog = c;
    for (const item of c.items ?? []) {
      const display = d.items.get(item.id);
      d.items.set(item.id, { ...display, name: display?.name || item.name, kind: item.kind });
    }
    if (offset + 10000 >= (c.itemCount ?? 0)) return d;
  }
}

const KINDS = { DISPLAY_KIND_ITEM: "items", DISPLAY_KIND_POOL: "pools", DISPLAY_KIND_COUNTER: "counters", DISPLAY_KIND_QUEST: "quests", DISPLAY_KIND_ROUND: "rounds" };

// readDisplays adds what people see, page by page. An older server does not have it: then there are the
// names of items in the catalog.
async function readDisplays(d, realm) {
  try {
    for (let offset = 0; ;) {
      const got = await call("ListDisplays", { realm, language: current(), offset, limit: 10000 });
      if (offset === 0) d.rarities = got.rarities ?? [];
      for (const one of got.displays ?? []) d[KINDS[one.kind]]?.set(one.id, { ...one.display });
      offset = got.nextOffset ?? 0;
      if (!offset) return;
    }
  } catch (e) {
    if (!(e instanceof Failure) || !(e.notOffered || e.code === "permission_denied" || e.code === "not_found")) throw e;
  }
}

// named returns what is known of a thing: { name, rarity, icon, text }, name at least.
export function named(kind, id) {
  const d = displays?.[kind]?.get(id);
  return d?.name ? d : { ...d, name: id };
}

// notePool keeps what a read said of a pool.
export function notePool(pool) {
  if (displays && pool?.name && !displays.pools.get(pool.id)?.name) displays.pools.set(pool.id, { name: pool.name });
}

export const names = () => displays;

// rarityStep returns which of the six steps of colour a rarity has, 1 to 6; 0: it has none.
export function rarityStep(rarity) {
  const order = displays?.rarities ?? [];
  const at = order.findIndex((r) => r.id === rarity);
  if (!rarity || at < 0) return 0;
  return order.length < 2 ? 3 : 1 + Math.round((at * 5) / (order.length - 1));
}

export const rarityName = (rarity) => displays?.rarities.find((r) => r.id === rarity)?.name || rarity;
