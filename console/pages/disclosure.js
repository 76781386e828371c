// Disclosure: the page for players, with the odds of a version of the catalog, to embed elsewhere.
import { html, useState } from "../dom.js";
import { Failure, call } from "../api.js";
import { LANGUAGES, current, num, percent, t } from "../i18n.js";
import { app, names } from "../store.js";
import { Copy, Failed, Field, Head, Loading, NotOffered, Thing, download, useApp, useLoad } from "../ui.js";

export default function Disclosure() {
  useApp();
  const [version, setVersion] = useState("");
  const [language, setLanguage] = useState(current());
  return html`<div class="page"><${Head} title=${t("page.disclosure")}>${t("disclosure.text")}</${Head}>
    <div class="row"><label class="field" style=${{ maxWidth: "12rem" }}><span>${t("catalog.version")} <span class="hint">${t("disclosure.versionHint")}</span></span><input name="version" inputmode="numeric" value=${version} onChange=${(e) => setVersion(/^\d*$/.test(e.target.value) ? e.target.value : "")} /></label>
      <label class="field" style=${{ maxWidth: "12rem" }}><span>${t("language")}</span><input name="disclosure-language" list="languages" value=${language} onChange=${(e) => setLanguage(e.target.value)} /><datalist id="languages">${Object.entries(LANGUAGES).map(([id, name]) => html`<option key=${id} value=${id} label=${name} />`)}</datalist></label></div>
    <${Published} version=${version || "0"} language=${language} key=${`${version} ${language}`} /></div>`;
}

function Published({ version, language }) {
  const load = useLoad((signal) => call("GetDisclosure", { realm: app.realm, version, language }, { signal, timeout: 60_000 }), []);
  if (load.failure?.notOffered) return html`<${NotOffered} what=${t("disclosure.none")} /><${Computed} />`;
  return html`<${Loading} load=${load}>${(d) => html`<section class="card"><h2>${t("disclosure.embed")}</h2><p class="muted">${t("disclosure.embedText")}</p>
    <div class="row"><${Copy} text=${d.html ?? ""} label=${t("disclosure.copy")} /><button class="button" type="button" onClick=${() => download(`odds-${app.realm}-${d.version ?? version}.html`, d.html ?? "", "text/html")}>${t("download")}</button></div></section>`}</${Loading}>`;
}

// Computed shows the odds of the catalog in force, for a player who was never seen.
function Computed() {
  const pools = names()?.poolIds ?? [];
  return html`${pools.map((p) => html`<${PoolOdds} key=${p} id=${p} />`)}`;
}

function PoolOdds({ id }) {
  const load = useLoad((signal) => call("GetOdds", { realm: app.realm, pool: id }, { signal }), [id]);
  return html`<section class="card"><h2><${Thing} kind="pools" id=${id} /></h2><${Loading} load=${load}>${({ odds }) => html`<div class="table" tabindex="0" role="region" aria-label=${id}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col" class="num">${t("odds.chance")}</th></tr></thead>
    <tbody>${(odds.outcomes ?? []).slice(0, 300).map((o) => html`<tr key=${`${o.pool}/${o.entry}`}><th scope="row" class="break">${o.entry}${o.pool !== id && html` <span class="id">${o.pool}</span>`}</th><td class="num">${percent(o.chance?.value ?? 0)}</td></tr>`)}</tbody></table></div>`}</${Loading}></section>`;
}
