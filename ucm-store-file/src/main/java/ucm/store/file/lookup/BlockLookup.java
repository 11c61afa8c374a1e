package ucm.store.file.lookup;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.platform.fault.RecentFaults;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.platform.thread.OwnThreads;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.block.KnownBlocks;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.volume.Volume;
import ucm.store.file.volume.Volumes;

/**
 * Answers look-ups: from the index what it knows, from the disk the rest. A block of the index may
 * have been removed by another process; that shows when it is loaded.
 *
 * <p>The file system is asked by one system call for each block, on threads of this class: the caller waits
 * and is never inside the file system. Each directory has its threads, so that one that hangs keeps none
 * from another. A look-up begins with one thread; the longer it takes, because the file system is slow or a
 * thread hangs, the more join.
 *
 * <p>What the file system fails, or does not answer in time, is absent; so is, at once, what lies in a
 * directory that is down or goes down meanwhile. Thread-safe.
 */
public final class BlockLookup implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(BlockLookup.class);
  // Twice as many threads join after this time, and again after twice the time.
  private static final long FIRST_WAIT_NANOS = TimeUnit.MICROSECONDS.toNanos(200);
  private static final long LONGEST_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  private final BlockFiles files;
  private final KnownBlocks index;
  private final Volumes volumes;
  private final FileStoreMetrics metrics;
  // No other process writes, so that a complete index knows what is absent.
  private final boolean exclusive;
  private final int concurrency;
  private final long timeoutNanos;
  private final OwnThreads own;
  private final List<ForkJoinPool> threads = new ArrayList<>();
  private final ThreadLocal<NativePath> threadPath = ThreadLocal.withInitial(NativePath::new);
  private final Set<LookupBatch> waiting = ConcurrentHashMap.newKeySet();
  // Apart, as those that stop at a miss mostly ask for one id, and the others for each.
  private final Wakefulness ofPrefixes = new Wakefulness();
  private final Wakefulness ofOthers = new Wakefulness();
  private final RecentFaults recentErrors;

  /** Starts no thread yet. */
  public BlockLookup(BlockFiles files, FileStoreConfig config) {
    this.files = files;
    this.index = files.index;
    this.volumes = files.volumes;
    this.metrics = files.metrics;
    this.exclusive = config.isExclusive();
    this.recentErrors = new RecentFaults(files.volumes.clock);
    this.concurrency = config.lookupConcurrency();
    this.timeoutNanos = TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
    this.own = config.kind().threads("lookup");
    for (int i = 0; i < config.directories().size(); i++) {
      threads.add(own.pool(concurrency));
    }
  }

  /** Which blocks are present. */
  public BitSet all(BlockIds ids) {
    BitSet present = indexed(ids);
    int known = present.cardinality();
    if (known < ids.size()) {
      addPresent(ids, present, exclusive);
    }
    hideWhatIsDown(ids, present);
    count(ids.size(), present.cardinality(), known);
    return present;
  }

  /** Which blocks the index knows to be present; the disk is not asked for the others. */
  public BitSet known(BlockIds ids) {
    BitSet present = indexed(ids);
    hideWhatIsDown(ids, present);
    return present;
  }

  private BitSet indexed(BlockIds ids) {
    BitSet present = new BitSet(ids.size());
    for (int i = 0; i < ids.size(); i++) {
      if (index.contains(ids.high(i), ids.low(i))) {
        present.set(i);
      }
    }
    return present;
  }

  /** The index knows blocks that cannot be loaded while their directory is down. */
  private void hideWhatIsDown(BlockIds ids, BitSet present) {
    if (!volumes.isAnyDown()) {
      return;
    }
    for (int i = present.nextSetBit(0); i >= 0; i = present.nextSetBit(i + 1)) {
      if (hides(ids, i)) {
        present.clear(i);
      }
    }
  }

  private boolean hides(BlockIds ids, int i) {
    return volumes.of(ids.high(i), ids.low(i)).hides();
  }

  private void giveUpHidden(LookupBatch batch) {
    batch.giveUp(i -> hides(batch.ids, i));
  }

  /** The last block of the unbroken run of present blocks from the first, or -1. */
  public int prefix(BlockIds ids) {
    int known = 0;
    while (known < ids.size() && index.contains(ids.high(known), ids.low(known))) {
      known++;
    }
    int absent = known;
    if (known < ids.size() && !(exclusive && index.excludes(ids.high(known), ids.low(known)))) {
      absent = firstAbsent(ids, known);
    }
    absent = firstHidden(ids, 0, absent);
    count(Math.min(ids.size(), absent + 1), absent, known);
    return absent - 1;
  }

  /** Which blocks have a file now, whatever the index says. */
  public BitSet onDisk(BlockIds ids) {
    BitSet present = new BitSet(ids.size());
    addPresent(ids, present, false);
    return present;
  }

  private void count(int asked, int hits, int known) {
    metrics.lookupBlocks.add(asked);
    metrics.lookupHitBlocks.add(hits);
    metrics.lookupKnownBlocks.add(known);
  }

  /**
   * Looks up the blocks whose bits are clear, and sets the bits of those that are present; what the index
   * excludes is absent without a check where it is trusted.
   */
  private void addPresent(BlockIds ids, BitSet present, boolean trustsIndex) {
    boolean anyDown = volumes.isAnyDown();
    BitSet asked = new BitSet(ids.size());
    for (int i = present.nextClearBit(0); i < ids.size(); i = present.nextClearBit(i + 1)) {
      boolean isExcluded = trustsIndex && index.excludes(ids.high(i), ids.low(i));
      asked.set(i, !isExcluded && !(anyDown && hides(ids, i)));
    }
    present.or(run(new LookupBatch(files.paths, ids, asked, false)));
  }

  /** The first absent block from one on, or the number of blocks; those in the index are present. */
  private int firstAbsent(BlockIds ids, int from) {
    int to = firstHidden(ids, from, ids.size());
    BitSet all = new BitSet(to - from);
    all.set(0, to - from);
    return from + run(new LookupBatch(files.paths, ids.slice(from, to), all, true)).nextClearBit(0);
  }

  /** The first block of a range whose directory is down, or its end. */
  private int firstHidden(BlockIds ids, int from, int to) {
    int i = volumes.isAnyDown() ? from : to;
    while (i < to && !hides(ids, i)) {
      i++;
    }
    return i;
  }

  /** Looks up what a batch asks for, no longer than a task may take; returns what is present. */
  private BitSet run(LookupBatch batch) {
    if (batch.isAnswered()) {
      return batch.present();
    }
    waiting.add(batch);
    List<Runnable> runs = new ArrayList<>(threads.size());
    // Where all threads hang, calls to join wait for as long: they keep no batch that is over.
    WeakReference<LookupBatch> unlessOver = new WeakReference<>(batch);
    for (Volume volume : volumes.all()) {
      runs.add(() -> ask(unlessOver.get(), volume));
    }
    try {
      // One that has gone down since the caller looked has told only those that waited.
      if (volumes.isAnyDown()) {
        giveUpHidden(batch);
      }
      await(batch, runs);
    } catch (RejectedExecutionException _) {
      // This was closed.
    } catch (InterruptedException e) {
      // What is not known by now is absent; the caller finds its interrupt where it left it.
      Thread.currentThread().interrupt();
    } finally {
      waiting.remove(batch);
      boolean isAnswered = batch.isAnswered();
      batch.stop();
      if (!isAnswered) {
        metrics.lookupExpiries.increment();
      }
    }
    return batch.present();
  }

  private void await(LookupBatch batch, List<Runnable> runs) throws InterruptedException {
    long deadline = System.nanoTime() + timeoutNanos;
    long wait = FIRST_WAIT_NANOS;
    int joining = 1;
    for (long left = timeoutNanos; left > 0; left = deadline - System.nanoTime()) {
      boolean isFirst = wait == FIRST_WAIT_NANOS;
      for (int i = 0; i < runs.size(); i++) {
        ForkJoinPool pool = threads.get(i);
        // Where more calls wait already, all threads are held.
        boolean mayJoin = isFirst || pool.getQueuedSubmissionCount() < concurrency;
        for (int n = 0; mayJoin && n < joining && batch.hasMore(i); n++) {
          pool.execute(runs.get(i));
        }
      }
      if (isFirst) {
        (batch.stopsAtMiss ? ofPrefixes : ofOthers).stay(batch::isOver);
      }
      if (batch.await(Math.min(left, wait))) {
        return;
      }
      wait = Math.min(2 * wait, LONGEST_WAIT_NANOS);
      joining = Math.min(2 * joining, concurrency);
    }
  }

  /** A directory is not to be used any more: its blocks are absent to all callers that wait. */
  public void directoryIsDown() {
    waiting.forEach(this::giveUpHidden);
  }

  private void ask(@Nullable LookupBatch batch, Volume volume) {
    if (batch == null) {
      return;
    }
    for (int i = batch.take(volume.number); i >= 0; i = batch.take(volume.number)) {
      long high = batch.ids.high(i);
      long low = batch.ids.low(i);
      boolean isKnown = batch.stopsAtMiss && index.contains(high, low);
      batch.answer(i, isKnown || isPresent(volume, high, low));
    }
  }

  private boolean isPresent(Volume volume, long high, long low) {
    try {
      return volume.beginLookup() && files.isPresent(threadPath.get(), high, low);
    } catch (FileException e) {
      // First: the failure may open the breaker, and then the caller goes on.
      metrics.lookupErrors.increment();
      volume.fault(e);
      if (recentErrors.isNews("errno " + e.errno())) {
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
      volumes.pause();
    }
  }

  /** Ends the look-ups with the answers they have, and joins the threads. */
  @Override
  public void close() {
    threads.forEach(ForkJoinPool::shutdown);
    waiting.forEach(LookupBatch::stop);
    if (!own.join(LONGEST_CLOSE)) {
      LOG.warn("{}: a look-up still waits for the file system", files.paths.store());
    }
  }
}
