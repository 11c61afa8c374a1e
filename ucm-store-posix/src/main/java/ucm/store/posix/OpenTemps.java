package ucm.store.posix;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts the temporary files of unfinished blocks that are kept open between two shards. A file above
 * the bound is closed when its writer leaves and opened again for the next shard, so that thousands of
 * blocks written layer by layer do not use up the descriptors of the process.
 */
final class OpenTemps {

  /** Most files kept open; a process is given 1,024 by default. */
  static final int MAX_KEPT = 256;

  private final AtomicInteger open = new AtomicInteger();

  void opened() {
    open.incrementAndGet();
  }

  void closed() {
    open.decrementAndGet();
  }

  boolean tooMany() {
    return open.get() > MAX_KEPT;
  }
}
