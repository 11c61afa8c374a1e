package ucm.testkit.fault;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import ucm.api.AbstractStore;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.ShardOutcome;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;

/**
 * A plain correct store on the heap, to be the stage after one under test. It is not bounded, has no
 * threads (everything happens on the caller's) and is a last stage.
 *
 * <p>Made with a {@link Volume}, its blocks are durable and found by the next store made with the
 * same volume, as with a disk; made without, they are gone when it is closed.
 */
@StoreName("Memory")
public final class MemoryStore extends AbstractStore {

  /** Where blocks outlive the stores that keep them. Thread-safe. */
  public static final class Volume {

    private final Map<BlockIds, Whole> blocks = new ConcurrentHashMap<>();

    /** Holds nothing. */
    public Volume() {}

    /** How many blocks it holds. */
    public int size() {
      return blocks.size();
    }

    /** Removes a block without telling the stores, as an operator's {@code rm} would. */
    public void remove(BlockIds ids, int i) {
      blocks.remove(id(ids, i));
    }
  }

  private record Whole(BlockLayout layout, MemorySegment bytes) {}

  private record Partial(MemorySegment bytes, BitSet shards) {}

  private final Volume volume;
  private final boolean durable;
  // Guarded by itself, which is notified whenever a block leaves it.
  private final Map<BlockIds, Partial> partials = new ConcurrentHashMap<>();

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
  protected void doOpen(StoreContext context) {}

  @Override
  protected BitSet doLookup(BlockIds ids) {
    return whole(ids);
  }

  private BitSet whole(BlockIds ids) {
    BitSet found = new BitSet(ids.size());
    for (int i = 0; i < ids.size(); i++) {
      found.set(i, find(id(ids, i)) != null);
    }
    return found;
  }

  private static BlockIds id(BlockIds ids, int i) {
    return BlockIds.of(ids.high(i), ids.low(i));
  }

  /** A block of this layout; one that a store of another layout left in the volume is a miss. */
  private @Nullable Whole find(BlockIds id) {
    Whole block = volume.blocks.get(id);
    return block != null && block.layout().equals(layout()) ? block : null;
  }

  @Override
  protected void doLoad(TransferTask task) {
    task.moveAll(this::give);
  }

  @Override
  protected void doDump(TransferTask task) {
    task.moveAll(this::take);
  }

  private ShardOutcome give(Transfer transfer, int shard) {
    Whole block = find(id(transfer.ids(), shard));
    if (block == null) {
      return ShardOutcome.MISSING;
    }
    copy(transfer, shard, block.bytes(), false);
    return ShardOutcome.OK;
  }

  private ShardOutcome take(Transfer transfer, int shard) {
    BlockLayout cut = transfer.layout();
    BlockIds id = id(transfer.ids(), shard);
    synchronized (partials) {
      if (find(id) != null) {
        return ShardOutcome.OK;
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
      return ShardOutcome.OK;
    }
  }

  private static void copy(Transfer transfer, int shard, MemorySegment block, boolean toBlock) {
    BlockLayout layout = transfer.layout();
    long at = transfer.shardIndex(shard) * layout.shardSize();
    for (int segment = 0; segment < transfer.pieceCount(); segment++) {
      long size = transfer.pieceSize(segment);
      MemorySegment inBlock = block.asSlice(at, size);
      MemorySegment inMemory = transfer.segment(shard, segment);
      if (toBlock) {
        inBlock.copyFrom(inMemory);
      } else {
        inMemory.copyFrom(inBlock);
      }
      at += size;
    }
  }

  @Override
  protected void doFlush(long lastTask, Duration timeout, Set<BlockIds> pending)
      throws InterruptedException {
    if (!durable) {
      return;
    }
    long start = System.nanoTime();
    synchronized (partials) {
      List<BlockIds> lacking = new ArrayList<>(partials.keySet());
      while (true) {
        lacking.removeIf(id -> !partials.containsKey(id));
        long left = timeout.toNanos() - (System.nanoTime() - start);
        if (lacking.isEmpty() || left <= 0) {
          pending.addAll(lacking);
          return;
        }
        TimeUnit.NANOSECONDS.timedWait(partials, left);
      }
    }
  }

  @Override
  public BitSet durable(BlockIds ids) {
    requireOpen();
    return durable ? whole(ids) : new BitSet();
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen();
    synchronized (partials) {
      for (int i = 0; i < ids.size(); i++) {
        volume.remove(ids, i);
        partials.remove(id(ids, i));
      }
      partials.notifyAll();
    }
    BitSet gone = new BitSet(ids.size());
    gone.set(0, ids.size());
    return gone;
  }

  @Override
  public String toString() {
    return super.toString() + " with " + volume.size() + " blocks";
  }
}
