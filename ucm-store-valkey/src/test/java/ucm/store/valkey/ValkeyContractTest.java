package ucm.store.valkey;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** One server. */
@ParameterizedClass
@EnumSource
final class ValkeyContractTest extends StoreContract {

  private static ServerProcess server;

  @Parameter private ServerProgram program;

  @BeforeParameterizedClassInvocation
  static void startsTheServer(ServerProgram program) throws Exception {
    ServerProcess.require(program);
    server = ServerProcess.start(program);
  }

  @AfterParameterizedClassInvocation
  static void stopsTheServer() {
    if (server != null) {
      server.close();
      server = null;
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
