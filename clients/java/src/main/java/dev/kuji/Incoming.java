package dev.kuji;

import dev.kuji.Rules.Fault;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A stream on one connection, whose answers one thread waits for. */
final class Incoming<Q, R> {
  /** What comes: an answer, or why no more come. */
  record Came<R>(R answer, Fault end) {}

  final int at;
  final ManagedChannel channel;
  final ClientCall<Q, R> call;
  private final BlockingQueue<Came<R>> queue = new LinkedBlockingQueue<>(); // bounded by what was asked for

  Incoming(KujiClient client, int at, MethodDescriptor<Q, R> method, String ended) {
    this.at = at;
    this.channel = client.channel(at);
    this.call = channel.newCall(method, CallOptions.DEFAULT);
    call.start(new ClientCall.Listener<>() {
      @Override
      public void onMessage(R answer) {
        queue.add(new Came<>(answer, null));
      }

      @Override
      public void onClose(Status status, Metadata trailers) {
        queue.add(new Came<>(null, status.isOk() ? Fault.of("unavailable", ended) : Fault.of(status, trailers)));
      }
    }, client.headers());
    call.request(1);
  }

  /** Waits for what comes next, for at most so many nanoseconds. */
  Came<R> next(long atMost) throws InterruptedException {
    Came<R> came = queue.poll(atMost, TimeUnit.NANOSECONDS);
    if (came == null) {
      return new Came<>(null, Fault.of("deadline_exceeded", "nothing came in time"));
    }
    if (came.answer() != null) {
      call.request(1);
    }
    return came;
  }

  /** Wakes who waits. */
  void end(KujiException why) {
    queue.add(new Came<>(null, new Fault(why, true, 0)));
  }
}
