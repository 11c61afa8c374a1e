package ucm.platform.fault;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;

final class RecentFaultsTest {

  @Test
  void aKindIsNewsOnceAndAgainWhenItHasBeenAway() {
    AtomicLong clock = new AtomicLong(-1);
    RecentFaults faults = new RecentFaults(clock::get);
    assertThat(faults.isNews("full")).isTrue();
    assertThat(faults.isNews("full")).isFalse();
    assertThat(faults.isNews("read-only")).isTrue();
    clock.addAndGet(TimeUnit.MINUTES.toNanos(10));
    assertThat(faults.isNews("full")).isFalse();
    clock.addAndGet(TimeUnit.MINUTES.toNanos(10));
    assertThat(faults.isNews("full")).isFalse();
    clock.addAndGet(TimeUnit.MINUTES.toNanos(10) + 1);
    assertThat(faults.isNews("full")).isTrue();
  }

  @Test
  void aDiskThatIsFullIsOfAnotherKindThanOneThatCannotBeWritten() {
    String full = RecentFaults.kind(new FileException("write", "/a", Errno.ENOSPC));
    assertThat(full)
        .isEqualTo(RecentFaults.kind(new FileException("mkdir", "/b", Errno.ENOSPC)))
        .isNotEqualTo(RecentFaults.kind(new FileException("write", "/a", Errno.EROFS)))
        .isNotEqualTo(RecentFaults.kind(new IOException()))
        .isNotEqualTo(RecentFaults.kind(null));
  }
}
