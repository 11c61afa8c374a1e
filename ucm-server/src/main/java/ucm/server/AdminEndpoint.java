package ucm.server;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.StoreException;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.server.protocol.ProtocolException;

/**
 * Operators over HTTP, on the loopback address alone, with a token: what {@code docs/openapi.json} describes.
 * Each request has a virtual thread.
 */
public final class AdminEndpoint implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(AdminEndpoint.class);
  private static final String LOOPBACK = "127.0.0.1";
  private static final String ROOT = "/v1/";
  private static final String BEARER = "Bearer ";
  private static final int MOST_BYTES = 1 << 20;
  private static final int DRAIN_SECONDS = 120;
  private static final Observer NOBODY = (done, total) -> {};

  private static final int OK = 200;
  private static final int ACCEPTED = 202;
  private static final int BAD_REQUEST = 400;
  private static final int UNAUTHORIZED = 401;
  private static final int NOT_FOUND = 404;
  private static final int NOT_ALLOWED = 405;
  private static final int TOO_LARGE = 413;
  private static final int FAILED = 500;

  /** Does what a request asks for. */
  private interface Route {
    Map<String, Object> answer(JsonNode body) throws RequestException, ProtocolException;
  }

  /** A request is refused. */
  private static final class RequestException extends Exception {
    private static final long serialVersionUID = 1L;
    private final int status;

    RequestException(int status, String message) {
      super(message);
      this.status = status;
    }
  }

  private final Administration administration;
  private final AdminToken token;
  private final HttpServer http;
  private final Map<String, Map<String, Route>> routes;

  private AdminEndpoint(Administration administration, AdminToken token, HttpServer http) {
    this.administration = administration;
    this.token = token;
    this.http = http;
    routes =
        Map.of(
            "status", Map.of("GET", _ -> administration.status()),
            "reload", Map.of("POST", this::reload),
            "drain", Map.of("POST", this::drain),
            "clear", Map.of("POST", _ -> administration.clear(NOBODY)),
            "log-level", new TreeMap<>(Map.of("GET", _ -> logLevel(""), "PUT", this::setLogLevel)),
            "stop", Map.of("POST", _ -> Map.of("stopping", true)));
  }

  /**
   * Begins to answer.
   *
   * @param port 0 for any free one
   * @param tokenFile holds the token, or gets one
   * @return the endpoint, which the caller closes
   * @throws StoreException when the port cannot be had, or others may read the token
   */
  public static AdminEndpoint start(UcmServer server, int port, Path tokenFile) {
    AdminToken token = AdminToken.of(tokenFile);
    try {
      HttpServer http =
          HttpServer.create(new InetSocketAddress(InetAddress.ofLiteral(LOOPBACK), port), 0);
      AdminEndpoint endpoint = new AdminEndpoint(server.administration(), token, http);
      http.setExecutor(
          Executors.newThreadPerTaskExecutor(
              Thread.ofVirtual().name("ucm-serve-admin-", 0).factory()));
      http.createContext("/", endpoint::handle);
      http.start();
      return endpoint;
    } catch (IOException e) {
      throw new StoreException(
          "cannot answer operators at %s:%s: %s; choose another --admin-port, or 0 for any free one"
              .formatted(LOOPBACK, port, e.getMessage()),
          e);
    }
  }

  /** Where it answers. */
  public String url() {
    return "http://" + LOOPBACK + ":" + http.getAddress().getPort() + ROOT;
  }

  private void handle(HttpExchange exchange) throws IOException {
    try {
      String path = exchange.getRequestURI().getPath();
      Map<String, Object> answer;
      int status = path.equals(ROOT + "stop") ? ACCEPTED : OK;
      try {
        requireToken(exchange);
        answer = route(exchange, path).answer(body(exchange));
      } catch (RequestException e) {
        status = e.status;
        answer = error(e);
      } catch (ProtocolException e) {
        status = BAD_REQUEST;
        answer = error(e);
      } catch (RuntimeException e) {
        LOG.error("{} {} failed", exchange.getRequestMethod(), path, e);
        status = FAILED;
        answer = error(e);
      }
      send(exchange, status, answer);
      if (status == ACCEPTED) {
        LOG.info("the daemon is ended over HTTP");
        administration.stop();
      }
    } finally {
      exchange.close();
    }
  }

  private static Map<String, Object> error(Exception e) {
    return Map.of("error", String.valueOf(e.getMessage()));
  }

  private void requireToken(HttpExchange exchange) throws RequestException {
    String said = exchange.getRequestHeaders().getFirst("Authorization");
    if (said == null || !said.startsWith(BEARER) || !token.is(said.substring(BEARER.length()))) {
      exchange.getResponseHeaders().set("WWW-Authenticate", "Bearer");
      throw new RequestException(
          UNAUTHORIZED, "send the token of the daemon: Authorization: Bearer TOKEN");
    }
  }

  private Route route(HttpExchange exchange, String path) throws RequestException {
    Map<String, Route> methods =
        path.startsWith(ROOT) ? routes.get(path.substring(ROOT.length())) : null;
    if (methods == null) {
      throw new RequestException(NOT_FOUND, "there is no " + path + "; see docs/openapi.json");
    }
    Route route = methods.get(exchange.getRequestMethod());
    if (route == null) {
      String allowed = String.join(", ", methods.keySet());
      exchange.getResponseHeaders().set("Allow", allowed);
      throw new RequestException(NOT_ALLOWED, path + " is for " + allowed);
    }
    return route;
  }

  private static JsonNode body(HttpExchange exchange) throws IOException, RequestException {
    byte[] bytes = exchange.getRequestBody().readNBytes(MOST_BYTES + 1);
    if (bytes.length > MOST_BYTES) {
      throw new RequestException(TOO_LARGE, "a body has at most " + MOST_BYTES + " bytes");
    }
    try {
      JsonNode body =
          bytes.length == 0
              ? JsonMapper.shared().createObjectNode()
              : JsonMapper.shared().readTree(bytes);
      if (body.isObject()) {
        return body;
      }
    } catch (JacksonException e) {
      throw new RequestException(BAD_REQUEST, "the body is no JSON: " + e.getOriginalMessage());
    }
    throw new RequestException(BAD_REQUEST, "the body is to be a JSON object");
  }

  private static void send(HttpExchange exchange, int status, Map<String, Object> answer)
      throws IOException {
    byte[] bytes = JsonMapper.shared().writeValueAsBytes(answer);
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.getResponseHeaders().set("Cache-Control", "no-store");
    exchange.sendResponseHeaders(status, bytes.length);
    exchange.getResponseBody().write(bytes);
  }

  private Map<String, Object> reload(JsonNode body) throws RequestException, ProtocolException {
    return administration.reload(text(body, "configuration"), text(body, "yaml"));
  }

  private Map<String, Object> drain(JsonNode body) throws RequestException {
    JsonNode drains = body.path("drained");
    JsonNode seconds = body.path("timeout_seconds");
    if (!(drains.isMissingNode() || drains.isBoolean())
        || !(seconds.isMissingNode() || (seconds.canConvertToInt() && seconds.asInt() >= 0))) {
      throw new RequestException(
          BAD_REQUEST, "drained is true or false, timeout_seconds a number of 0 or more");
    }
    return drains.isBoolean() && !drains.asBoolean()
        ? administration.undrain()
        : administration.drain(Duration.ofSeconds(seconds.asInt(DRAIN_SECONDS)), NOBODY);
  }

  private Map<String, Object> setLogLevel(JsonNode body)
      throws RequestException, ProtocolException {
    return logLevel(text(body, "log_level"));
  }

  private Map<String, Object> logLevel(String level) throws ProtocolException {
    return administration.logLevel(level);
  }

  private static String text(JsonNode body, String name) throws RequestException {
    JsonNode value = body.path(name);
    if (!value.isString() || value.asString().isEmpty()) {
      throw new RequestException(BAD_REQUEST, "the body has no text " + name);
    }
    return value.asString();
  }

  /** Stops listening; requests under way have a second. Idempotent. */
  @Override
  public void close() {
    http.stop(1);
  }
}
