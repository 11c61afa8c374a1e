package ucm.store.s3;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** One versitygw. */
final class S3ContractTest extends StoreContract {

  @TempDir private static Path folder;
  private static VersityGateway gateway;

  @BeforeAll
  static void startsTheServer() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(folder);
  }

  @AfterAll
  static void stopsTheServer() {
    if (gateway != null) {
      gateway.close();
    }
  }

  @Override
  protected Store newStore() {
    return new S3Store();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return gateway.settings(ObjectServer.prefix(directory));
  }
}
