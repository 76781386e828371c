// The API: every call, every type and every error, as the server's own openapi.json has them.
import { html, useState } from "../dom.js";
import { Failure, call } from "../api.js";
import { num, t } from "../i18n.js";
import { app } from "../store.js";
import { Copy, Failed, Field, Head, Loading, link, useLoad } from "../ui.js";

const SCHEMAS = "#/components/schemas/";
let kept; // it does not change while the server runs

async function contract(signal) {
  kept ??= await fetch("/openapi.json", { credentials: "omit", signal }).then((r) => {
    if (!r.ok) throw new Failure("unreachable", `HTTP ${r.status}`);
    return r.json();
  });
  return kept;
}

export default function Contract({ rest: [what, name] }) {
  const load = useLoad(contract, []);
  return html`<div class="page"><${Head} title=${t("page.contract")}>${t("contract.text")}</${Head}>
    <${Loading} load=${load}>${(doc) => what === "type" ? html`<${Type} doc=${doc} name=${name} />` : what === "call" ? html`<${Call} key=${name} doc=${doc} path=${`/${name}`} />` : html`<${All} doc=${doc} />`}</${Loading}></div>`;
}

const firstLine = (text) => (text ?? "").split("\n")[0];
const short = (name) => name.replace(/^kuji\.v1\./, "");

// All lists what there is, and what answers can say.
function All({ doc }) {
  const [sought, seek] = useState("");
  const calls = Object.entries(doc.paths).map(([path, { post }]) => ({ path, post }))
    .filter(({ path, post }) => `${path} ${post.description}`.toLowerCase().includes(sought.trim().toLowerCase()));
  return html`<section class="card"><div class="row apart"><${Field} label=${t("contract.find")}><input name="find" type="search" value=${sought} onInput=${(e) => seek(e.target.value)} /></${Field}>
      <a class="button" href="/openapi.json" download="openapi.json">${t("contract.download")}</a></div>
    ${calls.length === 0 && html`<p class="muted">${t("contract.none")}</p>`}
    ${doc.tags.map((tag) => {
      const some = calls.filter((c) => c.post.tags[0] === tag.name);
      return some.length > 0 && html`<h2 key=${tag.name}>${tag.name}</h2><div class="table" tabindex="0" role="region" aria-label=${tag.name}><table><tbody>${some.map(({ path, post }) => html`<tr key=${path}>
        <th scope="row"><a href=${link("contract", "call", path.slice(1))}>${post.summary}</a></th><td>${firstLine(post.description)}</td></tr>`)}</tbody></table></div>`;
    })}</section>
    ${tables(doc.info.description).map((table) => html`<section class="card" key=${table.head}><h2>${heading(table.head)}</h2><div class="table" tabindex="0" role="region" aria-label=${heading(table.head)}><table><tbody>${table.rows.map((row) => html`<tr key=${row[0]}>
      <th scope="row" class="mono small">${row[0]}</th>${row.slice(1).map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div></section>`)}`;
}

const heading = (head) => ({ error: t("contract.errors"), status: t("contract.statuses"), "reason of an error": t("contract.reasons") })[head] ?? head;

// tables reads the tables of a text in Markdown.
function tables(text) {
  const all = [];
  let open = null;
  for (const line of text.split("\n")) {
    if (!line.startsWith("|")) {
      open = null;
      continue;
    }
    const cells = line.slice(1, line.lastIndexOf("|")).split(" | ").map((cell) => cell.trim().replaceAll("`", ""));
    if (!open) all.push(open = { head: cells[0].replace(/ \|.*/, ""), rows: [] });
    else if (!/^-/.test(cells[0])) open.rows.push(cells);
  }
  return all;
}

// Call describes one call, and makes it if it changes nothing.
function Call({ doc, path }) {
  const at = Object.hasOwn(doc.paths, path) && doc.paths[path];
  if (!at) return html`<p class="empty">${t("contract.none")}</p>`;
  const { post, get } = at;
  const request = post.requestBody.content["application/json"].schema.$ref.slice(SCHEMAS.length);
  const answer = post.responses["200"].content["application/json"].schema.$ref.slice(SCHEMAS.length);
  return html`<p><a href=${link("contract")}>${t("contract.all")}</a></p>
    <section class="card"><h2>${post.summary}</h2>${post.description.split("\n").map((p) => html`<p>${p}</p>`)}
      <${Try} path=${path} method=${post.summary} reads=${Boolean(get)} /></section>
    <section class="card"><h2>${t("contract.request")}</h2><${Fields} doc=${doc} name=${request} /></section>
    <section class="card"><h2>${t("contract.answer")}</h2><${Fields} doc=${doc} name=${answer} /></section>`;
}

function Try({ path, method, reads }) {
  const [body, set] = useState(`{"realm": ${JSON.stringify(app.realm)}}`);
  const [state, go] = useState({});
  const quoted = body.replaceAll("'", "'\\''");
  const curl = `curl ${location.origin}${path} -H 'Content-Type: application/json' -H 'Authorization: Bearer KEY' -d '${quoted}'`;
  const submit = async (e) => {
    e.preventDefault();
    try {
      JSON.parse(body);
    } catch {
      go({ wrong: t("proof.noJSON") });
      return;
    }
    go({ busy: true });
    call(method, body).then((answer) => go({ answer }), (failure) => go({ failure }));
  };
  return html`<form class="form" onSubmit=${submit}>
    <${Field} label=${t("contract.body")} error=${state.wrong}><textarea class="code" name="body" rows="3" spellcheck=${false} value=${body} onInput=${(e) => set(e.target.value)}></textarea></${Field}>
    <pre tabindex="0">${curl}</pre><div class="row">${reads ? html`<button class="button primary" disabled=${state.busy}>${t("contract.send")}</button>` : html`<span class="small muted">${t("contract.changes")}</span>`}<${Copy} text=${curl} label=${t("contract.copy")} /></div>
    ${state.failure && html`<${Failed} failure=${state.failure} />`}${state.answer && html`<pre tabindex="0" id="answer">${JSON.stringify(state.answer, null, 2)}</pre>`}</form>`;
}

// Type describes a type by itself.
function Type({ doc, name }) {
  if (!Object.hasOwn(doc.components.schemas, name)) return html`<p class="empty">${t("contract.none")}</p>`;
  return html`<p><a href=${link("contract")}>${t("contract.all")}</a></p><section class="card"><h2>${short(name)}</h2><${Fields} doc=${doc} name=${name} /></section>`;
}

function Fields({ doc, name }) {
  const schema = doc.components.schemas[name];
  const fields = Object.entries(schema.properties ?? {});
  const about = (schema.description ?? "").split("\n").filter((line) => line && !line.startsWith("- `"));
  return html`${about.map((p) => html`<p>${p}</p>`)}
    ${schema.enum ? html`<ul>${schema.enum.map((v) => html`<li key=${v}><span class="mono small">${v}</span> ${said(schema.description, v)}</li>`)}</ul>`
      : fields.length === 0 ? html`<p class="muted">${t("contract.empty")}</p>`
      : html`<div class="table" tabindex="0" role="region" aria-label=${short(name)}><table><thead><tr><th scope="col">${t("contract.field")}</th><th scope="col">${t("contract.type")}</th><th scope="col">${t("contract.about")}</th></tr></thead><tbody>${fields.map(([field, s]) => html`<tr key=${field}>
        <th scope="row" class="mono small">${field}</th><td class="small"><${Kind} s=${s} /></td><td>${(s.description ?? "").split("\n").map((p) => html`<p>${p}</p>`)}</td></tr>`)}</tbody></table></div>`}`;
}

// said finds what the description of an enum says of a value.
const said = (text, value) => (text ?? "").split("\n").find((line) => line.startsWith(`- \`${value}\`: `))?.slice(value.length + 6) ?? "";

// Kind names the type of a field.
function Kind({ s }) {
  if (s.$ref) {
    const name = s.$ref.slice(SCHEMAS.length);
    return html`<a href=${link("contract", "type", name)}>${short(name)}</a>`;
  }
  if (s.type === "array") return html`${t("contract.list")} <${Kind} s=${s.items} />`;
  if (s.type === "object") return html`${t("contract.map")} <${Kind} s=${s.additionalProperties ?? {}} />`;
  if (s.type === "integer" && s.maximum) return html`<span class="nowrap">${num(s.minimum)} – ${num(s.maximum)}</span>`;
  return s.format ?? (s.contentEncoding ? s.contentEncoding : s.type ?? "");
}
