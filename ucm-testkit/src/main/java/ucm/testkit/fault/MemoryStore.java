package ucm.testkit.fault;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreLife;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * A plain correct store on the heap, to be the stage after one under test. It is not bounded, has no
 * threads (everything happens on the caller's) and is a last stage.
 *
 * <p>Made with a {@link Volume}, its blocks are durable and found by the next store made with the
 * same volume, as with a disk; made without, they are gone when it is closed.
 */
@StoreName("Memory")
public final class MemoryStore implements Store {

  /** Where blocks outlive the stores that keep them. Thread-safe. */
  public static final class Volume {

    private final Map<Id, Whole> blocks = new ConcurrentHashMap<>();

    /** Holds nothing. */
    public Volume() {}

    /** How many blocks it holds. */
    public int size() {
      return blocks.size();
    }

    /** Removes a block without telling the stores, as an operator's {@code rm} would. */
    public void remove(BlockIds ids, int i) {
      blocks.remove(Id.of(ids, i));
    }
  }

  private record Id(long high, long low) {
    private static Id of(BlockIds ids, int i) {
      return new Id(ids.high(i), ids.low(i));
    }
  }

  private record Whole(BlockLayout layout, MemorySegment bytes) {}

  private record Partial(MemorySegment bytes, BitSet shards) {}

  private final StoreLife life = new StoreLife("Memory");
  private final AtomicLong taskNumbers = new AtomicLong();
  // Held for reading while the store is used, so that close waits for those who use it.
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();
  private final Volume volume;
  private final boolean durable;
  // Guarded by itself, which is notified whenever a block leaves it.
  private final Map<Id, Partial> partials = new ConcurrentHashMap<>();
  private Optional<BlockLayout> layout = Optional.empty();
  private boolean scheduler;

  /** A store whose blocks are gone when it is closed. */
  public MemoryStore() {
    this(new Volume(), false);
  }

  /** A store whose blocks are durable in a volume. */
  public MemoryStore(Volume volume) {
    this(volume, true);
  }

  private MemoryStore(Volume volume, boolean durable) {
    this.volume = volume;
    this.durable = durable;
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    List<ConfigKey<?>> keys = new ArrayList<>(CommonKeys.LAYOUT_KEYS);
    keys.add(CommonKeys.DEVICE_ID);
    return keys;
  }

  @Override
  public void configure(StoreConfig config) {
    life.configured();
    scheduler = config.get(CommonKeys.DEVICE_ID) < 0;
    layout = CommonKeys.layout(config);
  }

  @Override
  public void open(StoreContext context) {
    life.opened();
    Store next = context.next();
    if (next != null) {
      close();
      throw new StoreException(
          "Memory is a last stage and takes no next stage; found " + next.name());
    }
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    life.requireOpen();
    return whole(ids);
  }

  private BitSet whole(BlockIds ids) {
    BitSet found = new BitSet(ids.size());
    for (int i = 0; i < ids.size(); i++) {
      found.set(i, find(Id.of(ids, i)) != null);
    }
    return found;
  }

  /** A block of this layout; one that a store of another layout left in the volume is a miss. */
  private @Nullable Whole find(Id id) {
    Whole block = volume.blocks.get(id);
    return block != null && block.layout().equals(layout.orElseThrow()) ? block : null;
  }

  @Override
  public Task load(Transfer transfer) {
    use.readLock().lock();
    try {
      TransferTask task = begin(transfer);
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        Whole block = find(Id.of(transfer.ids(), shard));
        if (block == null) {
          task.end(shard, ShardOutcome.MISSING, null);
        } else {
          copy(transfer, shard, block.bytes(), false);
          task.ok(shard);
        }
      }
      return task;
    } finally {
      use.readLock().unlock();
    }
  }

  @Override
  public Task dump(Transfer transfer) {
    use.readLock().lock();
    try {
      TransferTask task = begin(transfer);
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        take(transfer, shard);
        task.ok(shard);
      }
      return task;
    } finally {
      use.readLock().unlock();
    }
  }

  private void take(Transfer transfer, int shard) {
    BlockLayout cut = transfer.layout();
    Id id = Id.of(transfer.ids(), shard);
    synchronized (partials) {
      if (find(id) != null) {
        return;
      }
      Partial partial =
          partials.computeIfAbsent(
              id,
              _ ->
                  new Partial(
                      MemorySegment.ofArray(new byte[Math.toIntExact(cut.blockSize())]),
                      new BitSet()));
      copy(transfer, shard, partial.bytes(), true);
      partial.shards().set(transfer.shardIndex(shard));
      if (partial.shards().cardinality() == cut.shardCount()) {
        volume.blocks.put(id, new Whole(cut, partial.bytes()));
        partials.remove(id);
        partials.notifyAll();
      }
    }
  }

  private static void copy(Transfer transfer, int shard, MemorySegment block, boolean toBlock) {
    BlockLayout layout = transfer.layout();
    long at = transfer.shardIndex(shard) * layout.shardSize();
    for (int segment = 0; segment < transfer.pieceCount(); segment++) {
      long size = transfer.pieceSize(segment);
      MemorySegment inBlock = block.asSlice(at, size);
      MemorySegment inMemory =
          transfer.region(shard, segment).segment().asSlice(transfer.offset(shard, segment), size);
      if (toBlock) {
        inBlock.copyFrom(inMemory);
      } else {
        inMemory.copyFrom(inBlock);
      }
      at += size;
    }
  }

  private TransferTask begin(Transfer transfer) {
    life.requireOpen();
    if (scheduler) {
      throw new StoreException("Memory has the scheduler role (device_id -1) and moves no data");
    }
    if (!transfer.layout().equals(layout.orElseThrow())) {
      throw new StoreException(
          transfer + " is cut as " + transfer.layout() + "; Memory keeps " + layout.orElseThrow());
    }
    if (!transfer.isHost()) {
      throw new StoreException("Memory copies host memory only; " + transfer + " is on a device");
    }
    return new TransferTask(taskNumbers.incrementAndGet(), transfer);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    life.requireOpen();
    if (!durable) {
      return FlushResult.clean();
    }
    long start = System.nanoTime();
    synchronized (partials) {
      List<Id> pending = new ArrayList<>(partials.keySet());
      while (true) {
        pending.removeIf(id -> !partials.containsKey(id));
        long left = timeout.toNanos() - (System.nanoTime() - start);
        if (pending.isEmpty() || left <= 0) {
          return new FlushResult(pending.size(), BlockIds.empty(), 0, null);
        }
        TimeUnit.NANOSECONDS.timedWait(partials, left);
      }
    }
  }

  @Override
  public BitSet durable(BlockIds ids) {
    life.requireOpen();
    return durable ? whole(ids) : new BitSet();
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    life.requireOpen();
    synchronized (partials) {
      for (int i = 0; i < ids.size(); i++) {
        volume.remove(ids, i);
        partials.remove(Id.of(ids, i));
      }
      partials.notifyAll();
    }
    BitSet gone = new BitSet(ids.size());
    gone.set(0, ids.size());
    return gone;
  }

  @Override
  public void close() {
    use.writeLock().lock();
    try {
      life.closed();
    } finally {
      use.writeLock().unlock();
    }
  }

  @Override
  public String toString() {
    return life + " with " + volume.size() + " blocks";
  }
}
