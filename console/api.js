// Calls of the public API: JSON over POST, as docs/reference/api.md says. 64-bit numbers are strings
// in it, and stay strings here: a JavaScript number would lose digits beyond 2^53.

const ADMIN = new Set(["ApplyCatalog", "CreateRealm", "SetTrack", "SetLimit", "SetCounter", "Merge", "Forget", "Block",
  "Reverse", "ListRealms", "GetCodes", "GetStatus", "ListKeys", "ListSlow", "ListNodes", "Simulate", "ProposeCatalog", "ListProposals",
  "GetProposal", "WithdrawProposal", "ApproveCatalog"]);

// The key of this page. It is never in a cookie, nor in an address.
const STORED = "kuji-console-key";
let key = sessionStorage.getItem(STORED) ?? "";

export const hasKey = () => key !== "";
export const isKept = () => sessionStorage.getItem(STORED) !== null;

// useKey takes a key, "" for none. keep says whether it outlives a reload, in this tab.
export function useKey(value, keep) {
  key = value;
  if (keep && value) sessionStorage.setItem(STORED, value);
  else sessionStorage.removeItem(STORED);
}

export const authorization = () => (key ? { Authorization: `Bearer ${key}` } : {});

// Failure is an error of a call. code is Connect's, or "unreachable": no answer came.
export class Failure extends Error {
  constructor(code, message, detail = {}) {
    super(message);
    this.code = code;
    this.reason = detail.reason ?? "";
    this.violations = detail.violations ?? [];
    this.firstPosition = detail.firstPosition;
  }
  // Whether the same request may be sent again, as nothing has happened or an id makes it safe.
  get passing() {
    return this.code === "unreachable" || this.code === "unavailable" || this.code === "deadline_exceeded" || this.code === "unknown";
  }
  // Whether this server is too old for the call, or was built without what it needs.
  get notOffered() {
    return this.code === "unimplemented";
  }
  get refused() {
    return this.code === "permission_denied" || this.code === "unauthenticated";
  }
}

// failureOf reads the body of an answer that is no success.
export async function failureOf(response) {
  let body;
  try {
    body = await response.json();
  } catch {
    return new Failure("unreachable", `HTTP ${response.status}`);
  }
  const detail = (body.details ?? []).find((d) => d.type === "kuji.v1.ErrorDetail");
  return new Failure(body.code ?? "unknown", body.message ?? `HTTP ${response.status}`, detail?.debug);
}

// What the page wants to know of every call: whether the server is there, and whether the key is good.
export const watchers = { reached() {}, lost() {}, unauthenticated() {} };

// call makes a call, once. It throws a Failure. A request that is a text is JSON, and sent as it is: what people
// write can have numbers that JavaScript would round.
export async function call(method, request = {}, { signal, timeout = 30_000 } = {}) {
  const service = ADMIN.has(method) ? "AdminService" : "RewardService";
  const limit = AbortSignal.timeout(timeout);
  let response;
  try {
    response = await fetch(`/kuji.v1.${service}/${method}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Connect-Protocol-Version": "1", ...authorization() },
      body: typeof request === "string" ? request : JSON.stringify(request),
      credentials: "omit",
      cache: "no-store",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    if (response.ok) {
      const answer = await response.json();
      watchers.reached();
      return answer;
    }
  } catch (e) {
    if (signal?.aborted) throw e;
    if (limit.aborted) throw new Failure("deadline_exceeded", "");
    watchers.lost();
    throw new Failure("unreachable", "");
  }
  watchers.reached();
  const failure = await failureOf(response);
  if (failure.code === "unauthenticated") watchers.unauthenticated();
  throw failure;
}

// newId returns a request id: a UUID of version 7, which carries its time (RFC 9562).
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  new DataView(bytes.buffer).setBigUint64(0, BigInt(Date.now()) << 16n | BigInt(bytes[6] & 0x0f | 0x70) << 8n | BigInt(bytes[7]));
  bytes[8] = bytes[8] & 0x3f | 0x80;
  const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
}

// send makes the call of a command until it is answered, for half a minute: with the same request id,
// so that it happens once. If no answer comes, the Failure says passing, and the same request, with the
// same id, may be sent again.
export async function send(method, request, { patience = 30_000 } = {}) {
  const until = Date.now() + patience;
  for (let wait = 200; ; wait = Math.min(wait * 2, 4000)) {
    try {
      return await call(method, request, { timeout: 10_000 });
    } catch (e) {
      if (!(e instanceof Failure) || !e.passing || Date.now() + wait > until) throw e;
    }
    await new Promise((done) => setTimeout(done, wait * (0.5 + Math.random())));
  }
}

// text returns an answer that is no call, such as /metrics.
export async function text(path, { signal } = {}) {
  const response = await fetch(path, { headers: authorization(), credentials: "omit", cache: "no-store", signal })
    .catch((e) => {
      if (signal?.aborted) throw e;
      watchers.lost();
      throw new Failure("unreachable", "");
    });
  if (!response.ok) throw await failureOf(response);
  watchers.reached();
  return response.text();
}
