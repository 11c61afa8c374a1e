package ucm.store.s3;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** Ceph's gateway. */
class CephContractTest extends StoreContract {

  @BeforeAll
  static void needsCeph() {
    CephCluster.require();
  }

  /** How many parts keep objects. */
  int osds() {
    return 1;
  }

  @Override
  protected Store newStore() {
    return new S3Store();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return CephCluster.shared(osds()).settings(ObjectServer.prefix(directory));
  }
}
