package ucm.store.file.block;

import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.space.SpaceRefusedException;

/**
 * Writes blocks whose shards come apart: in several tasks, in any order, by several threads. Bounded.
 * Thread-safe.
 */
public final class PartialWriter {

  /** Most unfinished blocks; dumps of one more are refused. */
  static final int MAX_BLOCKS = 1 << 16;

  private static final long RECHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  /** Has the next flush report a block. */
  public interface Failures {
    void failed(long idHigh, long idLow, Throwable why);
  }

  /** The shards of a block that came when there was no room for it. */
  private record Refusal(BitSet shards, SpaceRefusedException why) {}

  private final BlockFiles files;
  private final Failures failures;
  private final FileStoreMetrics metrics;
  private final LongSupplier clock;
  private final DirectoryHealth health;
  private final DeferredCleanup cleanup;

  private final ConcurrentMap<BlockIds, PartialBlock> blocks = new ConcurrentHashMap<>();
  // Guarded by itself; the oldest is forgotten.
  private final Map<BlockIds, Refusal> refusals = new LinkedHashMap<>();

  public PartialWriter(
      BlockFiles files,
      Failures failures,
      FileStoreMetrics metrics,
      LongSupplier clock,
      DirectoryHealth health,
      DeferredCleanup cleanup) {
    this.files = files;
    this.failures = failures;
    this.metrics = metrics;
    this.clock = clock;
    this.health = health;
    this.cleanup = cleanup;
  }

  /** The unfinished block of an id, or null. */
  @Nullable PartialBlock find(long idHigh, long idLow) {
    return blocks.isEmpty() ? null : blocks.get(BlockIds.of(idHigh, idLow));
  }

  /** The unfinished block of an id, begun when there is none; null when there is no room for it. */
  @Nullable PartialBlock findOrBegin(long idHigh, long idLow, long task) {
    BlockIds id = BlockIds.of(idHigh, idLow);
    return blocks.size() < MAX_BLOCKS
        ? blocks.computeIfAbsent(
            id, _ -> new PartialBlock(files, idHigh, idLow, task, clock.getAsLong()))
        : blocks.get(id);
  }

  /** How many blocks are unfinished. */
  public int size() {
    return blocks.size();
  }

  /** Writes and ends shards; false when the block ended meanwhile, and the rest must be tried again. */
  boolean write(PartialBlock partial, FileTask task, int from, int to, ShardIo io) {
    partial.broughtBy(task.id());
    int start = from;
    while (start < to) {
      if (isDone(partial, task, start)) {
        task.endOk(start, start + 1);
        start++;
        continue;
      }
      int end = start + 1;
      while (end < to && !isDone(partial, task, end)) {
        end++;
      }
      if (!writeRun(partial, task, start, end, io)) {
        partial.awaitEnd();
        return false;
      }
      start = end;
    }
    return true;
  }

  private static boolean isDone(PartialBlock partial, FileTask task, int shard) {
    return task.hasEnded(shard) || partial.has(task.transfer().shardIndex(shard));
  }

  private boolean writeRun(PartialBlock partial, FileTask task, int from, int to, ShardIo io) {
    RuntimeException failure = null;
    try {
      int fd = partial.enter(io);
      if (fd == FileOperations.ABSENT) {
        return false;
      }
      io.begin(task.transfer(), from, to, ShardIo.Footer.NOT);
      io.write(fd, io.temp, false);
      for (int i = from; i < to; i++) {
        partial.wrote(task.transfer().shardIndex(i), io.crcs[i - from]);
      }
      metrics.wrote(to - from, files.format.layout());
    } catch (RuntimeException e) {
      failure = e;
      // Before the block ends, so that its other shards find it.
      noteRefusal(task.transfer(), from, to, e);
    }
    if (partial.leave(io.temp, failure, clock.getAsLong())) {
      end(partial, io);
    }
    RuntimeException fault = partial.failure();
    if (fault != null) {
      if (failure == null) {
        noteRefusal(task.transfer(), from, to, fault);
      }
      throw fault;
    }
    task.endOk(from, to);
    return true;
  }

  /**
   * Remembers shards of a block that found no room. Its other shards are refused too: a file begun with
   * them could never become whole, and would hold room that a whole block needs.
   */
  private void noteRefusal(Transfer transfer, int from, int to, RuntimeException why) {
    if (!(why instanceof SpaceRefusedException noRoom)) {
      return;
    }
    BlockIds id = BlockIds.of(transfer.ids().high(from), transfer.ids().low(from));
    synchronized (refusals) {
      if (refusals.size() == MAX_BLOCKS && !refusals.containsKey(id)) {
        refusals.remove(refusals.keySet().iterator().next());
      }
      Refusal refusal = refusals.computeIfAbsent(id, _ -> new Refusal(new BitSet(), noRoom));
      for (int i = from; i < to; i++) {
        refusal.shards.set(transfer.shardIndex(i));
      }
      if (refusal.shards.cardinality() == transfer.layout().shardCount()) {
        refusals.remove(id);
      }
    }
  }

  /**
   * Refuses shards of a block of which others found no room. A shard that comes a second time is a new
   * dump of the block, which is tried again. Returns false when they are to be written.
   */
  boolean refuse(FileTask task, int from, int to) {
    Transfer transfer = task.transfer();
    BlockIds id = BlockIds.of(transfer.ids().high(from), transfer.ids().low(from));
    Refusal refusal;
    synchronized (refusals) {
      refusal = refusals.get(id);
      for (int i = from; i < to && refusal != null; i++) {
        if (refusal.shards.get(transfer.shardIndex(i))) {
          refusals.remove(id);
          refusal = null;
        }
      }
      if (refusal == null) {
        return false;
      }
      noteRefusal(transfer, from, to, refusal.why);
    }
    task.endRest(from, to, ShardOutcome.REFUSED, refusal.why);
    return true;
  }

  /** Commits a whole block, or removes a failed one and throws why; the caller owns it alone. */
  private void end(PartialBlock partial, ShardIo io) {
    int fd = partial.takeFd();
    try {
      RuntimeException failure = partial.failure();
      if (failure != null) {
        throw failure;
      }
      partial.nameTemp(io.temp);
      io.writeFooter(fd, io.temp, partial.crcs());
      int whole = fd;
      fd = FileOperations.ABSENT;
      files.commit(whole, io.temp, io.block, partial.idHigh, partial.idLow);
      metrics.committedBlocks.increment();
    } catch (RuntimeException e) {
      abandon(partial, fd, io.temp);
      // Before the block is called ended, so that a flush that waits for it reports this.
      failures.failed(partial.idHigh, partial.idLow, e);
      throw e;
    } finally {
      ended(partial);
    }
  }

  private void ended(PartialBlock partial) {
    blocks.remove(partial.id, partial);
    partial.ended();
  }

  /**
   * Gives up the blocks for which nothing came for a time. Makes no system call: a thread of its own
   * removes their files. Those whose directory is down wait until it works again.
   */
  public void giveUpDue(long now, long timeoutNanos) {
    for (PartialBlock partial : blocks.values()) {
      if (now - partial.lastNanos() >= timeoutNanos
          && !health.isDown(partial.idHigh, partial.idLow)
          && !endIfStored(partial)
          && !cleanup.isFull()
          && giveUp(partial, now, timeoutNanos)) {
        cleanup.add(() -> removeFile(partial));
      }
    }
  }

  /**
   * Ends a block of which no shard is being written when it is known that another writer has stored it
   * meanwhile: a caller that was told so dumps no more of it. Makes no system call. Returns whether it did.
   */
  private boolean endIfStored(PartialBlock partial) {
    if (!files.index.contains(partial.idHigh, partial.idLow)
        || cleanup.isFull()
        || !partial.giveUp(partial.lastNanos(), 0, null)) {
      return false;
    }
    metrics.presentBlocks.increment();
    ended(partial);
    cleanup.add(() -> removeFile(partial));
    return true;
  }

  /**
   * Waits, until the given {@link System#nanoTime}, for the blocks that tasks up to one have begun; {@code
   * pending} takes those that have not ended then. Another writer may store one at any time, unnoticed.
   */
  public void await(long lastTask, long end, Set<BlockIds> pending) throws InterruptedException {
    for (PartialBlock partial : blocks.values()) {
      boolean ended = partial.firstTask() > lastTask || endIfStored(partial);
      while (!ended && end - System.nanoTime() > 0) {
        long left = Math.min(end - System.nanoTime(), RECHECK_NANOS);
        ended = partial.awaitEnd(left) || endIfStored(partial);
      }
      if (!ended) {
        pending.add(partial.id);
      }
    }
  }

  /** Gives up all blocks and removes their files, at close. */
  public void giveUpAll() {
    for (PartialBlock partial : blocks.values()) {
      if (!endIfStored(partial) && giveUp(partial, partial.lastNanos(), 0)) {
        removeFile(partial);
      }
    }
  }

  private boolean giveUp(PartialBlock partial, long now, long timeoutNanos) {
    StoreException why =
        new StoreException(
            ("block %s was given up: its last shards were not dumped within timeout_ms of the ones"
                    + " before, or before the store was closed")
                .formatted(partial.id.hex(0)));
    if (!partial.giveUp(now, timeoutNanos, why)) {
      return false;
    }
    metrics.givenUpBlocks.increment();
    failures.failed(partial.idHigh, partial.idLow, why);
    ended(partial);
    return true;
  }

  /** Removes the file of a block that was given up, unless its directory is down; does not throw. */
  private void removeFile(PartialBlock partial) {
    int fd = partial.takeFd();
    if (health.isDown(partial.idHigh, partial.idLow) && partial.isCreated()) {
      files.leave(fd, partial.idHigh, partial.idLow);
    } else {
      abandon(partial, fd, new NativePath());
    }
  }

  private void abandon(PartialBlock partial, int fd, NativePath temp) {
    if (partial.isCreated()) {
      partial.nameTemp(temp);
      files.abandon(fd, temp, partial.idHigh, partial.idLow);
    }
  }
}
