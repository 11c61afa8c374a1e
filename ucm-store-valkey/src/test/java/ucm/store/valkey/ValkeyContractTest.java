package ucm.store.valkey;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** One server. */
final class ValkeyContractTest extends StoreContract {

  private static ServerProcess server;

  @BeforeAll
  static void startsTheServer() throws IOException {
    ServerProcess.require();
    server = ServerProcess.start();
  }

  @AfterAll
  static void stopsTheServer() {
    if (server != null) {
      server.close();
    }
  }

  @Override
  protected Store newStore() {
    return new ValkeyStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    // Each test has keys of its own, the same after a restart of the store.
    return Map.of("valkey_nodes", server.node(), "valkey_prefix", directory.toString());
  }
}
