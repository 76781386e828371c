// Icons, drawn on 24 × 24.
import { html } from "./dom.js";

const paths = {
  players: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm-7 8c.6-3.6 3.4-5.5 7-5.5s6.4 1.9 7 5.5",
  pools: "M4 19V9m5.3 10V5m5.4 14v-7M20 19V8",
  catalog: "M6 4h11a1 1 0 0 1 1 1v15l-3-1.8-3 1.8-3-1.8L6 20V4Zm3 4.5h6M9 12h6",
  disclosure: "M12 20s-7-3.7-7-9.5V6l7-2.5L19 6v4.5C19 16.3 12 20 12 20Zm-2.8-8 2 2 3.8-4",
  operations: "M4 13h3.5l2-7 4 12 2.5-8 1.3 3H20",
  contract: "m8 8-4 4 4 4m8-8 4 4-4 4M13.5 5l-3 14",
  proof: "M8.5 14.5a4.5 4.5 0 1 1 3.7-2M12 12.5l8 7.5m-3-2.8 2-2",
  key: "M8.5 14.5a4.5 4.5 0 1 1 3.7-2M12 12.5l8 7.5m-3-2.8 2-2",
  light: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Zm0-5v2m0 14v2M3 12h2m14 0h2M5.6 5.6 7 7m10 10 1.4 1.4m0-12.8L17 7M7 17l-1.4 1.4",
  dark: "M19 14.5A7.5 7.5 0 0 1 9.5 5a7.5 7.5 0 1 0 9.5 9.5Z",
  system: "M4 5h16v11H4zM9 20h6m-3-4v4",
};

export const Icon = ({ name }) => html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.7"
  stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false"><path d=${paths[name]} /></svg>`;

export const Mark = () => html`<svg viewBox="0 0 32 32" aria-hidden="true" focusable="false"><path d="M18.5 2.5h6v13h-6z" fill="#f3bd57"
  transform="rotate(14 21 9)" /><path d="M5 12.5h22V25a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2z" fill="currentColor" /><circle cx="16" cy="19.5" r="3" fill="var(--surface)" /></svg>`;
