package ucm.store.s3;

import org.junit.jupiter.api.Tag;

/** Ceph's gateway. */
@Tag("full")
final class CephKillTest extends S3KillContract {

  @Override
  ObjectServer server() {
    return CephCluster.shared(1);
  }
}
