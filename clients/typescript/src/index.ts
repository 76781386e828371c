/**
 * A client of Kuji. It keeps one rule: a command goes out under one request id, and again under the same id, until
 * there is an answer. So a lost connection, a busy server or a node that dies never makes a draw happen twice.
 *
 *     const client = new Client("http://127.0.0.1:7700");
 *     const { result } = await client.draw({ player: "ann", pool: "splash" });
 *
 * @module
 */
export { Client, type CallOptions, type Calls, type Options } from "./client.js";
export { KujiError, UnknownError, UnreachableError } from "./errors.js";
export { newId } from "./ids.js";
export * from "./gen/index.js";
