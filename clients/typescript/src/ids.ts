import { isMessage, type DescMessage, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { BatchRequestSchema } from "./gen/kuji/v1/batch_pb.js";
import type { StreamDrawsRequest } from "./gen/kuji/v1/stream_pb.js";

const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/**
 * Returns a new request id, a ULID: its time and 80 random bits. Keep it to be able to ask later what came of the
 * command.
 */
export function newId(): string {
  let number = BigInt(Date.now());
  for (const byte of crypto.getRandomValues(new Uint8Array(10))) {
    number = (number << 8n) | BigInt(byte);
  }
  let id = "";
  for (let i = 0; i < 26; i++, number >>= 5n) {
    id = digits.charAt(Number(number & 31n)) + id;
  }
  return id;
}

/** Returns the request ids of a command or of a batch, and makes those that are missing. */
export function identify(schema: DescMessage, request: Message): string[] {
  if (isMessage(request, BatchRequestSchema)) {
    return request.commands.map((command) => (command.requestId ||= newId()));
  }
  const field = schema.field["requestId"];
  if (field === undefined || field.fieldKind !== "scalar") {
    return [];
  }
  const fields = reflect(schema, request);
  const id = String(fields.get(field)) || newId();
  fields.set(field, id);
  return [id];
}

/** Makes the request ids that are missing in a batch of a stream. */
export function identifyDraws(batch: StreamDrawsRequest): void {
  const draws = batch.playerIndexes.length || batch.players.length;
  const ids = batch.requestIds.length > 0 ? batch.requestIds : new Array<string>(draws).fill("");
  batch.requestIds = ids.map((id) => id || newId());
}
