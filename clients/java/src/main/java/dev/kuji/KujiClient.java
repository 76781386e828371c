package dev.kuji;

import com.google.protobuf.Message;
import dev.kuji.Rules.Fault;
import dev.kuji.Rules.Servers;
import dev.kuji.Rules.Tries;
import dev.kuji.v1.StreamDrawsRequest;
import dev.kuji.v1.StreamDrawsResponse;
import dev.kuji.v1.StreamEventsRequest;
import dev.kuji.v1.StreamEventsResponse;
import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.ProtoUtils;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Calls the servers of one cluster, or a single one. A command goes out under one request id, and again under the same
 * id, until there is an answer. A command without an id gets one. Several threads may use it; close it in the end.
 *
 * <p>A call ends with a {@link KujiException}, an {@link UnknownException} or an {@link UnreachableException}. A status
 * other than OK is no exception.
 */
public final class KujiClient extends Calls implements AutoCloseable {
  /** The largest message that a client takes, in bytes. A catalog of the largest size fits. */
  public static final int MAX_ANSWER = 64 << 20;

  static final MethodDescriptor<StreamEventsRequest, StreamEventsResponse> EVENTS = method(
      MethodType.SERVER_STREAMING, "kuji.v1.RewardService/StreamEvents", StreamEventsRequest.getDefaultInstance(), StreamEventsResponse.getDefaultInstance());
  static final MethodDescriptor<StreamDrawsRequest, StreamDrawsResponse> DRAWS = method(
      MethodType.BIDI_STREAMING, "kuji.v1.RewardService/StreamDraws", StreamDrawsRequest.getDefaultInstance(), StreamDrawsResponse.getDefaultInstance());
  private static final Metadata.Key<String> AUTHORIZATION = Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  final Servers servers;
  final Duration timeout;
  final Duration attempt;
  final Duration silence;
  private final String key;
  private final List<URI> urls;
  private final AtomicReferenceArray<ManagedChannel> channels;
  private final Map<String, MethodDescriptor<Message, Message>> methods = new ConcurrentHashMap<>();
  private final ScheduledExecutorService pauses = Executors.newSingleThreadScheduledExecutor(run -> {
    Thread t = new Thread(run, "kuji-client");
    t.setDaemon(true);
    return t;
  });

  /** How to call. */
  public static final class Builder {
    private final List<URI> urls = new ArrayList<>();
    private String key = "";
    private Duration timeout = Duration.ofSeconds(10);
    private Duration attempt;
    private Duration silence = Duration.ofSeconds(25);

    private Builder(String... urls) {
      for (String text : urls) {
        URI url = URI.create(text);
        if (!("http".equals(url.getScheme()) || "https".equals(url.getScheme())) || url.getHost() == null) {
          throw new IllegalArgumentException("\"" + text + "\" is not a URL: expected http://HOST:PORT or https://HOST:PORT");
        }
        this.urls.add(url);
      }
      if (urls.length == 0) {
        throw new IllegalArgumentException("no URL: expected that of a server");
      }
    }

    /** An API key or a player's token. It goes with every call. */
    public Builder key(String key) {
      this.key = key;
      return this;
    }

    /**
     * How long a call is tried, repeats included; for a feed or a stream, how long it goes without an answer. 10 seconds
     * by default; null: until it is ended.
     */
    public Builder timeout(Duration timeout) {
      this.timeout = timeout;
      return this;
    }

    /** How long one attempt may take before the next, at another server if any. null, the default: as long as the call. */
    public Builder attempt(Duration attempt) {
      this.attempt = attempt;
      return this;
    }

    /** How long a feed may bring nothing before it is asked for again. Servers send a message every 10 seconds. */
    public Builder silence(Duration silence) {
      this.silence = silence;
      return this;
    }

    /** Returns the client. It connects on first use. */
    public KujiClient build() {
      return new KujiClient(this);
    }
  }

  /** Begins a client of a server, http://HOST:PORT or https://HOST:PORT, or of the nodes of one cluster. */
  public static Builder builder(String... urls) {
    return new Builder(urls);
  }

  private KujiClient(Builder b) {
    urls = List.copyOf(b.urls);
    servers = new Servers(urls.size());
    channels = new AtomicReferenceArray<>(urls.size());
    for (int i = 0; i < urls.size(); i++) {
      channels.set(i, open(i));
    }
    key = b.key;
    timeout = b.timeout;
    attempt = b.attempt;
    silence = b.silence;
  }

  private ManagedChannel open(int at) {
    URI url = urls.get(at);
    boolean secure = url.getScheme().equals("https");
    int port = url.getPort() >= 0 ? url.getPort() : secure ? 443 : 80;
    NettyChannelBuilder b = NettyChannelBuilder.forAddress(url.getHost(), port)
        .disableRetry() // the rule is ours
        .maxInboundMessageSize(MAX_ANSWER)
        .keepAliveTime(10, TimeUnit.SECONDS)
        .keepAliveTimeout(5, TimeUnit.SECONDS);
    return (secure ? b.useTransportSecurity() : b.usePlaintext()).build();
  }

  private static <Q extends Message, R extends Message> MethodDescriptor<Q, R> method(MethodType type, String path, Q request, R response) {
    return MethodDescriptor.<Q, R>newBuilder().setType(type).setFullMethodName(path)
        .setRequestMarshaller(ProtoUtils.marshaller(request)).setResponseMarshaller(ProtoUtils.marshaller(response)).build();
  }

  ManagedChannel channel(int at) {
    return channels.get(Math.floorMod(at, urls.size()));
  }

  /** Takes another connection: a call on a new stream of the old one would wait as long. */
  void renew(int at, ManagedChannel silent) {
    int i = Math.floorMod(at, urls.size());
    if (channels.get(i) == silent) {
      ManagedChannel fresh = open(i);
      if (!channels.compareAndSet(i, silent, fresh)) {
        fresh.shutdownNow();
      } else {
        silent.shutdown(); // calls that go on over it keep it
      }
    }
  }

  Metadata headers() {
    Metadata m = new Metadata();
    if (!key.isEmpty()) {
      m.put(AUTHORIZATION, "Bearer " + key);
    }
    return m;
  }

  @Override
  @SuppressWarnings("unchecked")
  <R extends Message> Call<R> call(String path, Message request, R response, boolean effects) {
    MethodDescriptor<Message, Message> method = methods.computeIfAbsent(path,
        p -> (MethodDescriptor<Message, Message>) (MethodDescriptor<?, ?>) method(MethodType.UNARY, p, request.getDefaultInstanceForType(), response));
    return (Call<R>) new Attempts(method, effects ? Ids.identify(request) : request, effects).begin();
  }

  /** Notes whether there was a connection for an attempt, so that it may have arrived. */
  private static final class Sent extends ClientStreamTracer.Factory {
    private volatile boolean connected;

    @Override
    public ClientStreamTracer newClientStreamTracer(ClientStreamTracer.StreamInfo info, Metadata headers) {
      return new ClientStreamTracer() {
        @Override
        public void streamCreated(Attributes transport, Metadata headers) {
          connected = true;
        }
      };
    }
  }

  /** A call with all its attempts. */
  private final class Attempts {
    private final MethodDescriptor<Message, Message> method;
    private final Message request;
    private final boolean effects;
    private final List<String> ids;
    private final Tries tries = new Tries(servers, timeout, attempt);
    private final AtomicReference<ClientCall<Message, Message>> now = new AtomicReference<>();
    private final Call<Message> answer;

    Attempts(MethodDescriptor<Message, Message> method, Message request, boolean effects) {
      this.method = method;
      this.request = request;
      this.effects = effects;
      this.ids = effects ? Ids.of(request) : List.of();
      this.answer = new Call<>(ids, this::stop);
    }

    Call<Message> begin() {
      attempt();
      return answer;
    }

    /** Ends it, and says what is known. */
    private KujiException stop() {
      KujiException e = tries.over(new KujiException("canceled", "the caller has ended the call", null, null), ids, effects);
      ClientCall<Message, Message> call = now.get();
      if (call != null) {
        call.cancel("the caller has ended the call", null);
      }
      return e;
    }

    private void attempt() {
      if (answer.isDone()) {
        return;
      }
      long bound = tries.begin();
      ManagedChannel channel = channel(tries.at());
      CallOptions options = bound == Tries.FOR_EVER ? CallOptions.DEFAULT : CallOptions.DEFAULT.withDeadlineAfter(bound, TimeUnit.NANOSECONDS);
      Sent sent = new Sent();
      ClientCall<Message, Message> call = channel.newCall(method, options.withStreamTracerFactory(sent));
      now.set(call);
      call.start(new ClientCall.Listener<>() {
        private Message message;

        @Override
        public void onMessage(Message m) {
          message = m;
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
          if (status.isOk() && message != null) {
            answer.complete(message);
          } else {
            Fault fault = status.isOk() ? Fault.of("internal", "an answer without a message") : Fault.of(status, trailers);
            failed(new Fault(fault.error(), sent.connected, fault.retryAfter()), channel);
          }
        }
      }, headers());
      call.sendMessage(request);
      call.halfClose();
      call.request(2); // a second one would be an error
    }

    private void failed(Fault fault, ManagedChannel channel) {
      if (fault.silent()) {
        renew(tries.at(), channel);
      }
      long pause = tries.failed(fault);
      if (pause < 0) {
        answer.completeExceptionally(tries.over(fault.error(), ids, effects));
        return;
      }
      try {
        pauses.schedule(() -> again(fault), pause, TimeUnit.NANOSECONDS);
      } catch (RejectedExecutionException e) { // the client was closed
        answer.completeExceptionally(tries.over(new KujiException("canceled", "the client was closed", null, e), ids, effects));
      }
    }

    private void again(Fault fault) {
      if (tries.left() <= 0) {
        answer.completeExceptionally(tries.over(fault.error(), ids, effects));
        return;
      }
      channel(servers.at()).resetConnectBackoff();
      attempt();
    }
  }

  /** Follows a feed: each event that request asks for once, in order, also after a break. Close it in the end. */
  public Feed events(StreamEventsRequest request) {
    return new Feed(this, request);
  }

  /** Opens a stream of draws that goes on after a break. Close it in the end. */
  public DrawStream draws() {
    return new DrawStream(this);
  }

  /** Ends the connections, and what goes on over them. */
  @Override
  public void close() {
    pauses.shutdownNow();
    for (int i = 0; i < channels.length(); i++) {
      channels.get(i).shutdownNow();
    }
  }
}
