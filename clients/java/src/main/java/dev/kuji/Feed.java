package dev.kuji;

import dev.kuji.Rules.Fault;
import dev.kuji.Rules.Tries;
import dev.kuji.v1.Event;
import dev.kuji.v1.StreamEventsRequest;
import dev.kuji.v1.StreamEventsResponse;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * A feed that goes on after a break. One thread reads it; any may close it.
 *
 * <p>A message without events says how far the feed has come: its next is where to go on in a later run. It has no end:
 * next throws when the server refuses the feed, cannot be reached for the client's timeout, or it was closed.
 */
public final class Feed implements Iterator<StreamEventsResponse>, Iterable<StreamEventsResponse>, AutoCloseable {
  private final KujiClient client;
  private final CountDownLatch closed = new CountDownLatch(1);
  private StreamEventsRequest request;
  private long lastPosition;
  private int lastIndex = -1;
  private volatile Incoming<StreamEventsRequest, StreamEventsResponse> in;

  Feed(KujiClient client, StreamEventsRequest request) {
    this.client = client;
    this.request = request;
  }

  @Override
  public Iterator<StreamEventsResponse> iterator() {
    return this;
  }

  @Override
  public boolean hasNext() {
    return true;
  }

  /** Waits for the next message. */
  @Override
  public StreamEventsResponse next() {
    Tries tries = new Tries(client.servers, client.timeout, null);
    try {
      while (true) {
        if (in == null) {
          tries.begin();
          in = new Incoming<>(client, tries.at(), KujiClient.EVENTS, "the server ended the feed");
          in.call.sendMessage(request);
          in.call.halfClose();
        }
        if (closed.getCount() == 0) {
          throw ended();
        }
        Incoming.Came<StreamEventsResponse> came = in.next(client.silence.toNanos());
        if (came.answer() != null) {
          return took(came.answer());
        }
        failed(tries, came.end());
        tries = tries.left() > 0 ? tries : new Tries(client.servers, client.timeout, null);
      }
    } catch (InterruptedException e) {
      close();
      Thread.currentThread().interrupt();
      throw ended();
    }
  }

  private static KujiException ended() {
    return new KujiException("canceled", "the feed was closed", null, null);
  }

  private void failed(Tries tries, Fault fault) throws InterruptedException {
    in.call.cancel("it broke off", null);
    if (fault.silent()) {
      client.renew(in.at, in.channel);
    }
    in = null;
    if (closed.getCount() == 0) {
      throw ended();
    }
    long pause = tries.failed(fault);
    if (pause < 0) {
      throw tries.over(fault.error(), List.of(), false);
    }
    if (closed.await(pause, TimeUnit.NANOSECONDS)) {
      throw ended();
    }
    client.channel(client.servers.at()).resetConnectBackoff();
  }

  /** Drops the events that the reader has, and notes where to go on. */
  private StreamEventsResponse took(StreamEventsResponse message) {
    List<Event> fresh = message.getEventsList().stream().filter(e -> {
      int order = Long.compareUnsigned(e.getPosition(), lastPosition);
      return order > 0 || order == 0 && e.getIndex() > lastIndex;
    }).toList();
    if (!fresh.isEmpty()) {
      lastPosition = fresh.get(fresh.size() - 1).getPosition();
      lastIndex = fresh.get(fresh.size() - 1).getIndex();
    }
    request = request.toBuilder().setFrom(message.getNext()).build();
    return fresh.size() == message.getEventsCount() ? message : message.toBuilder().clearEvents().addAllEvents(fresh).build();
  }

  @Override
  public void close() {
    closed.countDown();
    Incoming<StreamEventsRequest, StreamEventsResponse> now = in;
    if (now != null) {
      now.call.cancel("closed", null);
      now.end(ended());
    }
  }
}
