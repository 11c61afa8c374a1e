package ucm.store.valkey;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import ucm.api.Store;
import ucm.store.posix.PosixStore;
import ucm.testkit.fault.TierFaultContract;

/** {@code Posix|Valkey}, above a server that is killed, or stopped as SIGSTOP does. */
final class TierFaultTest extends TierFaultContract {

  @AutoClose private ServerProcess server;
  private Outage outage;

  @Override
  protected Store newUpper() {
    return new PosixStore();
  }

  @Override
  protected Store newLower() throws Exception {
    ServerProcess.require();
    server = ServerProcess.durable();
    return new ValkeyStore();
  }

  @Override
  protected Map<String, Object> lowerSettings(Path folder) {
    return Map.of("valkey_nodes", server.node());
  }

  @Override
  protected void begin(Outage begun) throws Exception {
    outage = begun;
    if (begun == Outage.FAILING) {
      server.kill();
    } else {
      server.signal("STOP");
    }
  }

  @Override
  protected void end() throws Exception {
    if (outage == Outage.FAILING) {
      server.startAgain();
    } else {
      server.signal("CONT");
    }
  }
}
