package ucm.image;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * One page in headless Chromium, by the DevTools protocol over two pipes: messages are JSON, each ends
 * with a zero byte (chromedevtools.github.io/devtools-protocol). Keeps what the page complains about
 * and what it fetches.
 */
final class Chromium implements AutoCloseable {

  private static final Path PROGRAM = Path.of("/usr/bin/chromium");
  private static final JsonMapper MAPPER = JsonMapper.builder().build();

  private final Process process;
  private final InputStream answers;
  private final List<String> complaints = new ArrayList<>();
  private final List<String> fetched = new ArrayList<>();
  private final String session;
  private int lastCall;

  static boolean installed() {
    return Files.isExecutable(PROGRAM);
  }

  Chromium(Path profile) throws IOException {
    // Descriptor 3 is where Chromium reads calls, 4 where it writes answers.
    process =
        new ProcessBuilder(
                "/bin/sh",
                "-c",
                "exec \"$@\" 3<&0 4>&1 1>&2",
                "sh",
                PROGRAM.toString(),
                "--headless=new",
                "--remote-debugging-pipe",
                // The user of a build machine may be root; the page is our own file.
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                "--window-size=1200,1000",
                "--user-data-dir=" + profile)
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    answers = new BufferedInputStream(process.getInputStream());
    JsonNode target = call("", "Target.createTarget", Map.of("url", "about:blank"));
    session =
        call(
                "",
                "Target.attachToTarget",
                Map.of("targetId", target.get("targetId").asString(), "flatten", true))
            .get("sessionId")
            .asString();
    for (String domain : List.of("Page", "Runtime", "Log", "Network")) {
      call(domain + ".enable", Map.of());
    }
  }

  /** Opens a page, with the theme of a system that is dark or light, and waits until it is loaded. */
  void open(Path file, boolean dark) throws IOException {
    theme(dark);
    call("Page.navigate", Map.of("url", file.toUri().toString()));
    while (!next().path("method").asString("").equals("Page.loadEventFired")) {}
  }

  /** Changes the system's theme; the page hears of it a little later. */
  void theme(boolean dark) throws IOException {
    Map<String, Object> feature =
        Map.of("name", "prefers-color-scheme", "value", dark ? "dark" : "light");
    call("Emulation.setEmulatedMedia", Map.of("features", List.of(feature)));
  }

  /** The value of a JavaScript expression; a promise is waited for. */
  JsonNode evaluate(String expression) throws IOException {
    JsonNode result =
        call(
            "Runtime.evaluate",
            Map.of("expression", expression, "returnByValue", true, "awaitPromise", true));
    if (result.has("exceptionDetails")) {
      throw new AssertionError(expression + ": " + result.get("exceptionDetails"));
    }
    return result.get("result").path("value");
  }

  void moveMouse(double x, double y) throws IOException {
    call("Input.dispatchMouseEvent", Map.of("type", "mouseMoved", "x", x, "y", y));
  }

  /** Exceptions, console messages and log entries of the page so far. */
  List<String> complaints() {
    return List.copyOf(complaints);
  }

  /** Addresses of what was asked for so far. */
  List<String> fetched() {
    return List.copyOf(fetched);
  }

  private JsonNode call(String method, Map<String, Object> parameters) throws IOException {
    return call(session, method, parameters);
  }

  private JsonNode call(String where, String method, Map<String, Object> parameters)
      throws IOException {
    int id = ++lastCall;
    Map<String, Object> message = new LinkedHashMap<>();
    message.put("id", id);
    message.put("method", method);
    message.put("params", parameters);
    if (!where.isEmpty()) {
      message.put("sessionId", where);
    }
    process.getOutputStream().write(MAPPER.writeValueAsBytes(message));
    process.getOutputStream().write(0);
    process.getOutputStream().flush();
    while (true) {
      JsonNode answer = next();
      if (answer.path("id").asInt(0) == id) {
        if (answer.has("error")) {
          throw new AssertionError(method + ": " + answer.get("error"));
        }
        return answer.get("result");
      }
    }
  }

  private JsonNode next() throws IOException {
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    for (int b = answers.read(); b != 0; b = answers.read()) {
      if (b < 0) {
        throw new IOException("Chromium ended: " + text.toString(StandardCharsets.UTF_8));
      }
      text.write(b);
    }
    JsonNode message = MAPPER.readTree(text.toByteArray());
    switch (message.path("method").asString("")) {
      case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded" ->
          complaints.add(message.get("params").toString());
      case "Network.requestWillBeSent" ->
          fetched.add(message.get("params").get("request").get("url").asString());
      default -> {}
    }
    return message;
  }

  @Override
  public void close() {
    // Its helpers write into the profile, too, and end after it.
    List<ProcessHandle> all = new ArrayList<>(process.descendants().toList());
    all.add(process.toHandle());
    try {
      // It ends when the other end of the pipe is closed.
      process.getOutputStream().close();
      for (ProcessHandle one : all) {
        one.onExit().get(30, TimeUnit.SECONDS);
      }
    } catch (IOException | ExecutionException | TimeoutException e) {
      kill(all);
    } catch (InterruptedException e) {
      kill(all);
      Thread.currentThread().interrupt();
    }
  }

  /** After this no process writes into the profile any more. */
  private static void kill(List<ProcessHandle> all) {
    all.forEach(ProcessHandle::destroyForcibly);
    CompletableFuture<?>[] ends =
        all.stream().map(ProcessHandle::onExit).toArray(CompletableFuture<?>[]::new);
    // Helpers that outlive their parent stay as zombies where the first process takes no care of
    // them.
    Void _ = CompletableFuture.allOf(ends).completeOnTimeout(null, 30, TimeUnit.SECONDS).join();
  }
}
