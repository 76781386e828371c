// The rule: what is sent again, when, and where. See docs/clients.md of the project, "What is sent again".

import { ConnectError } from "@connectrpc/connect";
import { KujiError, read, UnknownError, UnreachableError } from "./errors.js";
import { Reason } from "./gen/kuji/v1/error_pb.js";

const firstPause = 50;
const lastPause = 1000; // milliseconds

/** What follows from a failed attempt. */
export interface Verdict {
  again: boolean;
  /** If it was sent, it may have happened. */
  maybe: boolean;
  /** At another server, if there are several. */
  elsewhere: boolean;
}

function verdict(...is: (keyof Verdict)[]): Verdict {
  return { again: is.includes("again"), maybe: is.includes("maybe"), elsewhere: is.includes("elsewhere") };
}

/** The table of docs/clients.md. */
export function judge(error: KujiError, servers: number): Verdict {
  const reason = error.detail?.reason ?? Reason.UNSPECIFIED;
  switch (reason) {
    case Reason.UNSPECIFIED:
      break;
    case Reason.OVERLOADED:
    case Reason.HISTORY:
      return verdict("again");
    case Reason.CLOSED:
    case Reason.CANCELED:
      return verdict("again", "elsewhere");
    case Reason.UNKNOWN_OUTCOME:
      return verdict("again", "maybe", "elsewhere");
    case Reason.FAILED:
      return servers > 1 ? verdict("again", "elsewhere") : verdict("elsewhere");
    case Reason.INTERNAL:
      return verdict("maybe");
    default:
      if (Reason[reason] !== undefined) {
        return verdict();
      }
  }
  switch (error.code) {
    case "unavailable":
    case "deadline_exceeded":
      return verdict("again", "maybe", "elsewhere");
    case "canceled":
    case "unknown":
    case "internal":
    case "aborted":
    case "data_loss":
      return error.detail === undefined ? verdict("again", "maybe", "elsewhere") : verdict("maybe", "elsewhere");
  }
  const cause = error.cause;
  if (error.code === "invalid_argument" && cause instanceof ConnectError && !cause.isWireError && error.detail === undefined) {
    return verdict("again", "maybe"); // the client's own words about an answer that it cannot read
  }
  return verdict();
}

/** Reads a header Retry-After: seconds, or a date. Returns milliseconds. */
export function retryAfter(header: string | null | undefined, now = Date.now()): number {
  if (!header) {
    return 0;
  }
  if (/^\d+$/.test(header)) {
    return Number(header) * 1000;
  }
  const at = Date.parse(header);
  return Number.isNaN(at) || !/[A-Za-z]{3}/.test(header) ? 0 : Math.max(0, at - now);
}

/** What is seen of an attempt beside its error. */
export interface Attempt {
  /** There was a connection, as far as one can tell. */
  sent: boolean;
  retryAfter: number;
}

/** Codes of Node that say that no connection was made. Deno says it in words, and browsers do not tell. */
const unsent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/** Whether an error of fetch, or of a socket, says that nothing was sent. */
export function notConnected(thrown: unknown): boolean {
  for (let e = thrown, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if (unsent.has(String((e as { code?: unknown }).code)) || (thrown instanceof TypeError && e.message.includes("client error (Connect)"))) {
      return true;
    }
    if (e instanceof AggregateError && e.errors.length > 0 && e.errors.every(notConnected)) {
      return true;
    }
  }
  return false;
}

/** The servers of a client, and the one in use. */
export class Servers {
  /** Only grows; calls that fail together go on by one. */
  at = 0;
  readonly urls: string[];

  constructor(urls: string | string[]) {
    this.urls = (typeof urls === "string" ? [urls] : urls).map((text) => {
      const url = URL.canParse(text) ? new URL(text) : undefined;
      if (url === undefined || !["http:", "https:"].includes(url.protocol) || url.host === "") {
        throw new TypeError(`"${text}" is not a URL: expected http://HOST:PORT or https://HOST:PORT`);
      }
      return text.replace(/\/+$/, "");
    });
    if (this.urls.length === 0) {
      throw new TypeError("no URL: expected that of a server");
    }
  }

  url(at: number): string {
    return this.urls[at % this.urls.length] as string;
  }

  leave(at: number): void {
    if (this.at === at) {
      this.at = at + 1;
    }
  }
}

/** The attempts at one thing: a call, or what a stream brings next. */
export class Tries {
  at: number;
  maybe = false;
  private readonly end: number;
  private pause = 0;
  private reached = false;

  /** Times in milliseconds; 0 or less: for ever. */
  constructor(
    private readonly servers: Servers,
    timeout: number,
    private readonly attempt: number,
  ) {
    this.at = servers.at;
    this.end = timeout > 0 ? Date.now() + timeout : Infinity;
  }

  /** How long is left, in milliseconds. */
  left(): number {
    return this.end - Date.now();
  }

  /** Begins an attempt. Returns how long it may take; undefined: for ever. */
  begin(): number | undefined {
    this.at = this.servers.at;
    const bound = Math.min(this.left(), this.attempt > 0 ? this.attempt : Infinity);
    return bound === Infinity ? undefined : Math.max(1, Math.ceil(bound));
  }

  /**
   * Notes a failed attempt, and waits before the next. Throws the error to end with if that settles it, the time is
   * up, or the caller has ended it.
   */
  async again(thrown: unknown, seen: Attempt, ids: string[], effects: boolean, signal: AbortSignal | undefined): Promise<void> {
    const error = read(thrown);
    const then = judge(error, this.servers.urls.length);
    this.maybe ||= seen.sent && then.maybe;
    this.reached ||= seen.sent;
    const asked = Math.max(seen.retryAfter, retryAfter(error.cause instanceof ConnectError ? error.cause.metadata.get("Retry-After") : null));
    const over = (e: KujiError) => this.over(e, ids, effects);
    if (signal?.aborted) {
      throw over(new KujiError("canceled", "the caller has ended the call", { cause: signal.reason }));
    }
    if (!then.again || this.left() <= 0) {
      throw over(error);
    }
    if (then.elsewhere) {
      this.servers.leave(this.at);
    }
    if (this.left() < asked) {
      throw over(error); // the server wants nothing before the time is up
    }
    this.pause = Math.min(Math.max(2 * this.pause, firstPause), lastPause);
    await sleep(Math.min(Math.max(asked, this.pause * (0.5 + Math.random() / 2)), this.left()), signal);
    if (signal?.aborted) {
      throw over(new KujiError("canceled", "the caller has ended the call", { cause: signal.reason }));
    }
    if (this.left() <= 0) {
      throw over(error);
    }
  }

  private over(error: KujiError, ids: string[], effects: boolean): KujiError {
    if (this.maybe && effects && error.reason !== "REASON_ID_REUSED") {
      return new UnknownError(error, ids); // a refusal of the id would have settled it
    }
    if (!this.reached && error.detail === undefined && error.code !== "canceled") {
      return new UnreachableError(error);
    }
    return error;
  }
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
    if (signal?.aborted) {
      done();
    }
  });
}
