package dev.kuji;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.kuji.v1.ApplyCatalogRequest;
import dev.kuji.v1.BatchRequest;
import dev.kuji.v1.Command;
import dev.kuji.v1.DrawRequest;
import dev.kuji.v1.ErrorDetail;
import dev.kuji.v1.Reason;
import dev.kuji.v1.StreamDrawsRequest;
import io.grpc.Metadata;
import io.grpc.Status;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What needs no server: the conformance suite has the rest. */
class RulesTest {
  private static final Set<String> BROKEN = Set.of("unavailable", "deadline_exceeded", "canceled", "unknown", "internal", "aborted", "data_loss");

  private static KujiException error(String code, int reason) {
    return new KujiException(code, "", ErrorDetail.newBuilder().setReasonValue(reason).build(), null);
  }

  @Test
  void eachReason() {
    Set<String> again = Set.of("OVERLOADED", "HISTORY", "CLOSED", "CANCELED", "UNKNOWN_OUTCOME");
    for (Reason reason : Reason.values()) {
      if (reason == Reason.UNRECOGNIZED) {
        continue;
      }
      String name = reason.name().substring("REASON_".length());
      for (int servers = 1; servers <= 2; servers++) {
        Rules.Verdict v = Rules.judge(error("failed_precondition", reason.getNumber()), servers);
        assertEquals(again.contains(name) || name.equals("FAILED") && servers > 1, v.again(), name);
        assertEquals(Set.of("UNKNOWN_OUTCOME", "INTERNAL").contains(name), v.maybe(), name);
      }
    }
  }

  @Test
  void eachCodeWithoutAReason() {
    for (Status.Code code : Status.Code.values()) {
      String name = code.name().toLowerCase(Locale.ROOT).replace("cancelled", "canceled");
      Rules.Verdict v = Rules.judge(new KujiException(name, "", null, null), 1);
      assertEquals(BROKEN.contains(name), v.again(), name);
      assertEquals(BROKEN.contains(name), v.maybe(), name);
    }
    assertEquals("9999", error("unavailable", 9999).reason());
    assertTrue(Rules.judge(error("unavailable", 9999), 1).again());
    assertFalse(Rules.judge(error("not_found", 9999), 1).again());
  }

  @Test
  void retryAfter() {
    Instant now = Instant.parse("2026-11-29T12:00:00Z");
    assertEquals(Duration.ofSeconds(3).toNanos(), Rules.retryAfter("3", now));
    assertEquals(Duration.ofMinutes(1).toNanos(), Rules.retryAfter("Sun, 29 Nov 2026 12:01:00 GMT", now));
    for (String nothing : new String[] {null, "", "soon", "-1", "Sun, 29 Nov 2026 11:00:00 GMT"}) {
      assertEquals(0, Rules.retryAfter(nothing, now), nothing);
    }
    Metadata trailers = new Metadata();
    trailers.put(Metadata.Key.of("retry-after", Metadata.ASCII_STRING_MARSHALLER), "2");
    assertEquals(Duration.ofSeconds(2).toNanos(), Rules.Fault.of(Status.UNAVAILABLE, trailers).retryAfter());
  }

  @Test
  void ids() {
    Set<String> ids = new HashSet<>();
    for (int i = 0; i < 1000; i++) {
      String id = Ids.newId();
      assertTrue(id.matches("[0-9A-HJKMNP-TV-Z]{26}"), id);
      ids.add(id);
    }
    assertEquals(1000, ids.size());
    long ms = 0;
    for (char c : Ids.newId().substring(0, 10).toCharArray()) {
      ms = ms * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(c);
    }
    assertTrue(Math.abs(ms - System.currentTimeMillis()) < 60_000, Long.toString(ms));
  }

  @Test
  void missingIdsAreMadeAndGivenOnesStay() {
    DrawRequest draw = (DrawRequest) Ids.identify(DrawRequest.newBuilder().setPlayer("ann").build());
    assertEquals(26, draw.getRequestId().length());
    assertEquals(draw, Ids.identify(draw));
    BatchRequest batch = (BatchRequest) Ids.identify(BatchRequest.newBuilder().addCommands(Command.getDefaultInstance()).addCommands(Command.newBuilder().setRequestId("mine")).build());
    List<String> ids = Ids.of(batch);
    assertEquals("mine", ids.get(1));
    assertEquals(26, ids.get(0).length());
    assertEquals(List.of(), Ids.of(Ids.identify(ApplyCatalogRequest.getDefaultInstance())));
    StreamDrawsRequest stream = Ids.identify(StreamDrawsRequest.newBuilder().addPlayers("ann").addPlayerIndexes(0).addPlayerIndexes(0).addRequestIds("mine").addRequestIds("").build());
    assertEquals("mine", stream.getRequestIds(0));
    assertEquals(26, stream.getRequestIds(1).length());
  }

  @Test
  void badUrls() {
    for (String bad : new String[] {"", "localhost:7700", "ftp://x", "http://"}) {
      assertThrows(IllegalArgumentException.class, () -> KujiClient.builder(bad), bad);
    }
    assertThrows(IllegalArgumentException.class, () -> KujiClient.builder());
  }

  @Test
  void nobodyThere() throws IOException {
    String url;
    try (ServerSocket s = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      url = "http://127.0.0.1:" + s.getLocalPort();
    }
    try (KujiClient client = KujiClient.builder(url).timeout(Duration.ofMillis(300)).build()) {
      assertThrows(UnreachableException.class, () -> client.draw(DrawRequest.newBuilder().setPlayer("ann").setPool("p").build()));
    }
    try (KujiClient client = KujiClient.builder(url).timeout(null).build()) {
      Thread.currentThread().interrupt();
      KujiException e = assertThrows(KujiException.class, () -> client.draw(DrawRequest.newBuilder().setPlayer("ann").setPool("p").build()));
      assertEquals("canceled", e.code());
      assertTrue(Thread.interrupted());
    }
  }
}
