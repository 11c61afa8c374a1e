package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.s3.block.ObjectFormat;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;

/** versitygw behind the proxy. */
final class S3FaultTest extends S3FaultContract {

  @TempDir private static Path folder;
  @AutoClose private static VersityGateway gateway;

  @BeforeAll
  static void startsTheServer() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(folder);
  }

  @Override
  ObjectServer server() {
    return gateway;
  }

  @Test
  void loadsAFileThatAToolHasCopiedIntoTheServersFolder() throws Exception {
    BlockLayout layout = BlockLayout.uniform(8192, 16_384, 65_536);
    BlockIds ids = BlockBytes.ids(12, 1);
    String key = new ObjectFormat(layout, "copied").key(ids.high(0), ids.low(0));
    try (VersityGateway other = VersityGateway.start(folder.resolve("other"));
        StoreFixture stores = new StoreFixture(layout)) {
      stores.dump(stores.open(new S3Store(), gateway.settings("copied")), ids).requireOk();
      Files.createDirectories(other.file(key).getParent());
      Files.copy(gateway.file(key), other.file(key));
      Store store = stores.open(new S3Store(), other.settings("copied"));
      assertThat(store.lookup(ids).cardinality()).isOne();
      stores.load(store, ids).requireOk();
    }
  }
}
