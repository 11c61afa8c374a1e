package ucm.store.s3;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import ucm.api.Store;
import ucm.testkit.KillContract;

/** Writers that are killed, above a server that goes on. */
abstract class S3KillContract extends KillContract {

  private static final String ENDPOINT = "endpoint";

  /** A server that is running; not asked for by the processes that are killed. */
  abstract ObjectServer server() throws Exception;

  @BeforeEach
  final void tellsThoseThatAreKilled() throws Exception {
    Files.writeString(parent.resolve(ENDPOINT), server().endpoint());
  }

  @Override
  protected Store newStore() {
    return new S3Store();
  }

  @Override
  protected Map<String, Object> settings(Path directory) {
    return settingsOf(directory, ENDPOINT);
  }

  /** The settings of a server whose endpoint a file beside the folder has. */
  static Map<String, Object> settingsOf(Path directory, String file) {
    try {
      return Map.of(
          "s3_endpoints",
          Files.readString(directory.resolveSibling(file)),
          "s3_bucket",
          ObjectServer.BUCKET,
          "s3_prefix",
          ObjectServer.prefix(directory));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  protected int writers() {
    return 2;
  }
}
