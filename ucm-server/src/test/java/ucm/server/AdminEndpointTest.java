package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.server.TestEngine.BLOCK;
import static ucm.server.TestEngine.BYTES;

import com.networknt.schema.InputFormat;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/** Operators over HTTP; each answer is what docs/openapi.json says of its path, method and status. */
final class AdminEndpointTest extends WithDaemon {

  private static final JsonNode API =
      JsonMapper.shared().readTree(Path.of("../docs/openapi.json").toFile());

  private AdminEndpoint endpoint;
  private String token;
  private final Set<String> answered = new HashSet<>();

  AdminEndpointTest() {
    super(32 * BYTES);
  }

  @BeforeEach
  void listens() throws Exception {
    Path file = daemon.socket.resolveSibling("admin.token");
    endpoint = AdminEndpoint.start(daemon.server, 0, file);
    token = Files.readString(file).strip();
    assertThat(Files.getPosixFilePermissions(file))
        .isEqualTo(PosixFilePermissions.fromString("rw-------"));
  }

  @AfterEach
  void listensNoMore() {
    endpoint.close();
  }

  private JsonNode ask(int status, String method, String path, @Nullable String body)
      throws Exception {
    return ask(status, method, path, body, "Bearer " + token);
  }

  private JsonNode ask(
      int status, String method, String path, @Nullable String body, @Nullable String authorization)
      throws Exception {
    HttpURLConnection request =
        (HttpURLConnection) URI.create(endpoint.url() + path).toURL().openConnection();
    request.setRequestMethod(method);
    if (authorization != null) {
      request.setRequestProperty("Authorization", authorization);
    }
    if (body != null) {
      request.setDoOutput(true);
      request.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
    }
    assertThat(request.getResponseCode()).isEqualTo(status);
    assertThat(request.getContentType()).isEqualTo("application/json");
    String answer;
    try (InputStream from = status < 400 ? request.getInputStream() : request.getErrorStream()) {
      answer = new String(from.readAllBytes(), StandardCharsets.UTF_8);
    }
    JsonNode operation = API.path("paths").path("/" + path).path(method.toLowerCase(Locale.ROOT));
    if (operation.isObject()) {
      String code = String.valueOf(status);
      assertThat(operation.path("responses").path(code).isObject())
          .as("%s %s says nothing of %s", method, path, code)
          .isTrue();
      check(operation.path("responses").path(code), answer);
      if (body != null && status < 300) {
        check(operation.path("requestBody"), body);
      }
      answered.add(method + " " + path + " " + code);
    }
    return JsonMapper.shared().readTree(answer);
  }

  /** Compares a text with the schema of a body. */
  private static void check(JsonNode described, String text) {
    JsonNode schema = described.path("content").path("application/json").path("schema");
    assertThat(schema.isObject()).isTrue();
    ObjectNode whole = schema.deepCopy().asObject();
    whole.set("components", API.path("components"));
    assertThat(
            SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12)
                .getSchema(whole.toString(), InputFormat.JSON)
                .validate(text, InputFormat.JSON))
        .isEmpty();
  }

  @Test
  void everyAnswerIsAsTheFileSaysAndTheFileHasEveryAnswer() throws Exception {
    int[] tokens = IntStream.range(1000, 1000 + 5 * BLOCK + 3).toArray();
    try (TestEngine engine = new TestEngine(daemon, "e", 1, false)) {
      engine.compute(1, tokens);
      assertThat(ask(200, "GET", "status", null).path("engines")).hasSize(1);
      reload(engine, tokens);
      assertThat(ask(200, "POST", "drain", null).path("complete").asBoolean()).isTrue();
      assertThat(ask(200, "GET", "status", null).path("drained").asBoolean()).isTrue();
      assertThat(ask(200, "POST", "drain", "{\"drained\": false}").path("drained").asBoolean())
          .isFalse();
      ask(400, "POST", "drain", "{\"timeout_seconds\": -1}");
      JsonNode cleared = ask(200, "POST", "clear", null);
      assertThat(cleared.path("removed_blocks").asInt()).isEqualTo(5);
      assertThat(engine.scheduler.lookup(9, 0, tokens).tokens()).isZero();
      assertThat(ask(200, "GET", "log-level", null).path("log_level").asString()).isEqualTo("info");
      JsonNode level = ask(200, "PUT", "log-level", "{\"log_level\": \"debug\"}");
      assertThat(level.path("before").asString()).isEqualTo("info");
      assertThat(level.path("log_level").asString()).isEqualTo("debug");
      ask(400, "PUT", "log-level", "{\"log_level\": \"loud\"}");
      ask(400, "PUT", "log-level", "[1");
      for (Map.Entry<String, JsonNode> path : API.path("paths").properties()) {
        for (String method : path.getValue().propertyNames()) {
          String upper = method.toUpperCase(Locale.ROOT);
          String name = path.getKey().substring(1);
          ask(401, upper, name, null, null);
          ask(401, upper, name, null, "Bearer " + token + "x");
          ask(401, upper, name, null, "Basic " + token);
        }
        ask(405, "DELETE", path.getKey().substring(1), null);
      }
    }
    ask(404, "GET", "nothing", null);
    ask(202, "POST", "stop", null);
    daemon.close();
    assertThat(daemon.socket).doesNotExist();
    for (Map.Entry<String, JsonNode> path : API.path("paths").properties()) {
      for (Map.Entry<String, JsonNode> operation : path.getValue().properties()) {
        for (String code : operation.getValue().path("responses").propertyNames()) {
          String one =
              operation.getKey().toUpperCase(Locale.ROOT)
                  + path.getKey().replace("/", " ")
                  + " "
                  + code;
          if (!code.equals("405")) {
            assertThat(answered).contains(one);
          }
        }
      }
    }
  }

  private void reload(TestEngine engine, int[] tokens) throws Exception {
    String yaml =
        daemon.yaml.replace("store_pipeline", "posix_lookup_concurrency: 3\n      store_pipeline");
    ObjectNode body = JsonMapper.shared().createObjectNode();
    body.put("configuration", "ucm.yaml").put("yaml", "hit_ratio: 0.5\n" + yaml);
    JsonNode answer = ask(200, "POST", "reload", body.toString());
    JsonNode one = answer.path("engines").path(0);
    assertThat(one.path("taken").path("hit_ratio").path("to").asDouble()).isEqualTo(0.5);
    assertThat(one.path("not_taken").propertyNames()).containsExactly("posix_lookup_concurrency");
    assertThat(engine.scheduler.lookup(2, 0, tokens).tokens()).isEqualTo(2 * BLOCK);
    engine.scheduler.forget(2);
    body.put("yaml", "hit_ratio: 7\n" + yaml);
    assertThat(ask(400, "POST", "reload", body.toString()).path("error").asString())
        .contains("hit_ratio");
    ask(400, "POST", "reload", "{}");
  }

  @Test
  void itListensOnTheLoopbackAddressAlone() throws Exception {
    int port = URI.create(endpoint.url()).getPort();
    try (Socket other = new Socket()) {
      assertThatThrownBy(() -> other.connect(new InetSocketAddress("127.0.0.2", port)))
          .isInstanceOf(IOException.class);
    }
  }

  @Test
  void aTokenThatOthersMayReadOrThatIsNoneIsRefused() throws Exception {
    Path open = Files.writeString(folder.resolve("open"), "0123456789abcdef0123\n");
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rw-r--r--"));
    assertThatThrownBy(() -> AdminToken.of(open)).hasMessageContaining("mode 0600");
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rw-------"));
    AdminToken read = AdminToken.of(open);
    assertThat(read.is("0123456789abcdef0123")).isTrue();
    assertThat(read.is("0123456789abcdef012")).isFalse();
    Files.writeString(open, "short\n");
    assertThatThrownBy(() -> AdminToken.of(open)).hasMessageContaining("holds no token");
    Path link = Files.createSymbolicLink(folder.resolve("link"), open);
    assertThatThrownBy(() -> AdminToken.of(link)).hasMessageContaining("mode 0600");
  }
}
