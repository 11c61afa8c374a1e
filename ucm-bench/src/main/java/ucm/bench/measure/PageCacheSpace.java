package ucm.bench.measure;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Makes sure that the kernel has memory at hand for files that will be written next.
 *
 * <p>A virtual machine gives memory it freed back to its host within seconds, and getting it again is
 * slower than a disk; a timed region must not meet that. So as much as will be written is written to
 * one file and cut off again, just before.
 */
public final class PageCacheSpace implements AutoCloseable {

  // The largest chunks in which a file system takes memory, and the kernel gives it back to the
  // host.
  private static final int CHUNK = 2 << 20;

  private final FileChannel file;
  private final BenchThreads threads;
  private final ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK);

  public PageCacheSpace(Path path, BenchThreads threads) throws IOException {
    this.threads = threads;
    this.file = FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
  }

  /** Touches at least this many bytes. */
  public void touch(long bytes) throws InterruptedException {
    threads.time(
        thread -> {
          if (thread > 0) {
            return;
          }
          for (long at = 0; at < bytes; at += CHUNK) {
            file.write(chunk.clear(), at);
          }
          file.truncate(0);
        });
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
