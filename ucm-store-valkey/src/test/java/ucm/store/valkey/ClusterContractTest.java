package ucm.store.valkey;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** Three servers that share the blocks; the store is told of one of them. */
final class ClusterContractTest extends StoreContract {

  private static List<ServerProcess> servers = List.of();

  @BeforeAll
  static void startsTheServers() throws Exception {
    ServerProcess.require();
    servers = ServerProcess.cluster(3);
  }

  @AfterAll
  static void stopsTheServers() {
    servers.forEach(ServerProcess::close);
  }

  @Override
  protected Store newStore() {
    return new ValkeyStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of(
        "valkey_nodes",
        servers.getFirst().node(),
        "valkey_cluster",
        true,
        "valkey_window_mb",
        1,
        "valkey_prefix",
        directory.toString());
  }
}
