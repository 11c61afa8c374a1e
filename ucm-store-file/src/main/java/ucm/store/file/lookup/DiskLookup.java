package ucm.store.file.lookup;

import java.util.BitSet;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.platform.libc.FileException;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.index.BlockIndex;

/**
 * Asks the file system for blocks, one system call each, on threads of its own: the caller waits and
 * is never inside the file system. How many threads ask side by side follows from {@link LookupLatency}.
 * What the file system fails, or does not answer in time, is absent; so is, at once, what lies in a
 * directory that is down or goes down meanwhile. Thread-safe.
 */
public final class DiskLookup implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(DiskLookup.class);
  // While the file system is fast, the clock is read once in this many blocks.
  private static final int STEP = 16;

  private final BlockFiles files;
  private final BlockIndex index;
  private final DirectoryHealth health;
  private final FileStoreMetrics metrics;
  private final LongSupplier clock;
  private final long timeoutNanos;
  private final LookupLatency latency = new LookupLatency();
  private final LookupThreads threads;
  // The first error of each number is a warning, the others are counted.
  private final BitSet seenErrors = new BitSet();

  public DiskLookup(
      BlockFiles files,
      BlockIndex index,
      DirectoryHealth health,
      FileStoreMetrics metrics,
      LongSupplier clock,
      FileStoreConfig config) {
    this.files = files;
    this.index = index;
    this.health = health;
    this.metrics = metrics;
    this.clock = clock;
    this.timeoutNanos = config.timeoutMs() * 1_000_000L;
    this.threads =
        new LookupThreads(
            config.kind(),
            config.lookupConcurrency(),
            config.directories().size(),
            directory -> health.refusal(directory) != null,
            timeoutNanos,
            this::ask);
  }

  /**
   * Looks up the blocks whose bits are clear, and sets the bits of those that are present.
   *
   * @param trustsIndex whether what the index excludes is absent without a check
   */
  void addPresent(BlockIds ids, BitSet present, boolean trustsIndex) {
    boolean anyDown = health.isAnyDown();
    LookupBatch batch = null;
    int asked = 0;
    for (int i = present.nextClearBit(0); i < ids.size(); i = present.nextClearBit(i + 1)) {
      long high = ids.high(i);
      long low = ids.low(i);
      if (!(trustsIndex && index.excludes(high, low)) && !(anyDown && health.hides(high, low))) {
        if (batch == null) {
          batch = LookupBatch.of(ids);
        }
        batch.ask(i);
        asked++;
      }
    }
    if (batch != null) {
      run(batch, latency.threadsFor(asked));
      batch.addTo(present);
    }
  }

  /**
   * Finds the first absent block, taking those in the index for present.
   *
   * @param from where to begin
   * @return its index, or the number of blocks when none is absent
   */
  int firstAbsent(BlockIds ids, int from) {
    int to = ids.size();
    if (health.isAnyDown()) {
      to = from;
      while (to < ids.size() && !health.hides(ids.high(to), ids.low(to))) {
        to++;
      }
    }
    if (to == from) {
      return from;
    }
    LookupBatch batch = LookupBatch.prefix(ids.slice(from, to));
    // Most often the first one is absent: where an answer comes soon, it is waited for.
    run(batch, latency.isSlow() ? to - from : 1);
    return from + batch.firstAbsent();
  }

  private void run(LookupBatch batch, int wanted) {
    if (!threads.run(batch, wanted, timeoutNanos)) {
      metrics.lookupExpiries().increment();
    }
  }

  /** A directory is not to be used any more: its blocks are absent to all callers that wait. */
  void directoryIsDown() {
    threads.giveUp(health::hides);
  }

  private void ask(LookupBatch batch, LookupThreads.Seat seat) {
    long last = clock.getAsLong();
    int done = 0;
    for (int i = batch.take(); i >= 0; i = batch.take()) {
      if (batch.stopsAtMiss && index.contains(batch.ids.high(i), batch.ids.low(i))) {
        batch.answer(i, true);
        continue;
      }
      batch.answer(i, isPresent(seat, batch.ids.high(i), batch.ids.low(i)));
      done++;
      if (done == STEP || latency.isSlow()) {
        long now = clock.getAsLong();
        latency.took(now - last, done);
        last = now;
        done = 0;
        threads.getsOn(batch, latency.threadsFor(batch.left()));
      }
    }
    if (done > 0) {
      latency.took(clock.getAsLong() - last, done);
    }
  }

  private boolean isPresent(LookupThreads.Seat seat, long high, long low) {
    seat.directory = health.directoryOf(high, low);
    try {
      return health.beginLookup(high, low) && files.isPresent(seat.path, high, low);
    } catch (FileException e) {
      // First: the failure may open the breaker, and then the caller goes on.
      metrics.lookupErrors().increment();
      health.lookupFailed(high, low, e);
      if (isFirst(e.errno())) {
        LOG.warn(
            "{} takes blocks for absent that it cannot look up: {}",
            files.paths.store(),
            e.getMessage());
      }
      return false;
    } catch (RuntimeException e) {
      LOG.error("{} failed to look up a block", files.paths.store(), e);
      return false;
    } finally {
      health.endLookup();
      seat.directory = LookupThreads.Seat.NOWHERE;
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
