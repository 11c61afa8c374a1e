package ucm.store.s3;

/** Ceph's gateway. */
final class CephKillTest extends S3KillContract {

  @Override
  ObjectServer server() {
    return CephCluster.shared(1);
  }
}
