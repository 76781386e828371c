import { clone, create, type DescMessage, type DescMethodUnary, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type Client as ServiceClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AdminService } from "./gen/kuji/v1/admin_service_pb.js";
import { ChatService } from "./gen/kuji/v1/chat_service_pb.js";
import { type Event, StreamEventsRequestSchema, type StreamEventsResponse } from "./gen/kuji/v1/events_pb.js";
import { RewardService } from "./gen/kuji/v1/reward_service_pb.js";
import { identify } from "./ids.js";
import { type Attempt, notConnected, retryAfter, Servers, Tries } from "./rules.js";

/** How to call. Times are in milliseconds. */
export interface Options {
  /** An API key or a player's token. It goes with every call. A page or a game has a token, never a key. */
  key?: string;
  /**
   * How long a call is tried, repeats included; for a feed, how long it goes without an answer. 10 seconds by
   * default; 0 or less: until it is ended.
   */
  timeout?: number;
  /** How long one attempt may take before the next, at another server if any. By default as long as the call. */
  attempt?: number;
  /**
   * How long a feed may bring nothing before it is asked for again. Servers send a message every 10 seconds.
   * 25 seconds by default.
   */
  silence?: number;
  /** In place of the global fetch. */
  fetch?: typeof globalThis.fetch;
}

/** Options of one call. */
export interface CallOptions {
  /** In place of the client's timeout, in milliseconds. */
  timeout?: number;
  /** Ends the call. What may have happened is unknown then, and the error says so. */
  signal?: AbortSignal;
}

type Unary<S> = {
  [K in keyof S as S[K] extends (request: never, options?: never) => Promise<unknown> ? K : never]: S[K] extends (
    request: infer I,
    ...rest: never[]
  ) => Promise<infer O>
    ? (request: I, options?: CallOptions) => Promise<O>
    : never;
};

/** The calls of the API that are no streams: draw, grant, getPlayer, applyCatalog and so on. */
export type Calls = Unary<ServiceClient<typeof RewardService>> & Unary<ServiceClient<typeof AdminService>> & Unary<ServiceClient<typeof ChatService>>;

// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging
export interface Client extends Calls {}

/**
 * Calls the servers of one cluster, or a single one. A command goes out under one request id, and again under the
 * same id, until there is an answer. A command without an id gets one, which stays in the message, if it is one.
 *
 * A call rejects with a KujiError, an UnknownError or an UnreachableError. A status other than OK is no error.
 */
export class Client {
  /** @internal */ readonly servers: Servers;
  /** @internal */ readonly options: Required<Omit<Options, "fetch">> & Pick<Options, "fetch">;

  /** urls are http://HOST:PORT or https://HOST:PORT: a server, or nodes of one cluster. */
  constructor(urls: string | string[], options: Options = {}) {
    this.servers = new Servers(urls);
    this.options = {
      key: options.key ?? "",
      timeout: options.timeout ?? 10_000,
      attempt: options.attempt ?? 0,
      silence: options.silence ?? 25_000,
      ...(options.fetch && { fetch: options.fetch }),
    };
  }

  /** @internal */
  header(): Record<string, string> {
    return this.options.key === "" ? {} : { Authorization: `Bearer ${this.options.key}` };
  }

  /** Returns a transport to a server for one attempt, which notes what is seen of it. */
  private transport(at: number, seen: Attempt): Transport {
    const go = this.options.fetch ?? globalThis.fetch;
    return createConnectTransport({
      baseUrl: this.servers.url(at),
      useBinaryFormat: true,
      fetch: async (input, init) => {
        try {
          const response = await go(input, init);
          if (!response.ok) {
            seen.retryAfter = retryAfter(response.headers.get("Retry-After"));
          }
          return response;
        } catch (e) {
          seen.sent = !notConnected(e);
          throw e;
        }
      },
    });
  }

  /** @internal */
  async unary<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, init: MessageInitShape<I>, options: CallOptions = {}): Promise<MessageShape<O>> {
    const request = create(method.input, init);
    const effects = method.idempotency !== noSideEffects;
    const ids = effects ? identify(method.input, request) : [];
    const tries = new Tries(this.servers, options.timeout ?? this.options.timeout, this.options.attempt);
    for (;;) {
      const bound = tries.begin();
      const seen = { sent: true, retryAfter: 0 };
      try {
        const answer = await this.transport(tries.at, seen).unary(method, options.signal, bound, this.header(), request as MessageInitShape<I>);
        return answer.message;
      } catch (e) {
        await tries.again(e, seen, ids, effects, options.signal);
      }
    }
  }

  /**
   * Yields each event that request asks for once, in order, as they come, and goes on after a break.
   *
   * A message without events says how far the feed has come: `next` is where to go on in a later run. It throws when
   * the server refuses the feed, cannot be reached for the client's timeout, or the signal ends it.
   */
  async *events(init: MessageInitShape<typeof StreamEventsRequestSchema>, options: Pick<CallOptions, "signal"> = {}): AsyncGenerator<StreamEventsResponse, void, undefined> {
    const request = clone(StreamEventsRequestSchema, create(StreamEventsRequestSchema, init));
    let last: Event | undefined;
    let tries = new Tries(this.servers, this.options.timeout, 0);
    for (;;) {
      tries.begin();
      const seen = { sent: true, retryAfter: 0 };
      const stop = new AbortController();
      let silent = false;
      // By hand: Node 20 can collect what AbortSignal.any returns while it is waited for.
      const ended = () => stop.abort(options.signal?.reason);
      options.signal?.addEventListener("abort", ended);
      if (options.signal?.aborted) {
        ended();
      }
      const watch = () =>
        setTimeout(() => {
          silent = true;
          stop.abort();
        }, this.options.silence);
      let silence = watch();
      try {
        const input = (async function* () {
          yield request;
        })();
        const stream = await orAborted(this.transport(tries.at, seen).stream(RewardService.method.streamEvents, stop.signal, undefined, this.header(), input), stop.signal);
        const messages = stream.message[Symbol.asyncIterator]();
        for (;;) {
          const { value: message, done } = await orAborted(messages.next(), stop.signal);
          if (done) {
            break;
          }
          clearTimeout(silence); // the reader may take its time
          tries = new Tries(this.servers, this.options.timeout, 0);
          message.events = message.events.filter((e) => last === undefined || e.position > last.position || (e.position === last.position && e.index > last.index));
          last = message.events.at(-1) ?? last;
          request.from = message.next;
          yield message;
          silence = watch();
        }
        throw new ConnectError("the server ended the feed", Code.Unavailable);
      } catch (e) {
        clearTimeout(silence);
        const broken = silent ? new ConnectError("nothing came in time", Code.DeadlineExceeded) : e;
        await tries.again(broken, seen, [], false, options.signal);
      } finally {
        clearTimeout(silence);
        options.signal?.removeEventListener("abort", ended);
        stop.abort(); // also if the reader has enough
      }
    }
  }
}

/** Settles as p does, or rejects when the signal aborts: a body of fetch does not always settle then. */
function orAborted<T>(p: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = () => reject(signal.reason);
    signal.addEventListener("abort", ended);
    void p.then(resolve, reject).finally(() => signal.removeEventListener("abort", ended));
    if (signal.aborted) {
      ended();
    }
  });
}

/** What a method without effects says of itself: MethodOptions.IdempotencyLevel.NO_SIDE_EFFECTS. */
const noSideEffects = 1;

for (const service of [RewardService, AdminService, ChatService]) {
  for (const method of service.methods) {
    if (method.methodKind === "unary") {
      Object.defineProperty(Client.prototype, method.localName, {
        value: function (this: Client, request: never, options?: CallOptions) {
          return this.unary(method as DescMethodUnary, request, options);
        },
      });
    }
  }
}
