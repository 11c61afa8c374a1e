package ucm.store.s3;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.Store;
import ucm.testkit.fault.TierFaultContract;

/** {@code Posix|S3}, above a server that is killed, or stopped as SIGSTOP does. */
final class TierFaultTest extends TierFaultContract {

  @TempDir private Path server;
  @AutoClose private VersityGateway gateway;
  private Outage outage;

  @Override
  protected Store newUpper() {
    return new UpperTier();
  }

  @Override
  protected Store newLower() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(server);
    return new S3Store();
  }

  @Override
  protected Map<String, Object> lowerSettings(Path folder) {
    return gateway.settings("ucm");
  }

  @Override
  protected void begin(Outage begun) throws Exception {
    outage = begun;
    if (begun == Outage.FAILING) {
      gateway.kill();
    } else {
      gateway.signal("STOP");
    }
  }

  @Override
  protected void end() throws Exception {
    if (outage == Outage.FAILING) {
      gateway.startAgain();
    } else {
      gateway.signal("CONT");
    }
  }
}
