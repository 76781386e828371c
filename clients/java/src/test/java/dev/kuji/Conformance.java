package dev.kuji;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import dev.kuji.v1.StreamDrawsRequest;
import dev.kuji.v1.StreamDrawsResponse;
import dev.kuji.v1.StreamEventsRequest;
import dev.kuji.v1.Violation;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The client as the conformance suite drives it: see clients/conformance/doc.go. */
public final class Conformance {
  private final Map<String, KujiClient> clients = new ConcurrentHashMap<>();
  private final Map<Integer, Runnable> cancels = new ConcurrentHashMap<>();
  private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  private final Gson gson = new Gson();

  public static void main(String[] args) throws Exception {
    Conformance program = new Conformance();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String text = in.readLine(); text != null; text = in.readLine()) {
      JsonObject task = JsonParser.parseString(text).getAsJsonObject();
      String op = task.get("op").getAsString();
      if (op.equals("open") || op.equals("cancel")) {
        program.run(task);
      } else {
        Thread t = new Thread(() -> program.run(task));
        t.setDaemon(true);
        t.start();
      }
    }
    program.clients.values().forEach(KujiClient::close);
  }

  private void write(int n, String name, JsonElement value) {
    JsonObject line = new JsonObject();
    line.addProperty("n", n);
    line.add(name, value);
    synchronized (out) {
      out.println(gson.toJson(line));
    }
  }

  private void run(JsonObject task) {
    int n = task.get("n").getAsInt();
    try {
      write(n, "result", carryOut(n, task));
    } catch (KujiException e) {
      write(n, "error", describe(e));
    } catch (Exception e) {
      JsonObject error = new JsonObject();
      error.addProperty("kind", "server");
      error.addProperty("code", "program");
      error.addProperty("message", e.toString());
      write(n, "error", error);
    }
  }

  private static Duration ms(JsonObject task, String name) {
    long ms = task.get(name).getAsLong();
    return ms > 0 ? Duration.ofMillis(ms) : null;
  }

  private JsonElement carryOut(int n, JsonObject task) throws Exception {
    KujiClient client = task.has("client") ? clients.get(task.get("client").getAsString()) : null;
    switch (task.get("op").getAsString()) {
      case "open" -> {
        List<String> urls = new ArrayList<>();
        task.getAsJsonArray("urls").forEach(u -> urls.add(u.getAsString()));
        KujiClient.Builder b = KujiClient.builder(urls.toArray(String[]::new)).key(task.get("key").getAsString()).timeout(ms(task, "timeoutMs")).attempt(ms(task, "attemptMs"));
        if (ms(task, "silenceMs") != null) {
          b.silence(ms(task, "silenceMs"));
        }
        clients.put(task.get("client").getAsString(), b.build());
      }
      case "id" -> {
        JsonObject id = new JsonObject();
        id.addProperty("id", Ids.newId());
        return id;
      }
      case "cancel" -> cancels.get(task.get("of").getAsInt()).run();
      case "call" -> {
        String name = task.get("method").getAsString();
        Class<?> type = Class.forName("dev.kuji.v1." + name + "Request");
        Message.Builder request = ((Message) type.getMethod("getDefaultInstance").invoke(null)).newBuilderForType();
        JsonFormat.parser().merge(gson.toJson(task.get("request")), request);
        Call<?> call = (Call<?>) KujiClient.class.getMethod(name.substring(0, 1).toLowerCase() + name.substring(1) + "Async", type).invoke(client, request.build());
        cancels.put(n, () -> call.cancel(true));
        return json((Message) call.await());
      }
      case "draws" -> draws(n, client, task);
      case "events" -> events(n, client, task);
      default -> throw new IllegalArgumentException(task.toString());
    }
    return new JsonObject();
  }

  private void draws(int n, KujiClient client, JsonObject task) throws Exception {
    try (DrawStream stream = client.draws()) {
      cancels.put(n, stream::close);
      Thread sender = new Thread(() -> {
        try {
          for (JsonElement each : task.getAsJsonArray("batches")) {
            StreamDrawsRequest.Builder batch = StreamDrawsRequest.newBuilder();
            JsonFormat.parser().merge(gson.toJson(each), batch);
            stream.send(batch.build());
          }
          stream.closeSend();
        } catch (KujiException | InterruptedException e) {
          stream.close(); // receive says why
        } catch (java.io.IOException e) {
          throw new IllegalStateException(e);
        }
      });
      sender.setDaemon(true);
      sender.start();
      for (StreamDrawsResponse answer = stream.receive(); answer != null; answer = stream.receive()) {
        write(n, "item", json(answer));
      }
    }
  }

  private void events(int n, KujiClient client, JsonObject task) throws Exception {
    StreamEventsRequest.Builder request = StreamEventsRequest.newBuilder();
    JsonFormat.parser().merge(gson.toJson(task.get("request")), request);
    try (Feed feed = client.events(request.build())) {
      cancels.put(n, feed::close);
      for (int came = 0; came < task.get("events").getAsInt(); ) {
        var message = feed.next();
        came += message.getEventsCount();
        write(n, "item", json(message));
      }
    }
  }

  private static JsonElement json(Message m) throws Exception {
    return JsonParser.parseString(JsonFormat.printer().print(m));
  }

  private JsonElement describe(KujiException e) {
    return gson.toJsonTree(Map.of(
        "kind", e instanceof UnknownException ? "unknown" : e instanceof UnreachableException ? "unreachable" : "server",
        "code", e.code(), "reason", e.reason(), "message", String.valueOf(e.getMessage()),
        "requestIds", e instanceof UnknownException u ? u.requestIds() : List.of(),
        "fields", e.violations().stream().map(Violation::getField).toList()));
  }
}
