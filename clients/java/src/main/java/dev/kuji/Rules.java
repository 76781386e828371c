package dev.kuji;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.kuji.v1.ErrorDetail;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/** The rule: what is sent again, when, and where. See docs/clients.md of the project, "What is sent again". */
final class Rules {
  private static final long FIRST_PAUSE = Duration.ofMillis(50).toNanos();
  private static final long LAST_PAUSE = Duration.ofSeconds(1).toNanos();
  private static final Metadata.Key<String> RETRY_AFTER = Metadata.Key.of("retry-after", Metadata.ASCII_STRING_MARSHALLER);

  private Rules() {}

  /** How an attempt failed. sent: there was a connection, as far as one can tell. retryAfter is in nanoseconds. */
  record Fault(KujiException error, boolean sent, long retryAfter) {
    static Fault of(Status status, Metadata trailers) {
      ErrorDetail detail = null;
      com.google.rpc.Status said = StatusProto.fromStatusAndTrailers(status, trailers);
      for (com.google.protobuf.Any any : said.getDetailsList()) {
        try {
          if (any.is(ErrorDetail.class)) {
            detail = any.unpack(ErrorDetail.class);
          }
        } catch (InvalidProtocolBufferException e) {
          detail = null; // nobody that we know has said that
        }
      }
      String code = status.getCode().name().toLowerCase(Locale.ROOT).replace("cancelled", "canceled");
      String message = status.getDescription() == null ? code : status.getDescription();
      return new Fault(new KujiException(code, message, detail, status.asException()), !notConnected(status.getCause()), Rules.retryAfter(trailers.get(RETRY_AFTER), Instant.now()));
    }

    static Fault of(String code, String message) {
      return new Fault(new KujiException(code, message, null, null), true, 0);
    }

    /** Nothing came in time: the other end of the connection may be gone without a word. */
    boolean silent() {
      return error.code().equals("deadline_exceeded") && error.detail() == null;
    }
  }

  private static boolean notConnected(Throwable cause) {
    for (Throwable e = cause; e != null; e = e.getCause()) {
      if (e instanceof ConnectException || e instanceof UnknownHostException || e instanceof UnresolvedAddressException) {
        return true;
      }
    }
    return false;
  }

  /** Reads a header Retry-After: seconds, or a date. Returns nanoseconds. */
  static long retryAfter(String header, Instant now) {
    if (header == null) {
      return 0;
    }
    if (header.matches("\\d{1,9}")) {
      return Duration.ofSeconds(Long.parseLong(header)).toNanos();
    }
    try {
      return Math.max(0, Duration.between(now, ZonedDateTime.parse(header, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant()).toNanos());
    } catch (DateTimeParseException | ArithmeticException e) {
      return 0;
    }
  }

  /** What follows from a failed attempt. maybe: if it was sent, it may have happened. */
  record Verdict(boolean again, boolean maybe, boolean elsewhere) {}

  /** The table of docs/clients.md. */
  static Verdict judge(KujiException e, int servers) {
    ErrorDetail detail = e.detail();
    if (detail != null) {
      switch (detail.getReason()) {
        case REASON_OVERLOADED, REASON_HISTORY:
          return new Verdict(true, false, false);
        case REASON_CLOSED, REASON_CANCELED:
          return new Verdict(true, false, true);
        case REASON_UNKNOWN_OUTCOME:
          return new Verdict(true, true, true);
        case REASON_FAILED:
          return new Verdict(servers > 1, false, true);
        case REASON_INTERNAL:
          return new Verdict(false, true, false);
        case REASON_UNSPECIFIED, UNRECOGNIZED:
          break;
        default:
          return new Verdict(false, false, false);
      }
    }
    return switch (e.code()) {
      case "unavailable", "deadline_exceeded" -> new Verdict(true, true, true);
      case "canceled", "unknown", "internal", "aborted", "data_loss" -> new Verdict(detail == null, true, true);
      default -> new Verdict(false, false, false);
    };
  }

  /** The servers of a client, by number, and the one in use. */
  static final class Servers {
    final int count;
    private final AtomicInteger at = new AtomicInteger(); // only grows; calls that fail together go on by one

    Servers(int count) {
      this.count = count;
    }

    int at() {
      return at.get();
    }

    void leave(int from) {
      at.compareAndSet(from, from + 1);
    }
  }

  /** The attempts at one thing: a call, or what a stream brings next. Times are in nanoseconds. */
  static final class Tries {
    static final long FOR_EVER = Long.MAX_VALUE;

    private final Servers servers;
    private final long attempt;
    private final long began = System.nanoTime();
    private final long timeout;
    private int at;
    private long pause;
    private boolean maybe;
    private boolean reached;
    private volatile boolean underWay;

    Tries(Servers servers, Duration timeout, Duration attempt) {
      this.servers = servers;
      this.timeout = timeout == null ? FOR_EVER : timeout.toNanos();
      this.attempt = attempt == null ? FOR_EVER : attempt.toNanos();
      this.at = servers.at();
    }

    long left() {
      return timeout == FOR_EVER ? FOR_EVER : timeout - (System.nanoTime() - began);
    }

    int at() {
      return at;
    }

    /** Begins an attempt. Returns how long it may take. */
    synchronized long begin() {
      at = servers.at();
      underWay = true;
      return Math.max(1, Math.min(left(), attempt));
    }

    /** Notes a failed attempt. Returns the pause before the next; -1: it is the last. */
    synchronized long failed(Fault fault) {
      underWay = false;
      Verdict then = judge(fault.error(), servers.count);
      maybe |= fault.sent() && then.maybe();
      reached |= fault.sent();
      long left = left();
      if (!then.again() || left <= 0) {
        return -1;
      }
      if (then.elsewhere()) {
        servers.leave(at);
      }
      if (left < fault.retryAfter()) {
        return -1; // the server wants nothing before the time is up
      }
      pause = Math.min(Math.max(2 * pause, FIRST_PAUSE), LAST_PAUSE);
      return Math.min(left, Math.max(fault.retryAfter(), pause / 2 + ThreadLocalRandom.current().nextLong(pause / 2)));
    }

    /** Returns the exception to end with. */
    synchronized KujiException over(KujiException e, List<String> ids, boolean effects) {
      if ((maybe || underWay) && effects && !e.reason().equals("REASON_ID_REUSED")) {
        return new UnknownException(e, ids); // a refusal of the id would have settled it
      }
      return reached || underWay || e.detail() != null || e.code().equals("canceled") ? e : new UnreachableException(e);
    }
  }
}
