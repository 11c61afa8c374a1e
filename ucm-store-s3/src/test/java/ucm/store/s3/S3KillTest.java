package ucm.store.s3;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.Store;
import ucm.testkit.KillContract;

/** Writers that are killed, above a server that goes on. */
final class S3KillTest extends KillContract {

  private static final String ENDPOINT = "endpoint";

  @TempDir private Path server;
  @AutoClose private VersityGateway gateway;

  @BeforeEach
  void startsTheServer() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(server);
    // For the processes that are killed.
    Files.writeString(parent.resolve(ENDPOINT), gateway.endpoint());
  }

  @Override
  protected Store newStore() {
    return new S3Store();
  }

  @Override
  protected Map<String, Object> settings(Path directory) {
    try {
      String endpoint = Files.readString(directory.resolveSibling(ENDPOINT));
      return Map.of(
          "s3_endpoints",
          endpoint,
          "s3_bucket",
          VersityGateway.BUCKET,
          "s3_prefix",
          VersityGateway.prefix(directory));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  protected int writers() {
    return 2;
  }
}
