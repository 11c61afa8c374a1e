package ucm.store.nfs;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.MemoryRegion;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.platform.device.EngineDevice;
import ucm.platform.device.FreeSlots;
import ucm.platform.libc.FileException;
import ucm.platform.memory.HugeMemory;

/**
 * Moves device memory to and from files through a bounded number of buffers.
 *
 * <p>A task waits in line until there are buffers for its next chunk of shards; a chunk has all the buffers
 * it will need, so chunks never wait for one another. The thread that gives buffers back starts the
 * next chunks. No thread is kept waiting: threads of the device copy, those of the file store read and write.
 */
final class Staging {

  private static final Logger LOG = LoggerFactory.getLogger(NfsStore.class);
  private static final Duration JOIN = Duration.ofSeconds(5);
  // As much as the file store moves at once.
  private static final long CHUNK_BYTES = 4L << 20;
  // So that some chunks are on their way to the device while others are with the files.
  private static final int CHUNKS_AT_ONCE = 4;

  /**
   * A load or dump of device memory. Its shards go through the buffers in chunks; a dump is settled when the
   * files have all of it.
   *
   * <p>The thread that begins a shard, one of the device to copy it or the one of the deadlines, is the only
   * one to end it: the engine's memory is not touched after that, whatever the file system still does with
   * a buffer.
   */
  static final class StagedTask extends TransferTask {

    // Guarded by the lock of staging: shards given to chunks, and chunks that are not done.
    int taken;
    int openChunks;

    private final Staging staging;
    // Guarded by itself.
    private final BitSet expired = new BitSet();

    StagedTask(long id, Transfer transfer, Staging staging) {
      super(id, transfer);
      this.staging = staging;
    }

    /** Where the chunk ends that begins with {@link #taken}: whole blocks if they are not too large. */
    int chunkEnd(int most) {
      BlockIds ids = transfer().ids();
      int limit = Math.min(ids.size(), taken + most);
      int end = limit;
      while (end > taken
          && end < ids.size()
          && ids.high(end) == ids.high(end - 1)
          && ids.low(end) == ids.low(end - 1)) {
        end--;
      }
      return end == taken ? limit : end;
    }

    void start() {
      staging.submit(this);
    }

    @Override
    protected void expire(StoreException why) {
      for (int shard = 0; shard < transfer().shardCount(); shard++) {
        if (begin(shard)) {
          synchronized (expired) {
            expired.set(shard);
          }
          end(shard, ShardOutcome.EXPIRED, why);
        }
      }
      staging.forget(this);
    }

    @Override
    protected boolean settlesWhenCompleted() {
      return false;
    }

    @Override
    protected void collectPending(Set<BlockIds> pending) {
      BlockIds ids = transfer().ids();
      synchronized (expired) {
        for (int i = expired.nextClearBit(0); i < ids.size(); i = expired.nextClearBit(i + 1)) {
          pending.add(BlockIds.of(ids.high(i), ids.low(i)));
        }
      }
    }
  }

  private final NfsConfig config;
  private final int maxWaiting;

  /** Where shards go to and come from. */
  final NfsStore files;

  /** Its threads are there when it is. */
  final EngineDevice device;

  private final AtomicInteger pumps = new AtomicInteger();
  private final Arena arena = Arena.ofShared();
  private @Nullable FreeSlots buffers;

  // Guarded by this.
  private final ArrayDeque<StagedTask> waiting = new ArrayDeque<>();
  private boolean threadsEnded;

  /**
   * Opens the device and allocates the buffers, if there is a device.
   *
   * @param maxWaiting how many tasks may wait for buffers
   * @throws StoreException when the configured device cannot be had, or there is not enough memory
   */
  Staging(NfsConfig config, int maxWaiting, NfsStore files, StoreContext context) {
    this.config = config;
    this.maxWaiting = maxWaiting;
    this.files = files;
    try {
      this.device = EngineDevice.open(config.device(), this::allocate, true);
    } catch (RuntimeException | Error e) {
      freeBuffers();
      throw e;
    }
    if (!device.isThere()) {
      freeBuffers();
    }
    FreeSlots known = buffers;
    if (known != null) {
      context
          .metrics()
          .gauge("nfs_buffers_in_use", "Buffers between device and files in use", known::inUse);
    }
    LOG.info("{}: {}; device: {}", NfsStore.NAME, known == null ? "no buffers" : known, device);
  }

  private FreeSlots allocate() {
    long bytes = config.slots() * config.stride();
    try {
      MemoryRegion region = MemoryRegion.host(HugeMemory.map(bytes, arena));
      FreeSlots allocated = new FreeSlots(region, config.stride(), config.slots());
      buffers = allocated;
      return allocated;
    } catch (FileException e) {
      throw new StoreException(
          "the system did not give the %s bytes of Nfs's buffers: lower %s"
              .formatted(bytes, NfsConfig.BUFFER_NUMBER.name()),
          e);
    }
  }

  private void freeBuffers() {
    buffers = null;
    arena.close();
  }

  /** The buffers; there are some when there is a device. */
  FreeSlots buffers() {
    return Objects.requireNonNull(buffers);
  }

  /** Begins with a task of device memory; throws {@link QueueFullException} when too many wait. */
  void submit(StagedTask task) {
    synchronized (this) {
      if (waiting.size() >= maxWaiting) {
        throw new QueueFullException(
            NfsStore.NAME + " tasks", waiting.size(), CommonKeys.WAITING_QUEUE_DEPTH.name());
      }
      waiting.add(task);
    }
    pump();
  }

  /** Starts what there are buffers for. Does not block; a call within a call leaves it to that one. */
  void pump() {
    if (pumps.getAndIncrement() != 0) {
      return;
    }
    int seen = 1;
    do {
      for (StagedChunk chunk = nextChunk(); chunk != null; chunk = nextChunk()) {
        chunk.start();
      }
      seen = pumps.addAndGet(-seen);
    } while (seen != 0);
  }

  private synchronized @Nullable StagedChunk nextChunk() {
    StagedTask task = waiting.peek();
    if (task == null) {
      return null;
    }
    int first = task.taken;
    int count = task.chunkEnd(mostAtOnce(task.transfer().layout())) - first;
    int[] slots = buffers().take(count);
    if (slots.length == 0) {
      return null;
    }
    task.taken += count;
    task.openChunks++;
    if (task.taken == task.transfer().shardCount()) {
      waiting.remove();
    }
    return new StagedChunk(this, task, first, slots);
  }

  private int mostAtOnce(BlockLayout layout) {
    long bytes = Math.max(CHUNK_BYTES, layout.blockSize());
    int share = Math.max(1, buffers().size() / CHUNKS_AT_ONCE);
    return Math.clamp(bytes / layout.shardSize(), 1, share);
  }

  synchronized void chunkEnded(StagedTask task) {
    task.openChunks--;
    settleIfDone(task);
  }

  /** Takes a task out of the line, as its time has passed. */
  void forget(StagedTask task) {
    synchronized (this) {
      task.taken = task.transfer().shardCount();
      waiting.remove(task);
      settleIfDone(task);
    }
    pump();
  }

  private void settleIfDone(StagedTask task) {
    if (task.openChunks == 0 && task.taken == task.transfer().shardCount()) {
      files.moved(task);
    }
  }

  /** Ends the threads of the device, after the tasks. */
  void close() {
    threadsEnded = device.closeThreads(JOIN);
  }

  /** Gives device and memory back; the files are closed. */
  void release() {
    if (threadsEnded) {
      device.release();
    }
    FreeSlots known = buffers;
    if (known == null) {
      return;
    }
    if (threadsEnded && known.inUse() == 0) {
      freeBuffers();
    } else {
      LOG.warn("Nfs keeps its {}: the device or the file system may still use some of them", known);
    }
  }
}
