package ucm.store.s3;

/** The same above Ceph's gateway. */
final class CephTierFaultTest extends TierFaultTest {

  @Override
  ObjectServer start() {
    return CephCluster.shared(1);
  }
}
