// Disclosure: the page for players, with the odds of a version of the catalog, to embed elsewhere.
import { html, useState } from "../dom.js";
import { call } from "../api.js";
import { LANGUAGES, current, num, percent, t } from "../i18n.js";
import { app, rarityStep } from "../store.js";
import { Copy, Head, Loading, NotOffered, download, useApp, useLoad } from "../ui.js";

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
  if (load.failure?.notOffered) return html`<${NotOffered} what=${t("disclosure.none")} />`;
  return html`<${Loading} load=${load}>${(d) => html`<section class="card" id="disclosure"><h2>${t("disclosure.embed")}</h2><p class="muted">${t("disclosure.embedText")}</p>
    <div class="row"><${Copy} text=${d.html ?? ""} label=${t("disclosure.copy")} /><button class="button" type="button" onClick=${() => download(`odds-${app.realm}-${d.version ?? version}.html`, d.html ?? "", "text/html")}>${t("download")}</button>
      <span class="small muted">${t("catalog.version")} ${num(d.version ?? 0)}</span></div></section>
    ${(d.pools ?? []).map((p) => html`<${DisclosedPool} key=${p.id} p=${p} />`)}`}</${Loading}>`;
}

// DisclosedPool is a pool as the page to embed has it, in the language that was asked for.
function DisclosedPool({ p }) {
  return html`<section class="card"><h2>${p.name || p.id} ${p.name && p.name !== p.id && html`<span class="id">${p.id}</span>`}</h2>
    ${p.prices?.length > 0 && html`<p class="row">${p.prices.map((x) => html`<span class="chip">${x}</span>`)}</p>`}
    ${(p.rules ?? []).map((r) => html`<p class="small muted">${r}</p>`)}
    ${p.error && html`<p class="note warn">${p.error}</p>`}
    <div class="table" tabindex="0" role="region" aria-label=${p.name || p.id}><table><thead><tr><th scope="col">${t("entry")}</th><th scope="col" class="num">${t("odds.chance")}</th><th scope="col" class="num">${t("simulation.longRun")}</th></tr></thead>
      <tbody>${(p.outcomes ?? []).filter((o) => !o.leads).map((o) => {
        const step = rarityStep(o.rarity);
        return html`<tr key=${`${o.pool}/${o.entry}`}><th scope="row"><span class=${step ? `rarity rarity-${step}` : "break"} title=${o.rarityName || undefined}>${o.name || o.entry}</span></th><td class="num">${percent(o.chance?.value ?? 0)}</td><td class="num">${o.longRun === undefined ? "–" : percent(o.longRun)}</td></tr>`;
      })}</tbody></table></div>
    ${p.longRunUnknown && html`<p class="small muted">${p.longRunUnknown}</p>`}</section>`;
}
