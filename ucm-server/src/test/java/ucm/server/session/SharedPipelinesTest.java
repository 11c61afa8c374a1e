package ucm.server.session;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.StoreException;

/** What is said when a pipeline closes. */
final class SharedPipelinesTest {

  private static String missing(long pending, long failed) {
    StoreException full = new StoreException("the disk is full");
    return SharedPipelines.missing(new FlushResult(pending, BlockIds.empty(), failed, full));
  }

  @Test
  void aTimeIsNamedOnlyWhenItWasWaitedFor() {
    assertThat(missing(0, 7))
        .isEqualTo("7 blocks could not be stored, the first because of: the disk is full");
    assertThat(missing(3, 0)).isEqualTo("3 blocks are still on their way after 60 s");
    assertThat(missing(3, 7)).contains("; 3 blocks are still");
  }
}
