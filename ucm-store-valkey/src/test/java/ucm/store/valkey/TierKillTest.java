package ucm.store.valkey;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import ucm.api.Store;
import ucm.store.posix.PosixStore;
import ucm.testkit.fault.TierKillContract;

/** {@code Posix|Valkey}, above a server that goes on. */
final class TierKillTest extends TierKillContract {

  private static final String NODE = "node";

  @AutoClose private ServerProcess server;

  @BeforeEach
  void startsTheServer() throws Exception {
    ServerProcess.require();
    server = ServerProcess.start();
    // For the processes that are killed.
    Files.writeString(parent.resolve(NODE), server.node());
  }

  @Override
  protected Store newUpper() {
    return new PosixStore();
  }

  @Override
  protected Store newLower() {
    return new ValkeyStore();
  }

  @Override
  protected Map<String, Object> lowerSettings(Path directory) {
    try {
      String node = Files.readString(directory.resolveSibling(NODE));
      return Map.of("valkey_nodes", node, "valkey_prefix", directory.toString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  protected int writers() {
    return 2;
  }

  @Override
  protected int kills() {
    return 4;
  }
}
