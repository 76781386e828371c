// Streams of draws, which need HTTP/2 in both directions at once: Node has that, browsers do not.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { Client as WebClient, type CallOptions } from "./client.js";
import { RewardService } from "./gen/kuji/v1/reward_service_pb.js";
import { type StreamDrawsRequest, StreamDrawsRequestSchema, type StreamDrawsResponse } from "./gen/kuji/v1/stream_pb.js";
import { identifyDraws } from "./ids.js";
import { notConnected, Tries } from "./rules.js";

export * from "./index.js";

/** How many batches of a stream can be without an answer. */
const maxAhead = 16;

type Batch = MessageInitShape<typeof StreamDrawsRequestSchema>;

/** Client for Node, which has streams of draws too. */
export class Client extends WebClient {
  /**
   * Sends batches of draws over a stream and yields an answer for each, in order. It goes on after a break.
   *
   * batches is read at most 16 ahead of the answers. Draws without a request id get one. It throws when the server
   * refuses a batch, no answer came for the client's timeout, or the signal ends it.
   */
  draws(batches: Iterable<Batch> | AsyncIterable<Batch>, options: Pick<CallOptions, "signal"> = {}): AsyncGenerator<StreamDrawsResponse, void, undefined> {
    return new Draws(this, batches, options.signal).answers();
  }
}

/** One of the connections that a stream goes through. */
interface Connection {
  session: Http2SessionManager;
  stop: AbortController;
  answers: AsyncIterator<StreamDrawsResponse>;
}

/** A stream of draws through all its connections. */
class Draws {
  private readonly open: StreamDrawsRequest[] = []; // without an answer, the oldest first
  private answered = 0; // how many before them
  private ended = false; // no more come
  private broken: { error: unknown } | undefined; // what batches has thrown
  private over = false;
  private wake: (() => void)[] = [];

  constructor(
    private readonly client: Client,
    private readonly batches: Iterable<Batch> | AsyncIterable<Batch>,
    private readonly signal: AbortSignal | undefined,
  ) {}

  async *answers(): AsyncGenerator<StreamDrawsResponse, void, undefined> {
    let connection: Connection | undefined;
    const aborted = () => this.change();
    this.signal?.addEventListener("abort", aborted);
    void this.read();
    try {
      for (;;) {
        await this.until(() => this.open.length > 0 || this.ended || this.signal?.aborted === true);
        if (this.open.length === 0 && this.ended) {
          if (this.broken !== undefined) {
            throw this.broken.error;
          }
          return;
        }
        const tries = new Tries(this.client.servers, this.client.options.timeout, this.client.options.attempt);
        let answer: StreamDrawsResponse | undefined;
        while (answer === undefined) {
          const bound = tries.begin();
          connection ??= this.connect(tries.at);
          try {
            answer = await this.next(connection, bound);
          } catch (e) {
            this.end(connection);
            connection = undefined;
            const ids = this.open.flatMap((batch) => batch.requestIds);
            await tries.again(e, { sent: !notConnected(e), retryAfter: 0 }, ids, ids.length > 0, this.signal);
          }
        }
        this.open.shift();
        this.answered++;
        this.change();
        yield answer;
      }
    } finally {
      this.over = true;
      this.change();
      this.signal?.removeEventListener("abort", aborted);
      if (connection !== undefined) {
        this.end(connection);
      }
    }
  }

  /** Receives the next answer, for at most so many milliseconds. */
  private async next(connection: Connection, bound: number | undefined): Promise<StreamDrawsResponse> {
    let late = false;
    const timer =
      bound &&
      setTimeout(() => {
        late = true;
        connection.stop.abort();
      }, bound);
    try {
      const { value, done } = await connection.answers.next();
      if (done) {
        throw new ConnectError("the server ended the stream", Code.Unavailable);
      }
      return value as StreamDrawsResponse;
    } catch (e) {
      throw late ? new ConnectError("nothing came in time", Code.DeadlineExceeded) : e;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Opens a stream on a connection of its own, which sends all that has no answer, and what comes after it. */
  private connect(at: number): Connection {
    const baseUrl = this.client.servers.url(at);
    const session = new Http2SessionManager(baseUrl, { pingIntervalMs: 10_000, pingTimeoutMs: 5_000 });
    const transport = createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true, sessionManager: session });
    const stop = new AbortController();
    // By hand: Node 20 can collect what AbortSignal.any returns while it is waited for.
    const ended = () => stop.abort(this.signal?.reason);
    this.signal?.addEventListener("abort", ended);
    stop.signal.addEventListener("abort", () => this.signal?.removeEventListener("abort", ended));
    if (this.signal?.aborted) {
      ended();
    }
    const { client, send } = { client: this.client, send: this.send(stop.signal) };
    const answers = (async function* () {
      const stream = await transport.stream(RewardService.method.streamDraws, stop.signal, undefined, client.header(), send);
      yield* stream.message;
    })();
    return { session, stop, answers };
  }

  private end(connection: Connection): void {
    connection.stop.abort();
    connection.session.abort();
    this.change(); // what sends over it ends
  }

  private async *send(stop: AbortSignal): AsyncGenerator<StreamDrawsRequest, void, undefined> {
    for (let at = this.answered; ; at++) {
      await this.until(() => stop.aborted || this.over || at - this.answered < this.open.length || this.ended);
      const batch = this.open[at - this.answered];
      if (stop.aborted || this.over || batch === undefined) {
        return;
      }
      yield batch;
    }
  }

  /** Reads the batches, as long as there is room. */
  private async read(): Promise<void> {
    try {
      for await (const init of this.batches) {
        const batch = create(StreamDrawsRequestSchema, init);
        identifyDraws(batch);
        await this.until(() => this.open.length < maxAhead || this.over);
        if (this.over) {
          return;
        }
        this.open.push(batch);
        this.change();
      }
    } catch (error) {
      this.broken = { error };
    }
    this.ended = true;
    this.change();
  }

  private change(): void {
    const wake = this.wake;
    this.wake = [];
    wake.forEach((f) => f());
  }

  private async until(so: () => boolean): Promise<void> {
    while (!so()) {
      await new Promise<void>((resolve) => this.wake.push(resolve));
    }
  }
}
