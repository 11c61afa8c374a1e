package ucm.store.file.transfer;

import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;

/** Blocks whose dump failed and was not reported by a flush yet. Names some, counts all. */
public final class DumpFailures {

  /** Most blocks named. */
  static final int MAX_NAMED = 1 << 14;

  // Guarded by this.
  private final Set<BlockIds> named = new LinkedHashSet<>();
  private long count;
  private @Nullable Throwable cause;

  /**
   * Takes a failed block up.
   *
   * @return false when the block is named already
   */
  public synchronized boolean record(long idHigh, long idLow, Throwable why) {
    if (cause == null) {
      cause = why;
    }
    BlockIds id = BlockIds.of(idHigh, idLow);
    if (named.contains(id)) {
      return false;
    }
    if (named.size() < MAX_NAMED) {
      named.add(id);
    }
    count++;
    return true;
  }

  /** Hands over all of it, once. */
  public synchronized FlushResult take(long pendingBlocks) {
    FlushResult result = peek(pendingBlocks);
    named.clear();
    count = 0;
    cause = null;
    return result;
  }

  /** Shows all of it. */
  public synchronized FlushResult peek(long pendingBlocks) {
    long[] words = new long[2 * named.size()];
    int n = 0;
    for (BlockIds id : named) {
      words[n++] = id.high(0);
      words[n++] = id.low(0);
    }
    return new FlushResult(pendingBlocks, BlockIds.wrap(words), count, cause);
  }
}
