package ucm.server;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.StoreException;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;

/** Whether a daemon answers where engines look for it, and how much memory is left for its slots. */
public final class ServeHealthCheck implements HealthCheck {

  private static final String SUBJECT = "daemon";
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");
  private static final double GIB = 1L << 30;

  private final Path socket;

  /** Looks where engines look. */
  public ServeHealthCheck() {
    this(Daemon.defaultSocket());
  }

  ServeHealthCheck(Path socket) {
    this.socket = socket;
  }

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    if (!Files.exists(socket)) {
      return List.of(
          Finding.ok(SUBJECT, "none at " + socket + "; an engine starts one; " + sharedMemory()));
    }
    try {
      JsonNode status = JsonMapper.shared().readTree(Daemon.status(socket));
      String found =
          String.format(
              Locale.ROOT,
              "process %d serves %d engines at %s; %s",
              status.path("pid").asLong(),
              status.path("engines").size(),
              socket,
              sharedMemory());
      return List.of(Finding.ok(SUBJECT, found));
    } catch (StoreException e) {
      return List.of(
          Finding.warning(
              SUBJECT,
              "the one at " + socket + " does not answer: " + e.getMessage(),
              "engines find nothing until one does: see its log, or name another --socket"));
    }
  }

  private static String sharedMemory() {
    try {
      long free = Files.getFileStore(SHARED_MEMORY).getUsableSpace();
      return String.format(Locale.ROOT, "%.1f GiB are free for slots in /dev/shm", free / GIB);
    } catch (IOException e) {
      return "there is no /dev/shm for slots";
    }
  }
}
