package ucm.store.s3.block;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;

/**
 * Blocks that come shard by shard, in memory until they are whole and stored: an object cannot be written in
 * parts. A task has ended when its bytes are here. The memory is bounded; what does not fit is refused, and a
 * block of which no shard has come for the time of a task is given up for one that comes. Thread-safe.
 */
public final class Drafts {

  private static final int PAGE = 4096;

  private static final class Draft {
    final BlockIds id;
    final MemorySegment memory;
    final int[] crcs;
    final BitSet claimed = new BitSet();
    final BitSet copied = new BitSet();
    boolean whole;
    long touchedNanos;

    Draft(BlockIds id, MemorySegment memory, int shards) {
      this.id = id;
      this.memory = memory;
      this.crcs = new int[shards];
    }

    /** Whether a thread is copying into it, or a request is reading from it. */
    boolean isBusy() {
      return whole || claimed.cardinality() > copied.cardinality();
    }
  }

  private final Bucket bucket;
  private final long timeoutNanos;
  private final int most;
  private final BiConsumer<BlockIds, StoreException> failed;
  private final Arena arena = Arena.ofShared();
  // Guarded by this, as is what follows; the longest untouched first.
  private final SequencedMap<BlockIds, Draft> open = new LinkedHashMap<>();
  private final Deque<MemorySegment> free = new ArrayDeque<>();
  private int made;
  private boolean closed;

  /**
   * No drafts.
   *
   * @param bytes for all of them; there is room for one at least
   * @param failed told of each block that will not be stored
   */
  public Drafts(
      Bucket bucket, long bytes, long timeoutNanos, BiConsumer<BlockIds, StoreException> failed) {
    this.bucket = bucket;
    this.timeoutNanos = timeoutNanos;
    this.most = Math.clamp(bytes / bucket.format().layout().blockSize(), 1, 1 << 20);
    this.failed = failed;
  }

  /** Has a worker copy a shard into its block's draft, and store the block when it was the last. */
  public void add(TransferTask task, int shard) {
    bucket.workers().execute(() -> copy(task, shard));
  }

  private void copy(TransferTask task, int shard) {
    if (!task.begin(shard)) {
      return;
    }
    Transfer transfer = task.transfer();
    int index = transfer.shardIndex(shard);
    BlockIds id = BlockIds.of(transfer.ids().high(shard), transfer.ids().low(shard));
    Draft draft;
    boolean isMine;
    synchronized (this) {
      draft = find(id);
      isMine = draft != null && !draft.claimed.get(index);
      if (draft != null) {
        draft.claimed.set(index);
      }
    }
    if (draft == null) {
      task.end(shard, ShardOutcome.REFUSED, noRoom(id));
      return;
    }
    if (isMine) {
      copy(draft, transfer, shard, index);
    }
    task.ok(shard);
  }

  private StoreException noRoom(BlockIds id) {
    return new StoreException(
        ("S3 has no memory for block %s, which comes in parts: %s blocks are waiting for their"
                + " other shards, or to be stored; raise s3_draft_mb")
            .formatted(id.hex(0), most));
  }

  /** The draft of a block, a new one when there is none; null when there is no room. */
  private @Nullable Draft find(BlockIds id) {
    Draft draft = open.remove(id);
    if (draft == null) {
      MemorySegment memory = memory();
      if (memory == null) {
        return null;
      }
      draft = new Draft(id, memory, bucket.format().layout().shardCount());
    }
    draft.touchedNanos = bucket.clock().getAsLong();
    open.putLast(id, draft);
    return draft;
  }

  private @Nullable MemorySegment memory() {
    if (free.isEmpty() && made == most) {
      giveUpOld(1);
    }
    if (free.isEmpty() && made < most && !closed) {
      made++;
      return arena.allocate(bucket.format().layout().blockSize(), PAGE);
    }
    return free.poll();
  }

  /** Gives up some blocks whose other shards do not seem to come. */
  private void giveUpOld(int some) {
    long now = bucket.clock().getAsLong();
    List<Draft> old =
        open.values().stream()
            .filter(draft -> !draft.isBusy() && now - draft.touchedNanos >= timeoutNanos)
            .limit(some)
            .toList();
    for (Draft draft : old) {
      release(draft);
      bucket.metrics().givenUpBlocks.increment();
      failed.accept(
          draft.id,
          new StoreException(
              "S3 has given block %s up: %s of its %s shards never came"
                  .formatted(
                      draft.id.hex(0),
                      draft.crcs.length - draft.copied.cardinality(),
                      draft.crcs.length)));
    }
  }

  private void release(Draft draft) {
    open.remove(draft.id);
    free.push(draft.memory);
    notifyAll();
  }

  private void copy(Draft draft, Transfer transfer, int shard, int index) {
    CRC32C crc = new CRC32C();
    long at = index * transfer.layout().shardSize();
    for (int piece = 0; piece < transfer.pieceCount(); piece++) {
      MemorySegment bytes = transfer.segment(shard, piece);
      MemorySegment.copy(bytes, 0, draft.memory, at, bytes.byteSize());
      crc.update(draft.memory.asSlice(at, bytes.byteSize()).asByteBuffer());
      at += bytes.byteSize();
    }
    boolean isLast;
    synchronized (this) {
      draft.crcs[index] = (int) crc.getValue();
      draft.copied.set(index);
      isLast = draft.copied.cardinality() == draft.crcs.length;
      draft.whole = isLast;
      notifyAll();
    }
    if (isLast) {
      bucket.window().add(() -> store(draft));
    }
  }

  private void store(Draft draft) {
    new BlockPut(
            bucket,
            new ObjectBody(bucket.format(), draft.id, List.of(draft.memory), draft.crcs),
            bucket.clock().getAsLong() + timeoutNanos,
            bucket.known().removals(),
            (outcome, fault) -> {
              if (outcome != ShardOutcome.OK) {
                failed.accept(
                    draft.id,
                    fault == null ? new StoreException("S3 did not store a block") : fault);
              }
              synchronized (this) {
                release(draft);
              }
              bucket.window().ended(false);
            })
        .send();
  }

  /** A block is stored, so what is here of it is not needed, unless it is being stored as well. */
  public synchronized void drop(BlockIds id) {
    Draft draft = open.get(id);
    if (draft != null && !draft.isBusy()) {
      release(draft);
    }
  }

  /**
   * Waits until the blocks that are whole are stored, or have failed.
   *
   * @param pending takes the ids of those that are not, and of those that lack shards
   */
  public synchronized void flush(Duration timeout, Set<BlockIds> pending)
      throws InterruptedException {
    long end = System.nanoTime() + timeout.toNanos();
    giveUpOld(Integer.MAX_VALUE);
    List<Draft> asked = open.values().stream().filter(Draft::isBusy).toList();
    for (Draft draft : asked) {
      long left = end - System.nanoTime();
      while (open.get(draft.id) == draft && draft.isBusy() && left > 0) {
        TimeUnit.NANOSECONDS.timedWait(this, left);
        left = end - System.nanoTime();
      }
    }
    pending.addAll(open.keySet());
  }

  /** Gives the memory back; no request reads it any more. */
  public void close() {
    synchronized (this) {
      closed = true;
      open.clear();
      free.clear();
    }
    arena.close();
  }
}
