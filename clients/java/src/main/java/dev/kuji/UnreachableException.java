package dev.kuji;

/** No server was reached: nothing was sent, so nothing has happened. */
public final class UnreachableException extends KujiException {
  UnreachableException(KujiException e) {
    super(e.code(), "no connection, so nothing was sent: " + e.getMessage(), null, e.getCause());
  }
}
