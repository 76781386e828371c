package dev.kuji;

import dev.kuji.v1.ErrorDetail;
import dev.kuji.v1.Reason;
import dev.kuji.v1.Violation;
import java.util.List;

/**
 * A call failed. Unless it is an {@link UnknownException} or an {@link UnreachableException}, nothing has happened, or
 * it was a read.
 */
public class KujiException extends RuntimeException {
  private final String code;
  private final transient ErrorDetail detail;

  KujiException(String code, String message, ErrorDetail detail, Throwable cause) {
    super(message, cause);
    this.code = code;
    this.detail = detail;
  }

  /** The code of the transport, such as "invalid_argument". */
  public String code() {
    return code;
  }

  /** What the server says. null: no server said anything. */
  public ErrorDetail detail() {
    return detail;
  }

  /** The server's reason, such as "REASON_INVALID", "" if it gave none; one of a newer server as a number. */
  public String reason() {
    if (detail == null || detail.getReasonValue() == 0) {
      return "";
    }
    return detail.getReason() == Reason.UNRECOGNIZED ? Integer.toString(detail.getReasonValue()) : detail.getReason().name();
  }

  /** What is wrong with which part of the request. */
  public List<Violation> violations() {
    return detail == null ? List.of() : detail.getViolationsList();
  }
}
