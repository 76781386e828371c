// What needs no server: the conformance suite has the rest.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import * as kuji from "../src/node.js";
import { identify, identifyDraws } from "../src/ids.js";
import { judge, notConnected, retryAfter, Servers } from "../src/rules.js";

/** The URL of a server that nobody serves. */
async function away(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

test("ids are ULIDs that carry their time", () => {
  const ids = Array.from({ length: 1000 }, kuji.newId);
  assert.equal(new Set(ids).size, 1000);
  let ms = 0;
  for (const c of ids[0]!.slice(0, 10)) {
    ms = ms * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(c);
  }
  assert.ok(Math.abs(ms - Date.now()) < 60_000, ids[0]);
  assert.ok(ids.every((id) => /^[0-9A-HJKMNP-TV-Z]{26}$/.test(id)));
});

test("missing ids are made, and given ones stay", () => {
  const draw = create(kuji.DrawRequestSchema, { player: "ann" });
  const [made] = identify(kuji.DrawRequestSchema, draw);
  assert.equal(draw.requestId, made);
  assert.deepEqual(identify(kuji.DrawRequestSchema, draw), [made]);
  const batch = create(kuji.BatchRequestSchema, { commands: [{}, { requestId: "mine" }] });
  const ids = identify(kuji.BatchRequestSchema, batch);
  assert.equal(ids[1], "mine");
  assert.equal(batch.commands[0]?.requestId, ids[0]);
  assert.deepEqual(identify(kuji.ApplyCatalogRequestSchema, create(kuji.ApplyCatalogRequestSchema)), []);
  const stream = create(kuji.StreamDrawsRequestSchema, { players: ["ann"], playerIndexes: [0, 0], requestIds: ["mine", ""] });
  identifyDraws(stream);
  assert.equal(stream.requestIds[0], "mine");
  assert.equal(stream.requestIds[1]?.length, 26);
});

test("what each reason means", () => {
  for (const { number, name } of kuji.ReasonSchema.values) {
    for (const servers of [1, 2]) {
      const error = new kuji.KujiError("failed_precondition", "", { detail: create(kuji.ErrorDetailSchema, { reason: number }) });
      const { again, maybe } = judge(error, servers);
      const short = name.replace("REASON_", "");
      assert.equal(again, ["OVERLOADED", "HISTORY", "CLOSED", "CANCELED", "UNKNOWN_OUTCOME"].includes(short) || (short === "FAILED" && servers > 1), name);
      assert.equal(maybe, ["UNKNOWN_OUTCOME", "INTERNAL"].includes(short), name);
    }
  }
});

test("what each code without a reason means", () => {
  const broken = ["unavailable", "deadline_exceeded", "canceled", "unknown", "internal", "aborted", "data_loss"];
  for (const code of [...broken, "invalid_argument", "not_found", "already_exists", "permission_denied", "unauthenticated", "resource_exhausted", "unimplemented"]) {
    const { again, maybe } = judge(new kuji.KujiError(code, ""), 1);
    assert.equal(again, broken.includes(code), code);
    assert.equal(maybe, broken.includes(code), code);
  }
  const newer = create(kuji.ErrorDetailSchema, { reason: 9999 as kuji.Reason });
  assert.equal(judge(new kuji.KujiError("unavailable", "", { detail: newer }), 1).again, true);
  assert.equal(new kuji.KujiError("unavailable", "", { detail: newer }).reason, "9999");
});

test("an answer that cannot be read is no refusal", () => {
  const garbled = new kuji.KujiError("invalid_argument", "", { cause: new ConnectError("premature EOF", Code.InvalidArgument) });
  assert.equal(judge(garbled, 1).again, true);
});

test("Retry-After", () => {
  assert.equal(retryAfter("3"), 3000);
  for (const nothing of ["", "soon", "-1", null, undefined]) {
    assert.equal(retryAfter(nothing), 0, String(nothing));
  }
  const now = Date.UTC(2026, 10, 29, 12, 0, 0);
  assert.equal(retryAfter("Sun, 29 Nov 2026 12:01:00 GMT", now), 60_000);
  assert.equal(retryAfter("Sun, 29 Nov 2026 11:59:00 GMT", now), 0);
});

test("bad URLs", () => {
  for (const bad of [[], "", "localhost:7700", "ftp://x", ["http://good", "http://"]]) {
    assert.throws(() => new kuji.Client(bad), TypeError, String(bad));
  }
  assert.deepEqual(new Servers(["http://a:1/", "https://b/kuji/"]).urls, ["http://a:1", "https://b/kuji"]);
});

test("nobody there: nothing was sent, and nothing is unknown", async () => {
  const url = await away();
  await assert.rejects(new kuji.Client(url, { timeout: 300 }).draw({ player: "ann", pool: "p" }), kuji.UnreachableError);
  await assert.rejects(new kuji.Client(url, { timeout: 300 }).draws([{ players: ["ann"], pools: ["p"] }]).next(), kuji.KujiError);
  assert.equal(notConnected(new Error("other")), false);
});

test("a browser's fetch does not tell, so it is unknown", async () => {
  const client = new kuji.Client("http://127.0.0.1:9", { timeout: 200, fetch: () => Promise.reject(new TypeError("Failed to fetch")) });
  await assert.rejects(client.draw({ requestId: "the-id", player: "ann", pool: "p" }), (e) => e instanceof kuji.UnknownError && e.requestIds[0] === "the-id");
});

test("a signal ends pauses too", async () => {
  const client = new kuji.Client(await away(), { timeout: 0 });
  await assert.rejects(client.draw({ player: "ann", pool: "p" }, { signal: AbortSignal.timeout(200) }), (e) => e instanceof kuji.KujiError && e.code === "canceled");
});

test("what batches throws reaches the caller", async () => {
  const client = new kuji.Client(await away(), { timeout: 1000 });
  const batches = (async function* () {
    throw new RangeError("of the caller's own");
    yield {};
  })();
  await assert.rejects(client.draws(batches).next(), RangeError);
});
