package ucm.platform.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(180)
final class SharedFileTest {

  private static final long SIZE = 1 << 16;

  @TempDir private Path folder;

  @Test
  void twoOpeningsExcludeEachOtherAndClosingLetsGo() {
    try (SharedFile first = create("a");
        SharedFile second = open("a")) {
      assertThat(first.tryLock(3)).isTrue();
      assertThat(second.tryLock(3)).isFalse();
      assertThat(second.tryLock(4)).isTrue();
      assertThat(second.isLockedElsewhere(0, 3)).isFalse();
      assertThat(second.isLockedElsewhere(0, 4)).isTrue();
      // Its own locks do not count.
      assertThat(second.isLockedElsewhere(4, 1)).isFalse();
      second.unlock(4);
      assertThat(first.isLockedElsewhere(4, 1)).isFalse();
      try (SharedFile third = open("a")) {
        assertThat(third.tryLock(9)).isTrue();
        assertThat(first.isLockedElsewhere(9, 1)).isTrue();
      }
      assertThat(first.isLockedElsewhere(9, 1)).isFalse();
    }
  }

  @Test
  void knowsWhetherItsPathStillNamesIt() {
    try (SharedFile first = create("a")) {
      assertThat(first.isPrivate()).isTrue();
      assertThat(first.isAtPath()).isTrue();
      assertThat(SharedFile.create(folder.resolve("a"))).isNull();
      first.remove();
      assertThat(first.isAtPath()).isFalse();
      try (SharedFile next = create("a")) {
        assertThat(next.isAtPath()).isTrue();
        assertThat(first.isAtPath()).isFalse();
      }
    }
    assertThat(SharedFile.open(folder.resolve("b"))).isNull();
  }

  @Test
  void twoMappingsShareMemoryThatIsAllocated() throws Exception {
    try (SharedFile first = create("a");
        SharedFile second = open("a");
        Arena arena = Arena.ofShared()) {
      first.allocate(SIZE);
      assertThat(second.byteSize()).isEqualTo(SIZE);
      assertThat(Files.size(first.path())).isEqualTo(SIZE);
      MemorySegment one = first.map(SIZE, arena);
      MemorySegment two = second.map(SIZE, arena);
      one.set(ValueLayout.JAVA_INT, SIZE - 4, 42);
      assertThat(two.get(ValueLayout.JAVA_INT, SIZE - 4)).isEqualTo(42);
      // A sleeper on one mapping is woken through the other.
      Thread sleeper =
          Thread.ofPlatform()
              .start(
                  () -> {
                    while (one.get(ValueLayout.JAVA_INT, 0) == 0) {
                      Futex.sleep(one, 0, 0, TimeUnit.SECONDS.toNanos(50));
                    }
                  });
      two.set(ValueLayout.JAVA_INT, 0, 1);
      Futex.wake(two, 0, 1);
      sleeper.join();
      // Another value than the one seen: it does not sleep at all.
      Futex.sleep(one, 0, 7, TimeUnit.HOURS.toNanos(1));
    }
  }

  private SharedFile create(String name) {
    return Objects.requireNonNull(SharedFile.create(folder.resolve(name)));
  }

  private SharedFile open(String name) {
    return Objects.requireNonNull(SharedFile.open(folder.resolve(name)));
  }
}
