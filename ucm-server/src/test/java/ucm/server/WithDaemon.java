package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;

/** A test of a daemon with blocks in files, which leaves no socket behind. */
abstract class WithDaemon {

  @TempDir Path folder;

  TestDaemon daemon;
  private final long stagingBytes;

  WithDaemon(long stagingBytes) {
    this.stagingBytes = stagingBytes;
  }

  @BeforeEach
  final void start() throws Exception {
    daemon = new TestDaemon(folder, stagingBytes);
  }

  @AfterEach
  final void stop() {
    daemon.close();
    assertThat(daemon.socket).doesNotExist();
  }

  /** The blocks number {@code from} to {@code to}, exclusive. */
  static BlockIds ids(int from, int to) {
    return BlockIds.wrap(LongStream.range(from, to).flatMap(i -> LongStream.of(i, ~i)).toArray());
  }
}
