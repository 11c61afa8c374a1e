package ucm.store.file.block;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts the temporary files of unfinished blocks that are kept open between two shards. A file above
 * the bound is closed when its writer leaves and opened again for the next shard, so that thousands of
 * blocks written layer by layer do not use up the descriptors of the process.
 */
public final class OpenTemps {

  /** Most files kept open, however many the process may have. */
  public static final int MAX_KEPT = 256;

  private final int most;
  private final AtomicInteger open = new AtomicInteger();

  /**
   * None is open.
   *
   * @param most files kept open at the most
   */
  public OpenTemps(int most) {
    this.most = most;
  }

  void opened() {
    open.incrementAndGet();
  }

  void closed() {
    open.decrementAndGet();
  }

  boolean tooMany() {
    return open.get() > most;
  }
}
