package ucm.store.file.block;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.platform.libc.FileOperations;
import ucm.store.file.config.FileStoreMetrics;

/**
 * Writes shards to files. A block whose shards come together is written in one go; one whose shards come apart,
 * in several tasks, in any order, by several threads, is an unfinished {@link BlockDraft} meanwhile. Either way it
 * gets its footer and its name only when it is whole, and a fault removes its temporary file. Bounded. Thread-safe.
 */
public final class BlockWriter implements FileTask.Mover {

  /** Most drafts; dumps of one more block are refused. */
  static final int MAX_BLOCKS = 1 << 16;

  private static final long RECHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  /** Has the next flush report a block. */
  public interface Failures {
    void failed(long idHigh, long idLow, @Nullable Throwable why);
  }

  private final BlockFiles files;
  private final Failures failures;
  private final FileStoreMetrics metrics;
  private final ThreadLocal<ShardIo> ios;

  // Unfinished blocks. One that found no room stays until all of its shards were refused, or none
  // comes for a time.
  private final ConcurrentMap<BlockIds, BlockDraft> drafts = new ConcurrentHashMap<>();

  public BlockWriter(BlockFiles files, Failures failures, ThreadLocal<ShardIo> ios) {
    this.files = files;
    this.failures = failures;
    this.metrics = files.metrics;
    this.ios = ios;
  }

  /** How many blocks are unfinished. */
  public int unfinished() {
    return (int) drafts.values().stream().filter(draft -> !draft.hasEnded()).count();
  }

  @Override
  public void move(FileTask task, int from, int to) {
    ShardIo io = ios.get();
    io.idHigh = task.transfer().ids().high(from);
    io.idLow = task.transfer().ids().low(from);
    try {
      while (!tryMove(task, from, to, io)) {
        // Again only when an unfinished block ended while it was read.
      }
    } finally {
      io.clear();
    }
  }

  private boolean tryMove(FileTask task, int from, int to, ShardIo io) {
    @Nullable BlockDraft draft = find(io.idHigh, io.idLow);
    // A shard was found in an unfinished block, which has ended since: its memory is gone.
    boolean isBegun = IntStream.range(from, to).anyMatch(task::hasEnded);
    if (draft == null || isBegun || draft.hasEnded()) {
      if (files.isPresent(io.block, io.idHigh, io.idLow)) {
        metrics.presentBlocks.increment();
        task.endOk(from, to);
        return true;
      }
      if (isBegun) {
        throw new StoreException(
            ("%s did not store block %s: shards of it that other dumps had brought were lost with"
                    + " one that failed: dump it again")
                .formatted(files.paths.store(), BlockIds.hex(io.idHigh, io.idLow)));
      }
      if (isWholeBlock(task.transfer(), from, to)) {
        BlockDraft.writeWhole(files, task.transfer(), from, to, io);
        metrics.wrote(to - from, files.format.layout());
        metrics.committedBlocks.increment();
        task.endOk(from, to);
        return true;
      }
      if (draft != null && refuse(draft, task, from, to)) {
        return true;
      }
      draft = findOrBegin(io.idHigh, io.idLow, task.id());
      if (draft == null) {
        task.endRest(from, to, ShardOutcome.REFUSED, tooManyDrafts());
        return true;
      }
    }
    return write(draft, task, from, to, io);
  }

  private static boolean isWholeBlock(Transfer transfer, int from, int to) {
    return to - from == transfer.layout().shardCount()
        && IntStream.range(from, to).allMatch(i -> transfer.shardIndex(i) == i - from);
  }

  private StoreException tooManyDrafts() {
    return new StoreException(
        ("%s holds %d blocks of which not all shards have come, and takes no more of them: dump the"
                + " shards of a block closer together")
            .formatted(files.paths.store(), MAX_BLOCKS));
  }

  private @Nullable BlockDraft find(long idHigh, long idLow) {
    return drafts.isEmpty() ? null : drafts.get(BlockIds.of(idHigh, idLow));
  }

  /** The draft of a block, begun when there is none; null when there are too many. */
  private @Nullable BlockDraft findOrBegin(long idHigh, long idLow, long task) {
    BlockIds id = BlockIds.of(idHigh, idLow);
    return drafts.size() < MAX_BLOCKS
        ? drafts.computeIfAbsent(
            id, _ -> new BlockDraft(files, idHigh, idLow, task, files.clock.getAsLong()))
        : drafts.get(id);
  }

  /** Writes and ends shards; false when the block ended meanwhile, and the rest must be tried again. */
  private boolean write(BlockDraft draft, FileTask task, int from, int to, ShardIo io) {
    draft.broughtBy(task.id());
    int start = from;
    while (start < to) {
      if (isDone(draft, task, start)) {
        task.endOk(start, start + 1);
        start++;
        continue;
      }
      int end = start + 1;
      while (end < to && !isDone(draft, task, end)) {
        end++;
      }
      if (!writeRun(draft, task, start, end, io)) {
        draft.awaitEnd();
        return false;
      }
      start = end;
    }
    return true;
  }

  private static boolean isDone(BlockDraft draft, FileTask task, int shard) {
    return task.hasEnded(shard) || draft.has(task.transfer().shardIndex(shard));
  }

  private boolean writeRun(BlockDraft draft, FileTask task, int from, int to, ShardIo io) {
    try {
      int fd = draft.enter(io);
      if (fd == FileOperations.ABSENT) {
        return false;
      }
      io.begin(task.transfer(), from, to, ShardIo.Footer.NOT);
      io.write(fd, io.temp, false);
      for (int i = from; i < to; i++) {
        draft.wrote(task.transfer().shardIndex(i), io.crcs[i - from]);
      }
      metrics.wrote(to - from, files.format.layout());
    } catch (Throwable e) {
      draft.fail(e);
    }
    boolean isLast = draft.leave(io.temp, files.clock.getAsLong());
    if (draft.foundNoRoom()) {
      var _ = draft.refuse(task.transfer(), from, to);
    }
    if (isLast) {
      end(draft, io);
    }
    RuntimeException fault = draft.failure();
    if (fault != null) {
      throw fault;
    }
    task.endOk(from, to);
    return true;
  }

  /**
   * Refuses shards of a block of which others found no room. A shard that comes a second time is a new
   * dump of the block, which is tried again. Returns false when they are to be written.
   */
  private boolean refuse(BlockDraft draft, FileTask task, int from, int to) {
    boolean isRefused = draft.refuse(task.transfer(), from, to);
    if (isRefused) {
      task.endRest(from, to, ShardOutcome.REFUSED, draft.failure());
    }
    if (!isRefused || !draft.awaitsShards()) {
      drafts.remove(draft.id, draft);
    }
    return isRefused;
  }

  /** Commits a whole block, or removes a failed one and throws why; the caller owns it alone. */
  private void end(BlockDraft draft, ShardIo io) {
    try {
      RuntimeException failure = draft.failure();
      if (failure != null) {
        draft.discard(false);
        throw failure;
      }
      draft.commit(io);
      metrics.committedBlocks.increment();
    } catch (Throwable e) {
      // Before the block is called ended, so that a flush that waits for it reports this.
      failures.failed(draft.idHigh, draft.idLow, e);
      throw e;
    } finally {
      ended(draft);
    }
  }

  private void ended(BlockDraft draft) {
    if (!draft.foundNoRoom() || !draft.awaitsShards()) {
      drafts.remove(draft.id, draft);
    }
    draft.ended();
  }

  /**
   * Gives up the blocks for which nothing came for a time. Makes no system call: a thread of its own
   * removes their files. Those whose directory is down wait until it works again.
   */
  public void giveUpDue(long now, long timeoutNanos) {
    for (BlockDraft draft : drafts.values()) {
      boolean isDue = now - draft.lastNanos() >= timeoutNanos;
      if (isDue && draft.hasEnded()) {
        drafts.remove(draft.id, draft);
      } else if (isDue
          && !files.volumes.of(draft.idHigh, draft.idLow).isDown()
          && !endIfStored(draft)
          && !files.volumes.isCleanupFull()
          && giveUp(draft, now, timeoutNanos)) {
        files.volumes.later(() -> discard(draft));
      }
    }
  }

  /**
   * Ends a block of which no shard is being written when it is known that another writer has stored it
   * meanwhile: a caller that was told so dumps no more of it. Makes no system call. Returns whether it did.
   */
  private boolean endIfStored(BlockDraft draft) {
    if (!files.index.contains(draft.idHigh, draft.idLow)
        || files.volumes.isCleanupFull()
        || !draft.giveUp(draft.lastNanos(), 0, null)) {
      return false;
    }
    metrics.presentBlocks.increment();
    ended(draft);
    files.volumes.later(() -> discard(draft));
    return true;
  }

  /**
   * Waits, until the given {@link System#nanoTime}, for the blocks that tasks up to one have begun; {@code
   * pending} takes those that have not ended then. Another writer may store one at any time, unnoticed.
   */
  public void await(long lastTask, long end, Set<BlockIds> pending) throws InterruptedException {
    for (BlockDraft draft : drafts.values()) {
      boolean ended = draft.firstTask() > lastTask || draft.hasEnded() || endIfStored(draft);
      while (!ended && end - System.nanoTime() > 0) {
        long left = Math.min(end - System.nanoTime(), RECHECK_NANOS);
        ended = draft.awaitEnd(left) || endIfStored(draft);
      }
      if (!ended) {
        pending.add(draft.id);
      }
    }
  }

  /** Gives up all blocks and removes their files, at close. */
  public void giveUpAll() {
    for (BlockDraft draft : drafts.values()) {
      if (!endIfStored(draft) && giveUp(draft, draft.lastNanos(), 0)) {
        discard(draft);
      }
    }
  }

  private boolean giveUp(BlockDraft draft, long now, long timeoutNanos) {
    StoreException why =
        new StoreException(
            ("block %s was given up: its last shards were not dumped within timeout_ms of the ones"
                    + " before, or before the store was closed")
                .formatted(draft.id.hex(0)));
    if (!draft.giveUp(now, timeoutNanos, why)) {
      return false;
    }
    metrics.givenUpBlocks.increment();
    failures.failed(draft.idHigh, draft.idLow, why);
    ended(draft);
    return true;
  }

  private void discard(BlockDraft draft) {
    draft.discard(files.volumes.of(draft.idHigh, draft.idLow).isDown());
  }
}
