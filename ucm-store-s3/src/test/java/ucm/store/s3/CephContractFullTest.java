package ucm.store.s3;

import org.junit.jupiter.api.Tag;

/** Three parts keep the objects. */
@Tag("full")
final class CephContractFullTest extends CephContractTest {

  @Override
  int osds() {
    return 3;
  }
}
