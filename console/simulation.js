// A catalog played by many simulated players, on the server: see Simulate.
import { html, useState } from "./dom.js";
import { call } from "./api.js";
import { dec, num, percent, t } from "./i18n.js";
import { app, may, offers } from "./store.js";
import { Plot } from "./plot.js";
import { Failed, Field, NotOffered, Thing } from "./ui.js";

export function Simulation() {
  return html`<section class="card" id="simulation"><h2>${t("simulation.title")}</h2><${NotOffered} what=${t("simulation.none")} /></section>`;
}
