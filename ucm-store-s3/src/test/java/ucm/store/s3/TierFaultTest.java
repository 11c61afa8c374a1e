package ucm.store.s3;

import java.nio.file.Path;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.Store;
import ucm.testkit.fault.TierFaultContract;

/** {@code Posix|S3}, above versitygw that is killed, or stopped as SIGSTOP does. */
class TierFaultTest extends TierFaultContract {

  @TempDir private Path folder;
  private VersityGateway started;
  private ObjectServer server;
  private Outage outage;

  ObjectServer start() throws Exception {
    VersityGateway.require();
    started = VersityGateway.start(folder);
    return started;
  }

  @AfterEach
  void stopsTheServer() {
    if (started != null) {
      started.close();
    }
  }

  @Override
  protected Store newUpper() {
    return new UpperTier();
  }

  @Override
  protected Store newLower() throws Exception {
    server = start();
    return new S3Store();
  }

  @Override
  protected Map<String, Object> lowerSettings(Path folder) {
    return server.settings("ucm/" + UUID.randomUUID());
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
