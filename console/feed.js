// The feed: the events of a realm as they come, read from GET /events with the key in a header, which
// EventSource cannot set. docs/reference/feed.md has the format.
import { authorization, failureOf, Failure } from "./api.js";

// follow reads the feed until stop is called. It goes on from where it stood after a break. The
// callbacks: event(e), each event; state({live, since, failure}), when that changes; idle(next), if given,
// for each message without an event: the first one of a connection, and one every 10 seconds. The feed has
// come up to the position next.
export function follow({ realm, from, pool, player }, { event, state, idle }) {
  const end = new AbortController();
  let next = from; // where to go on: undefined is what comes from now on
  let wait = 250;
  let since = null; // when the connection was lost
  const alive = () => {
    since = null;
    wait = 250;
    state({ live: true });
  };

  const once = async () => {
    const query = new URLSearchParams({ realm });
    if (next !== undefined) query.set("from", next);
    if (pool) query.set("pool", pool);
    if (player) query.set("player", player);
    const response = await fetch(`/events?${query}`, {
      headers: { Accept: "text/event-stream", ...authorization() }, credentials: "omit", cache: "no-store", signal: end.signal,
    });
    if (!response.ok) throw await failureOf(response);
    await read(response.body.pipeThrough(new TextDecoderStream()).getReader(), (message) => {
      if (message.id !== undefined) next = message.id;
      alive();
      if (message.type === "end") {
        const { code, message: why } = JSON.parse(message.data);
        throw new Failure(code, why);
      }
      if (message.data !== undefined) event(JSON.parse(message.data));
      else idle?.(message.id);
    }, alive, end.signal);
    throw new Failure("unreachable", "");
  };

  (async () => {
    while (!end.signal.aborted) {
      try {
        await once();
      } catch (e) {
        if (end.signal.aborted) return;
        const failure = e instanceof Failure ? e : new Failure("unreachable", "");
        since ??= Date.now();
        state({ live: false, since, failure });
        if (failure.refused || failure.notOffered || failure.code === "invalid_argument") return;
        if (failure.firstPosition) next = failure.firstPosition;
        if (failure.code !== "unreachable" && failure.code !== "unavailable" && failure.code !== "not_found") wait = 4000;
      }
      await pause(wait * (0.5 + Math.random()), end.signal);
      wait = Math.min(wait * 2, 5000);
    }
  })();
  return () => end.abort();
}

function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}

// read gives the messages of a stream of server-sent events to take.
async function read(reader, take, opened, ended) {
  opened();
  let rest = "";
  let message = {};
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (ended.aborted) return; // there may be much more in hand
        if (line === "") {
          if (message.id !== undefined || message.data !== undefined) take(message);
          message = {};
          continue;
        }
        const colon = line.indexOf(":");
        const name = line.slice(0, colon);
        const value = line.slice(colon + 1).replace(/^ /, "");
        if (name === "data") message.data = value;
        else if (name === "id") message.id = value;
        else if (name === "event") message.type = value;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// sample reads the feed without costing the server more than a bounded part: while more events come
// than `most` a second, it takes a look of at most `look` events, and another one after `gap` ms.
export function sample(where, { event, state }, { most = 1500, look = 100, gap = 8000 } = {}) {
  let stop = () => {};
  let ended = false;
  let timer = 0;
  let count = 0;
  let began = 0;
  let sampling = false;
  let { from } = where; // the first time; a look is at what comes
  const open = () => {
    count = 0;
    began = Date.now();
    stop = follow({ ...where, from }, {
      event(e) {
        event(e);
        const now = Date.now();
        if (now - began > 1000 && !sampling) {
          count = 0;
          began = now;
        }
        if (++count < (sampling ? look : most)) return;
        sampling = true; // too many: look now and then
        stop();
        state({ live: true, sampling });
        if (!ended) timer = setTimeout(open, gap);
      },
      state(s) { state({ ...s, sampling }); },
    });
    from = undefined;
    if (sampling) {
      // A look that does not fill up shows that there are fewer again.
      const watching = stop;
      setTimeout(() => { if (!ended && watching === stop && count < look / 2) sampling = false; }, 1000);
    }
  };
  open();
  return () => {
    ended = true;
    clearTimeout(timer);
    stop();
  };
}
