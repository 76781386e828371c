// The languages. Each has one file in lang/, with the same keys; a test compares them, and looks for
// keys that nobody uses. {name} in a text stands for a value.

export const LANGUAGES = { en: "English", de: "Deutsch", ja: "日本語" };
const STORED = "kuji-console-language";

let texts = {};
let language = "en";
let numbers, decimals, dates, precise, times, full, relative;

export const current = () => language;

// preferred returns the language that the viewer has chosen, or else the browser's.
export function preferred() {
  const wanted = [localStorage.getItem(STORED), ...navigator.languages];
  for (const w of wanted) {
    const two = (w ?? "").slice(0, 2);
    if (two in LANGUAGES) return two;
  }
  return "en";
}

// speak loads a language and makes it the one of the page.
export async function speak(wanted, remember) {
  const response = await fetch(`lang/${wanted}.json`);
  texts = await response.json();
  language = wanted;
  if (remember) localStorage.setItem(STORED, wanted);
  document.documentElement.lang = wanted;
  numbers = new Intl.NumberFormat(wanted);
  decimals = new Map();
  dates = new Intl.DateTimeFormat(wanted, { dateStyle: "medium", timeStyle: "short" });
  precise = new Intl.DateTimeFormat(wanted, { dateStyle: "medium", timeStyle: "medium" });
  full = new Intl.DateTimeFormat(wanted, { dateStyle: "full", timeStyle: "long" });
  times = new Intl.DateTimeFormat(wanted, { timeStyle: "medium" });
  relative = new Intl.RelativeTimeFormat(wanted, { numeric: "auto" });
}

// t returns a text.
export function t(key, values) {
  const text = texts[key];
  if (text === undefined) {
    console.error(`no text ${key} in ${language}`);
    return key;
  }
  return values ? text.replace(/\{(\w+)\}/g, (all, name) => (Object.hasOwn(values, name) ? plain(values[name]) : all)) : text;
}

// plain shows the characters that turn around what follows, instead of obeying them: a sentence must not seem
// to say something else because an id in it has one.
const plain = (value) => String(value).replace(/[\u202a-\u202e\u2066-\u2069]/g, (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase()}]`);

// word returns the text of a value of the contract, such as a status: "status" and "STATUS_OK", or the
// value itself if a newer server has one that the languages do not.
export function word(kind, value) {
  const text = texts[`${kind}.${value}`];
  return text ?? String(value ?? "");
}

// num writes a whole number: a string of digits, a BigInt or a number.
export function num(n) {
  if (n === undefined || n === null || n === "") return numbers.format(0);
  return numbers.format(typeof n === "string" ? BigInt(n) : n);
}

// dec writes a number with at most `digits` decimals.
export function dec(n, digits = 1) {
  if (!decimals.has(digits)) decimals.set(digits, new Intl.NumberFormat(language, { maximumFractionDigits: digits }));
  return decimals.get(digits).format(n);
}

// percent writes a chance, with three significant digits.
export function percent(chance) {
  const k = "percent";
  if (!decimals.has(k)) decimals.set(k, new Intl.NumberFormat(language, { style: "percent", maximumSignificantDigits: 3 }));
  return decimals.get(k).format(chance);
}

export const date = (ms) => dates.format(new Date(Number(ms)));
export const longDate = (ms) => full.format(new Date(Number(ms)));
export const moment = (ms) => precise.format(new Date(Number(ms)));
export const clock = (ms) => times.format(new Date(Number(ms)));

// tick is a clock as short as an axis needs it: without AM and PM, and without seconds if they are all 0.
export function tick(ms, seconds) {
  const parts = times.formatToParts(new Date(Number(ms))).filter((p) => p.type !== "dayPeriod").map((p) => p.value).join("").trim();
  return seconds ? parts : parts.replace(/\D\d\d$/, "");
}

// ago says how far a moment is from now.
export function ago(ms, now = Date.now()) {
  const s = (Number(ms) - now) / 1000;
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(s) >= size) return relative.format(Math.round(s / size), unit);
  }
  return relative.format(Math.round(s), "second");
}

// bytes writes a size.
export function bytes(n) {
  let value = Number(n ?? 0);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024 || unit === "GiB") return `${dec(value, value < 10 && unit !== "B" ? 1 : 0)} ${unit}`;
    value /= 1024;
  }
}
