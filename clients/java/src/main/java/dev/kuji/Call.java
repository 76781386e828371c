package dev.kuji;

import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;

/**
 * A call under way. It completes with the answer or with a {@link KujiException}. To cancel it ends it with an {@link
 * UnknownException} if it may have happened.
 */
public final class Call<R> extends CompletableFuture<R> {
  private final List<String> requestIds;
  private final Supplier<KujiException> stop;

  Call(List<String> requestIds, Supplier<KujiException> stop) {
    this.requestIds = requestIds;
    this.stop = stop;
  }

  /** The request ids that the call goes out under. Empty: it has none, or is a read. */
  public List<String> requestIds() {
    return requestIds;
  }

  /** Ends the call. What it completes with says what is known. */
  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    return completeExceptionally(stop.get());
  }

  /** Waits for the answer. A thread that is interrupted cancels the call. */
  public R await() {
    try {
      return get();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof KujiException k) {
        k.addSuppressed(new CancellationException("the call was made here"));
        throw k;
      }
      throw new IllegalStateException(e.getCause());
    } catch (InterruptedException e) {
      KujiException k = stop.get();
      completeExceptionally(k);
      Thread.currentThread().interrupt();
      throw k;
    }
  }
}
