package ucm.store.s3;

import java.nio.file.Path;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.io.TempDir;

/** versitygw. */
final class S3KillTest extends S3KillContract {

  @TempDir private Path folder;
  @AutoClose private VersityGateway gateway;

  @Override
  ObjectServer server() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(folder);
    return gateway;
  }
}
