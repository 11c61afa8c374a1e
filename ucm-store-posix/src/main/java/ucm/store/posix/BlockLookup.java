package ucm.store.posix;

import java.util.BitSet;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.store.common.FileException;
import ucm.store.common.NativePath;

/**
 * Answers look-ups on the caller's thread, one system call per block. What the file system fails, or
 * does not answer in time, is absent. Thread-safe.
 */
final class BlockLookup {

  private static final Logger LOG = LoggerFactory.getLogger(BlockLookup.class);
  // The clock is looked at once in this many blocks.
  private static final int CLOCK_MASK = 63;

  private final BlockFiles files;
  private final BackendHealth health;
  private final PosixMetrics metrics;
  private final LongSupplier clock;
  private final long timeoutNanos;
  private final ThreadLocal<NativePath> paths = ThreadLocal.withInitial(NativePath::new);
  // The first error of each number is a warning, the others are counted.
  private final BitSet seenErrors = new BitSet();

  BlockLookup(
      BlockFiles files,
      BackendHealth health,
      PosixMetrics metrics,
      LongSupplier clock,
      long timeoutNanos) {
    this.files = files;
    this.health = health;
    this.metrics = metrics;
    this.clock = clock;
    this.timeoutNanos = timeoutNanos;
  }

  /** Which blocks are present. */
  BitSet all(BlockIds ids) {
    BitSet present = new BitSet(ids.size());
    NativePath path = paths.get();
    long start = clock.getAsLong();
    int hits = 0;
    for (int i = 0; i < ids.size() && isInTime(start, i); i++) {
      if (isPresent(path, ids, i)) {
        present.set(i);
        hits++;
      }
    }
    health.endLookup();
    count(ids.size(), hits);
    return present;
  }

  /** The last block of the unbroken run of present blocks from the first, or -1. */
  int prefix(BlockIds ids) {
    NativePath path = paths.get();
    long start = clock.getAsLong();
    int i = 0;
    while (i < ids.size() && isInTime(start, i) && isPresent(path, ids, i)) {
      i++;
    }
    health.endLookup();
    count(Math.min(ids.size(), i + 1), i);
    return i - 1;
  }

  private boolean isInTime(long start, int i) {
    return (i & CLOCK_MASK) != CLOCK_MASK || clock.getAsLong() - start < timeoutNanos;
  }

  private boolean isPresent(NativePath path, BlockIds ids, int i) {
    try {
      return health.beginLookup(ids.high(i), ids.low(i))
          && files.isPresent(path, ids.high(i), ids.low(i));
    } catch (FileException e) {
      health.lookupFailed(ids.high(i), ids.low(i), e);
      metrics.lookupErrors().increment();
      if (isFirst(e.errno())) {
        LOG.warn("Posix takes blocks for absent that it cannot look up: {}", e.getMessage());
      }
      return false;
    }
  }

  private boolean isFirst(int errno) {
    synchronized (seenErrors) {
      boolean first = !seenErrors.get(errno);
      seenErrors.set(errno);
      return first;
    }
  }

  private void count(int asked, int hits) {
    metrics.lookupBlocks().add(asked);
    metrics.lookupHitBlocks().add(hits);
  }
}
