package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

final class FileChoresTest {

  @Test
  void doesAtOnceWhatComesWhenItIsClosed() throws Exception {
    FileChores chores = new FileChores(StoreKind.POSIX);
    CountDownLatch done = new CountDownLatch(1);
    chores.add(done::countDown);
    chores.close();
    assertThat(done.getCount()).isZero();
    CountDownLatch late = new CountDownLatch(1);
    chores.add(late::countDown);
    assertThat(late.getCount()).isZero();
  }
}
