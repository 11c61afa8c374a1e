package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import ucm.store.file.LocalFileStore;

final class DeferredCleanupTest {

  @Test
  void doesAtOnceWhatComesWhenItIsClosed() throws Exception {
    DeferredCleanup cleanup = new DeferredCleanup(LocalFileStore.KIND);
    CountDownLatch done = new CountDownLatch(1);
    cleanup.add(done::countDown);
    cleanup.close();
    assertThat(done.getCount()).isZero();
    CountDownLatch late = new CountDownLatch(1);
    cleanup.add(late::countDown);
    assertThat(late.getCount()).isZero();
  }
}
