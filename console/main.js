// The frame around the pages: who, where, in which language; and which page the address names.
import { Fragment, html, render, useEffect, useLayoutEffect, useRef, useState } from "./dom.js";
import { hasKey, isKept, useKey, watchers } from "./api.js";
import { LANGUAGES, current, preferred, speak, t, clock } from "./i18n.js";
import { app, changed, forget, loadNames, meet, useRealm } from "./store.js";
import { Failed, Field, link, useApp } from "./ui.js";
import { Icon, Mark } from "./icons.js";
import Players from "./pages/players.js";
import Pools from "./pages/pools.js";
import Catalog from "./pages/catalog.js";
import Disclosure from "./pages/disclosure.js";
import Operations from "./pages/operations.js";
import Proof from "./pages/proof.js";
import Contract from "./pages/contract.js";

const PAGES = { players: Players, pools: Pools, catalog: Catalog, disclosure: Disclosure, operations: Operations, proof: Proof, contract: Contract };

// where reads the address: "#/players/ann?realm=summer".
function where() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = path.split("/").map(decoded);
  return { page: Object.hasOwn(PAGES, page) ? page : "players", rest, query: new URLSearchParams(query ?? "") };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function App() {
  useApp();
  const [place, go] = useState(where());
  const [failure, fail] = useState(null);
  const start = () => meet().then(() => fail(null), fail);
  useEffect(() => {
    start();
    const moved = () => {
      const to = where();
      const realm = to.query.get("realm");
      if (realm && realm !== app.realm) useRealm(realm);
      go(to);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    if (app.ready && !app.needsKey) loadNames();
  }, [app.ready, app.needsKey, app.realm, current()]);
  useEffect(() => {
    document.title = `${t(`page.${place.page}`)} · Kuji`;
  });
  const main = useRef();
  const first = useRef(true);
  useLayoutEffect(() => { // whoever moved by keyboard goes on in the new page
    if (!first.current) main.current?.querySelector("h1")?.focus();
    first.current = false;
  }, [place.page]);

  const Page = PAGES[place.page];
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); main.current.focus(); }}>${t("skip")}</a>
    <${Top} />
    <${Tabs} page=${place.page} />
    <main id="main" tabindex="-1" ref=${main}>
      <${Lost} />
      ${failure ? html`<${Failed} failure=${failure} retry=${start} />`
        : !app.ready ? html`<p class="muted" aria-busy="true">${t("loading")}</p>`
        : app.needsKey ? html`<${Enter} done=${start} />`
        : html`<${Fragment} key=${app.realm + current()}><${Page} rest=${place.rest} query=${place.query} /></${Fragment}>`}
    </main>
  </div>`;
}

function Tabs({ page }) {
  return html`<nav class="tabs" aria-label=${t("pages")}><ul>${Object.keys(PAGES).map((p) => html`<li key=${p}>
    <a class="tab" href=${link(p)} aria-current=${p === page ? "page" : undefined}><${Icon} name=${p} />${t(`page.${p}`)}</a></li>`)}</ul></nav>`;
}

function Top() {
  const realms = [...new Set([...(app.realms ?? []), app.realm])];
  const choose = (e) => {
    useRealm(e.target.value);
    location.hash = link(where().page);
  };
  return html`<div class="top" role="banner">
    <a class="brand" href=${link("players")}><${Mark} />Kuji</a>
    ${app.ready && !app.needsKey && html`<label><span class="vh">${t("realm")}</span>
      <select name="realm" value=${app.realm} onChange=${choose}>${realms.map((r) => html`<option key=${r} value=${r}>${r}</option>`)}</select></label>`}
    <span class="grow"></span>
    <label><span class="vh">${t("language")}</span><select name="language" value=${current()} onChange=${(e) => speak(e.target.value, true).then(() => { forget(); changed({}); })}>
      ${Object.entries(LANGUAGES).map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}</select></label>
    <${Theme} />
    <${Who} />
  </div>`;
}

function Theme() {
  const next = { system: "light", light: "dark", dark: "system" }[app.theme];
  const set = () => {
    localStorage.setItem("kuji-console-theme", next);
    dress(next);
    changed({ theme: next });
  };
  return html`<button class="button quiet icon-only" type="button" onClick=${set} title=${t(`theme.${app.theme}`)} aria-label=${t(`theme.${app.theme}`)}>
    <${Icon} name=${app.theme} /></button>`;
}

function dress(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function Who() {
  if (!app.ready || app.needsKey) return null;
  const leave = () => {
    useKey("", false);
    forget();
    changed({ needsKey: true, access: null, realms: null });
  };
  const name = app.access?.name || app.access?.player;
  return html`<span class="row">${name && html`<span class="chip accent" title=${t("keyName")}>${name}</span>`}
    ${hasKey() && html`<button class="button quiet" type="button" onClick=${leave}>${t("leave")}</button>`}</span>`;
}

// Enter asks for a key.
function Enter({ done }) {
  const [value, set] = useState("");
  const [keep, setKeep] = useState(isKept());
  const wrong = hasKey();
  const submit = (e) => {
    e.preventDefault();
    useKey(value.trim(), keep);
    forget();
    done();
  };
  return html`<div class="page"><section class="card" style=${{ maxWidth: "32rem" }}>
    <h1 tabindex="-1">${t("enter.title")}</h1>
    <p class="muted">${t("enter.text")}</p>
    ${wrong && html`<p class="note bad" role="alert">${t("enter.wrong")}</p>`}
    <form class="form" onSubmit=${submit}>
      <${Field} label=${t("enter.key")}><input name="key" type="password" autocomplete="off" spellcheck=${false} value=${value} onInput=${(e) => set(e.target.value)} /></${Field}>
      <label class="check"><input type="checkbox" name="keep" checked=${keep} onChange=${(e) => setKeep(e.target.checked)} />${t("enter.keep")}</label>
      <div class="row"><button class="button primary" disabled=${!value.trim()}>${t("enter.go")}</button></div>
    </form>
  </section></div>`;
}

// Lost says since when the server has not answered.
function Lost() {
  if (!app.lost) return null;
  return html`<p class="note warn" role="status" id="lost">${t("lost", { time: clock(app.lost) })}</p>`;
}

watchers.lost = () => { if (!app.lost) changed({ lost: Date.now() }); };
watchers.reached = () => { if (app.lost) changed({ lost: 0 }); };
watchers.unauthenticated = () => { if (app.ready && !app.needsKey) changed({ needsKey: true }); };

// While the server is away, ask for it.
setInterval(() => { if (app.lost) fetch("/readyz", { cache: "no-store" }).then(watchers.reached, () => {}); }, 2000);

dress(app.theme);
await speak(preferred(), false);
render(html`<${App} />`, document.getElementById("app"));
