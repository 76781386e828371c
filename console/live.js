// What happens in all pools of a realm, gathered in one place for the page of pools.
//
// The server pays for little: one read of /metrics every two seconds tells the draws of all pools, one
// read of a pool every few seconds is made for those that can be seen, and the feed is read whole only
// while few events come (see feed.js). Where the key may not read metrics, the reads of pools tell the
// rates. The page is drawn at most four times a second, however much comes.
import { Failure, call, text } from "./api.js";
import { sample } from "./feed.js";
import { app, mayWhole, notePool } from "./store.js";

const POINTS = 120; // of a rate's ring: four minutes at two seconds each
const NEWEST = 100; // draws that are kept
const METRICS_EVERY = 2000;
const POOL_EVERY = 5000;
const POOLS_AT_ONCE = 4;
const DRAW_EVERY = 250;

// Ring is the newest numbers of a series.
class Ring {
  constructor() { this.values = []; }
  push(v) {
    this.values.push(v);
    if (this.values.length > POINTS) this.values.shift();
  }
  get last() { return this.values.at(-1) ?? null; }
}

// Live follows the pools of a realm until close. changed is called at most four times a second.
export class Live {
  constructor(ids, changed) {
    this.pools = new Map(ids.map((id) => [id, { id, pool: null, at: 0, first: null, rate: new Ring(), draws: null, drawsAt: 0, seen: false }]));
    this.newest = [];
    this.total = new Ring();
    this.times = new Ring();
    this.feed = { live: false };
    this.failure = null;
    this.byMetrics = mayWhole();
    this.realm = app.realm;
    this.changed = changed;
    this.end = new AbortController();
    this.timers = new Set();
    const only = app.access?.pools?.length ? app.access.pools[0] : undefined; // such a key must name a pool
    this.stopFeed = () => {};
    this.openFeed(only);
    if (this.byMetrics) this.every(METRICS_EVERY, () => this.readMetrics());
    this.every(POOL_EVERY / 5, () => this.readPools());
  }

  // openFeed begins with what comes after now, so that a break loses nothing.
  async openFeed(pool) {
    let from;
    try {
      const { realms = [] } = await call("GetStatus", { realm: this.realm }, { signal: this.end.signal });
      from = realms[0] && String(BigInt(realms[0].position ?? 0) + 1n);
    } catch (e) {
      if (this.end.signal.aborted) return;
      if (!(e instanceof Failure)) throw e;
    }
    this.stopFeed = sample({ realm: this.realm, pool, from }, {
      event: (e) => this.take(e),
      state: (s) => { this.feed = s; this.note(); },
    });
  }

  close() {
    this.end.abort();
    this.stopFeed();
    for (const timer of this.timers) clearTimeout(timer);
  }

  // every runs something again and again, one at a time, not in step with other consoles.
  every(ms, run) {
    const turn = async () => {
      if (!document.hidden) {
        try {
          await run();
          this.failure = null;
        } catch (e) {
          if (this.end.signal.aborted) return;
          if (!(e instanceof Failure)) throw e;
          this.failure = e;
        }
        this.note();
      }
      if (this.end.signal.aborted) return;
      const timer = setTimeout(() => { this.timers.delete(timer); turn(); }, ms * (0.85 + Math.random() * 0.3));
      this.timers.add(timer);
    };
    turn();
  }

  // note has the page drawn, soon and once.
  note() {
    if (this.noted || this.end.signal.aborted) return;
    this.noted = setTimeout(() => { this.noted = 0; this.changed(); }, DRAW_EVERY);
    this.timers.add(this.noted);
  }

  take(e) {
    if (e.kind !== "draw" && !(e.outcomes?.length)) return;
    this.newest.unshift(e);
    if (this.newest.length > NEWEST) this.newest.length = NEWEST;
    this.note();
  }

  async readMetrics() {
    let lines;
    try {
      lines = (await text("/metrics", { signal: this.end.signal })).split("\n");
    } catch (e) {
      if (e instanceof Failure && e.refused) this.byMetrics = false;
      throw e;
    }
    const now = performance.now();
    let sum = 0;
    let known = false;
    for (const line of lines) {
      if (!line.startsWith("kuji_pool_draws_total{")) continue;
      const labels = labelsOf(line);
      const p = labels.realm === this.realm && this.pools.get(labels.pool);
      if (!p) continue;
      const rate = this.rateOf(p, Number(line.slice(line.lastIndexOf(" ") + 1)), now);
      if (rate !== null) { sum += rate; known = true; }
    }
    if (known) this.addTotal(sum);
  }

  // rateOf keeps how many draws there were, and returns how many there are a second; null: not known yet.
  rateOf(p, draws, now) {
    const before = p.draws;
    const seconds = (now - p.drawsAt) / 1000;
    p.draws = draws;
    p.drawsAt = now;
    if (before === null || seconds <= 0 || draws < before) return null; // the first time, or a server that restarted
    const rate = (draws - before) / seconds;
    p.rate.push(rate);
    return rate;
  }

  addTotal(rate) {
    this.total.push(rate);
    this.times.push(Date.now() / 1000);
  }

  // readPools reads those pools again that can be seen and were not read for long.
  async readPools() {
    const now = performance.now();
    const due = [...this.pools.values()].filter((p) => (p.seen || !p.pool) && now - p.at > POOL_EVERY).sort((a, b) => a.at - b.at).slice(0, 12);
    for (let i = 0; i < due.length; i += POOLS_AT_ONCE) {
      await Promise.all(due.slice(i, i + POOLS_AT_ONCE).map((p) => this.readPool(p)));
    }
  }

  async readPool(p) {
    p.at = performance.now() || 1;
    try {
      const { pool } = await call("GetPool", { realm: this.realm, pool: p.id, entryLimit: 200, stale: true }, { signal: this.end.signal });
      p.pool = pool;
      p.gone = false;
      p.first ??= pool;
      notePool(pool);
      if (!this.byMetrics) {
        const rate = this.rateOf(p, (pool.entries ?? []).reduce((n, e) => n + Number(e.drawn ?? 0), 0), performance.now());
        if (rate !== null) this.addTotal([...this.pools.values()].reduce((n, one) => n + (one.rate.last ?? 0), 0));
      }
    } catch (e) {
      if (!(e instanceof Failure) || e.code !== "not_found") throw e;
      p.gone = true;
    }
  }
}

function labelsOf(line) {
  const labels = {};
  for (const [, name, value] of line.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value.replace(/\\(.)/g, (all, c) => (c === "n" ? "\n" : c));
  return labels;
}

// metricsOf reads the lines of some metrics: [{ name, labels, value }].
export function metricsOf(page, wanted) {
  const found = [];
  for (const line of page.split("\n")) {
    const name = /^[a-z_]+/.exec(line)?.[0];
    if (wanted.has(name)) found.push({ name, labels: labelsOf(line), value: Number(line.slice(line.lastIndexOf(" ") + 1)) });
  }
  return found;
}

// wilson returns the interval in which a chance lies with 95 % confidence, if it hit k times of n: Wilson's
// score interval (1927), which holds for small n and chances near 0, too.
export function wilson(k, n) {
  if (n === 0) return [0, 1];
  const z = 1.959964;
  const p = k / n;
  const d = 1 + (z * z) / n;
  const middle = (p + (z * z) / (2 * n)) / d;
  const half = (z / d) * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

// decades returns a scale for chances that all rows of a table share: in powers of ten, as odds of 20 % and of
// 0.003 % stand side by side. { at: where a chance lies, 0 to 1; ends: the chances at both ends; lines: where the
// powers between lie }. A chance of 0 lies at the low end.
export function decades(chances) {
  const some = chances.filter((c) => c > 0);
  const low = Math.max(-12, Math.min(-1, ...some.map((c) => Math.floor(Math.log10(c) + 1e-9))));
  const high = Math.max(low + 1, ...some.map((c) => Math.min(0, Math.ceil(Math.log10(c) - 1e-9))));
  const at = (c) => (c > 0 ? Math.max(0, Math.min(1, (Math.log10(c) - low) / (high - low))) : 0);
  return { at, ends: [10 ** low, 10 ** high], lines: Array.from({ length: high - low - 1 }, (_, i) => (i + 1) / (high - low)) };
}
