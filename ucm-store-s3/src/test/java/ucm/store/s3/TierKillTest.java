package ucm.store.s3;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.Store;
import ucm.testkit.fault.TierKillContract;

/** Writers of {@code Posix|S3} that are killed, above a server that goes on. */
final class TierKillTest extends TierKillContract {

  private static final String ENDPOINT = "endpoint";

  @TempDir private Path server;
  @AutoClose private VersityGateway gateway;

  @BeforeEach
  void startsTheServer() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(server);
    Files.writeString(parent.resolve(ENDPOINT), gateway.endpoint());
  }

  @Override
  protected Store newUpper() {
    return new UpperTier();
  }

  @Override
  protected Store newLower() {
    return new S3Store();
  }

  @Override
  protected Map<String, Object> lowerSettings(Path directory) {
    return S3KillContract.settingsOf(directory, ENDPOINT);
  }
}
