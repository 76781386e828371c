import { Code, ConnectError } from "@connectrpc/connect";
import { ReasonSchema, ErrorDetailSchema, type ErrorDetail, type Violation } from "./gen/kuji/v1/error_pb.js";

/** A call failed. Unless it is one of the other two kinds, nothing has happened, or it was a read. */
export class KujiError extends Error {
  override readonly name: string = "KujiError";
  /** What the server says. Absent: no server said anything. */
  readonly detail: ErrorDetail | undefined;

  /** code is that of the transport, such as "invalid_argument". */
  constructor(
    readonly code: string,
    message: string,
    options: { detail?: ErrorDetail | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.detail = options.detail;
  }

  /** The server's reason, such as "REASON_INVALID", "" if it gave none; one of a newer server as a number. */
  get reason(): string {
    const number = this.detail?.reason ?? 0;
    return number === 0 ? "" : (ReasonSchema.value[number]?.name ?? String(number));
  }

  /** What is wrong with which part of the request. */
  get violations(): Violation[] {
    return this.detail?.violations ?? [];
  }
}

/** Commands may have happened or not. Send them again under their ids, or ask getResult. */
export class UnknownError extends KujiError {
  override readonly name = "UnknownError";

  constructor(
    error: KujiError,
    readonly requestIds: string[],
  ) {
    super(error.code, `unknown outcome of ${requestIds.join(", ") || "a call without an id"}: ${error.code}: ${error.message}`, {
      detail: error.detail,
      cause: error.cause,
    });
  }
}

/** No server was reached: nothing was sent, so nothing has happened. A browser cannot tell that. */
export class UnreachableError extends KujiError {
  override readonly name = "UnreachableError";

  constructor(error: KujiError) {
    super(error.code, `no connection, so nothing was sent: ${error.message}`, { cause: error.cause });
  }
}

/** Reads what a transport has thrown. */
export function read(thrown: unknown): KujiError {
  const error = ConnectError.from(thrown);
  const code = (Code[error.code] ?? "Unknown").replace(/(?!^)[A-Z]/g, (c) => "_" + c).toLowerCase();
  const detail = error.findDetails(ErrorDetailSchema)[0];
  return new KujiError(code, error.rawMessage, { detail, cause: error });
}
