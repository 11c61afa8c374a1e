package ucm.store.valkey;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.posix.PosixStore;
import ucm.testkit.StoreContract;

/** The contract of {@code Posix|Valkey}. */
final class TierContractTest extends StoreContract {

  @AutoClose private static ServerProcess server;

  @BeforeAll
  static void startsTheServer() throws Exception {
    ServerProcess.require();
    server = ServerProcess.start();
  }

  @Override
  protected Store newStore() {
    return new PosixStore();
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
    return new ValkeyStore();
  }

  @Override
  protected Map<String, Object> nextStageSettings(BlockLayout layout, Path directory) {
    return Map.of("valkey_nodes", server.node(), "valkey_prefix", directory.toString());
  }
}
