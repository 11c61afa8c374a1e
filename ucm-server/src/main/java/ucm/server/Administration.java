package ucm.server;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.server.protocol.ProtocolException;
import ucm.server.session.Engines;

/** What operators ask of a running daemon, whichever way they come. Answers are what JSON shows. Thread-safe. */
final class Administration {

  private final UcmServer server;
  private final Engines engines;
  private final ProcessControl process;

  Administration(UcmServer server, Engines engines, ProcessControl process) {
    this.server = server;
    this.engines = engines;
    this.process = process;
  }

  Map<String, Object> status() {
    Map<String, Object> status = server.status();
    status.put("drained", engines.isDrained());
    status.put("log_level", process.logLevel());
    status.put("engines", engines.status());
    return status;
  }

  /**
   * Takes new values of a configuration.
   *
   * @throws ProtocolException when it is bad
   */
  Map<String, Object> reload(String name, String yaml) throws ProtocolException {
    return engines.reload(name, yaml);
  }

  Map<String, Object> drain(Duration most, Observer observer) {
    try {
      return engines.drain(most, observer);
    } catch (InterruptedException e) {
      throw interrupted(e);
    }
  }

  Map<String, Object> undrain() {
    return engines.fill();
  }

  Map<String, Object> clear(Observer observer) {
    try {
      return engines.clear(observer);
    } catch (InterruptedException e) {
      throw interrupted(e);
    }
  }

  private static IllegalStateException interrupted(InterruptedException e) {
    Thread.currentThread().interrupt();
    return new IllegalStateException("the daemon ends", e);
  }

  /**
   * Sets what is logged, or only says it.
   *
   * @param level empty to leave it
   * @throws ProtocolException when there is no such level
   */
  Map<String, Object> logLevel(String level) throws ProtocolException {
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("before", process.logLevel());
    if (!level.isEmpty()) {
      try {
        process.setLogLevel(level);
      } catch (IllegalArgumentException e) {
        throw new ProtocolException(
            ProtocolException.REFUSED_ENGINE, String.valueOf(e.getMessage()));
      }
    }
    answer.put("log_level", process.logLevel());
    return answer;
  }

  /** Ends the daemon as SIGTERM does; does not wait for it. */
  void stop() {
    server.stop();
  }
}
