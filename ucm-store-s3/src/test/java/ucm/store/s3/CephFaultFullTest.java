package ucm.store.s3;

import org.junit.jupiter.api.Tag;

/** Three parts keep the objects. */
@Tag("full")
final class CephFaultFullTest extends CephFaultTest {

  @Override
  int osds() {
    return 3;
  }
}
