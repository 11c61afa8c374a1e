package ucm.store.s3;

import org.junit.jupiter.api.Tag;

/** The same above Ceph's gateway. */
@Tag("full")
final class CephTierFaultTest extends TierFaultTest {

  @Override
  ObjectServer start() {
    return CephCluster.shared(1);
  }
}
