package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.InputStream;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class LeakCheckTest {

  @TempDir Path directory;

  @Test
  void namesAThreadThatStillLives() throws Exception {
    LeakCheck leaks = LeakCheck.start();
    CountDownLatch end = new CountDownLatch(1);
    Thread thread =
        Thread.ofPlatform()
            .name("ucm-leak-worker-0")
            .start(
                () -> {
                  try {
                    end.await();
                  } catch (InterruptedException e) {
                    throw new AssertionError(e);
                  }
                });
    assertThatThrownBy(leaks::requireNoThread).hasMessageContaining("ucm-leak-worker-0");
    LeakCheck.start().requireNoThread();
    end.countDown();
    thread.join();
    leaks.requireNoThread();
  }

  @Test
  void namesAFileThatIsStillOpenOrMapped() throws Exception {
    LeakCheck leaks = LeakCheck.start();
    Path file = Files.writeString(directory.resolve("open"), "x");
    try (InputStream in = Files.newInputStream(file)) {
      Files.delete(file);
      assertThatThrownBy(() -> leaks.requireNoFileOf(directory)).hasMessageContaining("open: ");
      in.read();
    }
    Path mapped = Files.writeString(directory.resolve("mapped"), "x");
    try (Arena arena = Arena.ofShared()) {
      try (FileChannel channel = FileChannel.open(mapped)) {
        channel.map(MapMode.READ_ONLY, 0, 1, arena);
      }
      assertThatThrownBy(() -> leaks.requireNoFileOf(directory)).hasMessageContaining("mapped: ");
    }
    assertThatCode(() -> leaks.requireNoFileOf(directory)).doesNotThrowAnyException();
  }
}
