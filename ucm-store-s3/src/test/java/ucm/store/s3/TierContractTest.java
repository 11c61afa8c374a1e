package ucm.store.s3;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** The contract of {@code Posix|S3}. */
final class TierContractTest extends StoreContract {

  @TempDir private static Path folder;
  @AutoClose private static VersityGateway gateway;

  @BeforeAll
  static void startsTheServer() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(folder);
  }

  @Override
  protected Store newStore() {
    return new UpperTier();
  }

  @Override
  protected boolean isService() {
    return false;
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("posix_storage_backends", directory.resolve("local").toString());
  }

  @Override
  protected Store newNextStage() {
    return new S3Store();
  }

  @Override
  protected Map<String, Object> nextStageSettings(BlockLayout layout, Path directory) {
    return gateway.settings(ObjectServer.prefix(directory));
  }
}
