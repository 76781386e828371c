// The client as the conformance suite drives it: see clients/conformance/doc.go. With --web it is the one that
// browsers have, without streams of draws.

import { createInterface } from "node:readline";
import { create, fromJson, type JsonValue, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import * as kuji from "../src/node.js";
import { Client as WebClient } from "../src/client.js";

interface Task {
  n: number;
  op: string;
  client: string;
  urls: string[];
  key: string;
  timeoutMs: number;
  attemptMs: number;
  silenceMs: number;
  service: string;
  method: string;
  request: JsonValue;
  batches: JsonValue[];
  events: number;
  of: number;
}

const web = process.argv.includes("--web");
const clients = new Map<string, WebClient>();
const running = new Map<number, AbortController>();
const services = { RewardService: kuji.RewardService, AdminService: kuji.AdminService, ChatService: kuji.ChatService };

function write(line: object): void {
  process.stdout.write(JSON.stringify(line) + "\n");
}

function describe(error: unknown): object {
  if (!(error instanceof kuji.KujiError)) {
    return { kind: "server", code: "program", message: String(error instanceof Error ? error.stack : error) };
  }
  return {
    kind: error instanceof kuji.UnknownError ? "unknown" : error instanceof kuji.UnreachableError ? "unreachable" : "server",
    code: error.code,
    reason: error.reason,
    message: error.message,
    requestIds: error instanceof kuji.UnknownError ? error.requestIds : [],
    fields: error.violations.map((v) => v.field),
  };
}

async function run(task: Task, signal: AbortSignal): Promise<JsonValue> {
  const client = clients.get(task.client);
  switch (task.op) {
    case "open": {
      const options = { key: task.key, timeout: task.timeoutMs || 10_000, attempt: task.attemptMs, silence: task.silenceMs || 25_000 };
      clients.set(task.client, web ? new WebClient(task.urls, options) : new kuji.Client(task.urls, options));
      return {};
    }
    case "id":
      return { id: kuji.newId() };
    case "cancel":
      running.get(task.of)?.abort();
      return {};
    case "call": {
      const method = services[task.service as keyof typeof services].methods.find((m) => m.name === task.method);
      if (client === undefined || method === undefined) {
        throw new Error(`no client ${task.client}, or no method ${task.method}`);
      }
      const call = client[method.localName as "draw"] as (request: unknown, options: kuji.CallOptions) => Promise<kuji.DrawResponse>;
      const answer = await call.call(client, fromJson(method.input, task.request), { signal });
      return toJson(method.output, answer);
    }
    case "draws": {
      const batches = task.batches.map((b): MessageInitShape<typeof kuji.StreamDrawsRequestSchema> => fromJson(kuji.StreamDrawsRequestSchema, b));
      for await (const answer of (client as kuji.Client).draws(batches, { signal })) {
        write({ n: task.n, item: toJson(kuji.StreamDrawsResponseSchema, answer) });
      }
      return {};
    }
    case "events": {
      let came = 0;
      for await (const message of (client as WebClient).events(create(kuji.StreamEventsRequestSchema, fromJson(kuji.StreamEventsRequestSchema, task.request)), { signal })) {
        write({ n: task.n, item: toJson(kuji.StreamEventsResponseSchema, message) });
        came += message.events.length;
        if (came >= task.events) {
          break;
        }
      }
      return {};
    }
  }
  throw new Error(`no such op: ${task.op}`);
}

for await (const text of createInterface({ input: process.stdin })) {
  const task = JSON.parse(text) as Task;
  const stop = new AbortController();
  running.set(task.n, stop);
  void run(task, stop.signal).then(
    (result) => write({ n: task.n, result }),
    (error: unknown) => write({ n: task.n, error: describe(error) }),
  );
}
process.exit(0);
