package dev.kuji;

import dev.kuji.Rules.Fault;
import dev.kuji.Rules.Tries;
import dev.kuji.v1.StreamDrawsRequest;
import dev.kuji.v1.StreamDrawsResponse;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A stream of draws that goes on after a break: it sends the batches that have no answer again, under their request
 * ids, and then the next ones. One thread sends while another receives.
 */
public final class DrawStream implements AutoCloseable {
  /** How many batches can be without an answer: send waits for a place. */
  public static final int MAX_AHEAD = 16;

  private final KujiClient client;
  private final Deque<StreamDrawsRequest> open = new ArrayDeque<>(); // without an answer, the oldest first
  private boolean last; // no more batches come
  private boolean closed;
  private Incoming<StreamDrawsRequest, StreamDrawsResponse> in;

  DrawStream(KujiClient client) {
    this.client = client;
  }

  /** Sends a batch. It returns as soon as there is a place for it. Draws without a request id get one. */
  public synchronized void send(StreamDrawsRequest batch) throws InterruptedException {
    while (open.size() >= MAX_AHEAD && !closed) {
      wait();
    }
    if (closed || last) {
      throw ended();
    }
    open.add(Ids.identify(batch));
    if (in != null) {
      in.call.sendMessage(open.getLast());
    }
    notifyAll();
  }

  /** Says that no more batches come. receive then returns null after the last answer. */
  public synchronized void closeSend() {
    if (!last && in != null) {
      in.call.halfClose();
    }
    last = true;
    notifyAll();
  }

  /**
   * Waits for the next answer, in the order of the batches; null after the last. It throws when the server refuses a
   * batch, no answer came for the client's timeout, or the stream was closed. If that leaves outcomes unknown, an {@link
   * UnknownException} has their ids.
   */
  public StreamDrawsResponse receive() throws InterruptedException {
    synchronized (this) {
      while (open.isEmpty() && !last && !closed) {
        wait();
      }
      if (open.isEmpty() && !closed) {
        return null;
      }
    }
    Tries tries = new Tries(client.servers, client.timeout, client.attempt);
    while (true) {
      long bound = tries.begin();
      Incoming.Came<StreamDrawsResponse> came = connection(tries).next(bound);
      if (came.answer() != null) {
        synchronized (this) {
          open.remove();
          notifyAll();
        }
        return came.answer();
      }
      failed(tries, came.end());
    }
  }

  /** Returns the connection. If there is none, it is made, and all that has no answer is sent. */
  private synchronized Incoming<StreamDrawsRequest, StreamDrawsResponse> connection(Tries tries) {
    if (in == null && !closed) {
      in = new Incoming<>(client, tries.at(), KujiClient.DRAWS, "the server ended the stream");
      open.forEach(in.call::sendMessage);
      if (last) {
        in.call.halfClose();
      }
    }
    if (closed) {
      tries.failed(Fault.of("canceled", "closed"));
      throw tries.over(ended(), ids(), true);
    }
    return in;
  }

  private synchronized void failed(Tries tries, Fault fault) throws InterruptedException {
    if (in != null) {
      in.call.cancel("it broke off", null);
      if (fault.silent()) {
        client.renew(in.at, in.channel);
      }
      in = null;
    }
    long pause = tries.failed(fault);
    if (closed || pause < 0) {
      KujiException why = closed ? ended() : fault.error();
      throw open.isEmpty() ? why : tries.over(why, ids(), true);
    }
    long until = System.nanoTime() + pause;
    for (long left = pause; left > 0 && !closed; left = until - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    client.channel(client.servers.at()).resetConnectBackoff();
  }

  private static KujiException ended() {
    return new KujiException("canceled", "the stream was closed", null, null);
  }

  private List<String> ids() {
    List<String> ids = new ArrayList<>();
    open.forEach(batch -> ids.addAll(batch.getRequestIdsList()));
    return ids;
  }

  /** Ends the stream at once. */
  @Override
  public synchronized void close() {
    closed = true;
    if (in != null) {
      in.call.cancel("closed", null);
      in.end(ended());
      in = null;
    }
    notifyAll();
  }
}
