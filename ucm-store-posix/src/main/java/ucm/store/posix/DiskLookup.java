package ucm.store.posix;

import java.util.BitSet;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.store.common.FileException;
import ucm.store.common.NativePath;

/**
 * Asks the file system for blocks, one system call each: on the caller's thread while it answers fast,
 * on several threads when it is slow, see {@link LookupPace}. What it fails, or does not answer in
 * time, is absent. Thread-safe.
 */
final class DiskLookup implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(DiskLookup.class);
  // The clock is looked at once in this many blocks.
  private static final int STEP = 16;

  private final BlockFiles files;
  private final BlockIndex index;
  private final BackendHealth health;
  private final PosixMetrics metrics;
  private final LongSupplier clock;
  private final long timeoutNanos;
  private final LookupPace pace = new LookupPace();
  private final LookupThreads threads;
  private final ThreadLocal<NativePath> paths = ThreadLocal.withInitial(NativePath::new);
  // The first error of each number is a warning, the others are counted.
  private final BitSet seenErrors = new BitSet();

  DiskLookup(
      BlockFiles files,
      BlockIndex index,
      BackendHealth health,
      PosixMetrics metrics,
      LongSupplier clock,
      PosixConfig config) {
    this.files = files;
    this.index = index;
    this.health = health;
    this.metrics = metrics;
    this.clock = clock;
    this.timeoutNanos = config.timeoutMs() * 1_000_000L;
    this.threads = new LookupThreads(config.lookupConcurrency(), timeoutNanos, this::probe);
  }

  /** Looks up the blocks whose bits are clear, and sets the bits of those that are present. */
  void addPresent(BlockIds ids, BitSet present) {
    long start = clock.getAsLong();
    int from = pace.isSlow(start) ? 0 : addWhileFast(ids, present, start);
    int next = present.nextClearBit(from);
    if (next >= ids.size()) {
      return;
    }
    int[] asked = new int[ids.size() - next];
    int size = 0;
    for (int i = next; i < ids.size(); i = present.nextClearBit(i + 1)) {
      asked[size++] = i;
    }
    run(new LookupWave(ids, asked, size, false), start).addTo(present);
  }

  /** Returns from where on nothing is looked up yet. */
  private int addWhileFast(BlockIds ids, BitSet present, long start) {
    NativePath path = paths.get();
    boolean watched = pace.enter(start);
    long last = start;
    int done = 0;
    try {
      for (int i = present.nextClearBit(0); i < ids.size(); i = present.nextClearBit(i + 1)) {
        if (isPresent(path, ids, i)) {
          present.set(i);
        }
        if (++done == STEP) {
          done = 0;
          last = step(last, STEP, watched);
          if (pace.isSlow() || last - start >= timeoutNanos) {
            return i + 1;
          }
        }
      }
      return ids.size();
    } finally {
      leave(last, done, watched);
    }
  }

  /**
   * Finds the first absent block, taking those in the index for present.
   *
   * @param from where to begin
   * @return its index, or the number of blocks when none is absent
   */
  int firstAbsent(BlockIds ids, int from) {
    long start = clock.getAsLong();
    return pace.isSlow(start)
        ? firstAbsentInWave(ids, from, start)
        : firstAbsentWhileFast(ids, from, start);
  }

  private int firstAbsentWhileFast(BlockIds ids, int from, long start) {
    NativePath path = paths.get();
    boolean watched = pace.enter(start);
    long last = start;
    int done = 0;
    int i = from;
    try {
      for (; i < ids.size(); i++) {
        if (index.contains(ids.high(i), ids.low(i))) {
          continue;
        }
        done++;
        if (!isPresent(path, ids, i)) {
          return i;
        }
        if (done == STEP) {
          done = 0;
          last = step(last, STEP, watched);
          if (pace.isSlow() || last - start >= timeoutNanos) {
            i++;
            break;
          }
        }
      }
    } finally {
      leave(last, done, watched);
    }
    return i == ids.size() ? i : firstAbsentInWave(ids, i, start);
  }

  private int firstAbsentInWave(BlockIds ids, int from, long start) {
    int[] asked = new int[ids.size() - from];
    int size = 0;
    for (int i = from; i < ids.size(); i++) {
      if (!index.contains(ids.high(i), ids.low(i))) {
        asked[size++] = i;
      }
    }
    return size == 0
        ? ids.size()
        : run(new LookupWave(ids, asked, size, true), start).firstAbsent();
  }

  private LookupWave run(LookupWave wave, long start) {
    long left = timeoutNanos - (clock.getAsLong() - start);
    if (!threads.run(wave, left)) {
      metrics.lookupExpiries().increment();
    }
    return wave;
  }

  private long step(long last, int accesses, boolean watched) {
    long now = clock.getAsLong();
    pace.took(now - last, accesses);
    if (watched) {
      pace.step(now);
    }
    return now;
  }

  private void leave(long last, int accesses, boolean watched) {
    if (accesses > 0) {
      step(last, accesses, watched);
    }
    if (watched) {
      pace.leave();
    }
  }

  private boolean probe(LookupWave wave, int place) {
    long start = clock.getAsLong();
    boolean present = isPresent(paths.get(), wave.ids, wave.id(place));
    pace.took(clock.getAsLong() - start, 1);
    return present;
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
    } finally {
      health.endLookup();
    }
  }

  private boolean isFirst(int errno) {
    synchronized (seenErrors) {
      boolean first = !seenErrors.get(errno);
      seenErrors.set(errno);
      return first;
    }
  }

  /** Stops and joins the threads. */
  @Override
  public void close() {
    threads.close();
  }
}
