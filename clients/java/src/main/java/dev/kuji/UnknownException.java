package dev.kuji;

import java.util.List;

/** Commands may have happened or not. Send them again under their ids, or ask getResult. */
public final class UnknownException extends KujiException {
  private final List<String> requestIds;

  UnknownException(KujiException e, List<String> requestIds) {
    super(e.code(), "unknown outcome of " + (requestIds.isEmpty() ? "a call without an id" : String.join(", ", requestIds)) + ": " + e.code() + ": " + e.getMessage(), e.detail(), e.getCause());
    this.requestIds = List.copyOf(requestIds);
  }

  /** The ids of all commands in doubt. Empty: the call has none. */
  public List<String> requestIds() {
    return requestIds;
  }
}
