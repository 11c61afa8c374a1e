package ucm.store.fake;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.api.AbstractStore;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.api.StoreName;
import ucm.api.TransferTask;
import ucm.api.admin.Clearable;
import ucm.api.config.ConfigKey;

/**
 * Remembers which blocks were dumped and moves no byte: for measuring everything around the storage,
 * and for replaying traces.
 *
 * <p>A block is there when all its shards were dumped. The {@code buffer_number} blocks used last are
 * remembered, where dumps and loads are uses and look-ups are not; so the hits are those of an LRU
 * cache of that size. A load of a block that is there ends well <em>and leaves the memory as it
 * was</em>. Of blocks that lack shards, 65,536 at the most are remembered besides. Nothing outlives
 * the store, so nothing becomes durable: {@link #flush} has nothing to wait for, and {@link #durable}
 * says no.
 *
 * <p>Everything happens on the caller's thread, so every task has completed when the caller gets it and
 * there is no queue to overflow. Memory on any device is accepted.
 */
@StoreName("Fake")
public final class FakeStore extends AbstractStore implements Clearable {

  private static final long BYTES_PER_BLOCK = 40;

  static final ConfigKey<Integer> BUFFER_NUMBER =
      ConfigKey.integer("buffer_number")
          .range(1, 1 << 28)
          .defaultTo(1 << 20)
          .unit("blocks")
          .doc(
              "How many blocks Fake remembers; the least recently used one makes room. Each takes"
                  + " 40 to 50 bytes of heap, taken when the store opens.");

  /** What there is while the store is open. */
  private record Opened(
      BlockIndex index,
      StoreMetrics.Counter lookupBlocks,
      StoreMetrics.Counter hitBlocks,
      StoreMetrics.Counter loadShards,
      StoreMetrics.Counter missingShards,
      StoreMetrics.Counter dumpShards) {}

  private volatile @Nullable Opened opened;

  /** A store that is not configured yet. */
  public FakeStore() {}

  @Override
  public boolean keepsBytes() {
    return false;
  }

  @Override
  protected boolean takesDeviceMemory() {
    return true;
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    List<ConfigKey<?>> keys = new ArrayList<>(CommonKeys.LAYOUT_KEYS);
    keys.add(CommonKeys.DEVICE_ID);
    keys.add(BUFFER_NUMBER);
    return keys;
  }

  @Override
  protected void doOpen(StoreContext context) {
    StoreMetrics metrics = context.metrics();
    BlockIndex index =
        index(metrics.counter("fake_evicted_blocks", "Blocks that made room for others."));
    metrics.gauge("fake_blocks", "Blocks that Fake remembers.", index::size);
    opened =
        new Opened(
            index,
            metrics.counter("fake_lookup_blocks", "Blocks looked up."),
            metrics.counter("fake_hit_blocks", "Blocks looked up and found."),
            metrics.counter("fake_load_shards", "Shards loaded, found or not."),
            metrics.counter("fake_missing_shards", "Shards loaded and not found."),
            metrics.counter("fake_dump_shards", "Shards dumped."));
  }

  private BlockIndex index(StoreMetrics.Counter evictions) {
    int blocks = value(BUFFER_NUMBER);
    long heap = Runtime.getRuntime().maxMemory();
    if (blocks > heap / BYTES_PER_BLOCK) {
      throw new StoreException(
          ("Fake wants to remember %s blocks of %s bytes, and a heap of at most %s MiB has no room"
                  + " for that: lower %s or raise -Xmx")
              .formatted(blocks, BYTES_PER_BLOCK, heap >> 20, BUFFER_NUMBER));
    }
    return new BlockIndex(blocks, layout().shardCount(), evictions);
  }

  private Opened now() {
    requireOpen();
    Opened now = opened;
    if (now == null) {
      throw new StoreClosedException(name());
    }
    return now;
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    Opened now = now();
    BitSet found = now.index().lookup(ids);
    now.lookupBlocks().add(ids.size());
    now.hitBlocks().add(found.cardinality());
    return found;
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    Opened now = now();
    int run = now.index().run(ids);
    now.lookupBlocks().add(ids.size());
    now.hitBlocks().add(run);
    return run - 1;
  }

  @Override
  protected void doLoad(TransferTask task) {
    Opened now = now();
    BitSet missing = now.index().use(task.transfer());
    now.loadShards().add(task.transfer().shardCount());
    now.missingShards().add(missing.cardinality());
    for (int shard = 0; shard < task.transfer().shardCount(); shard++) {
      task.end(shard, missing.get(shard) ? ShardOutcome.MISSING : ShardOutcome.OK, null);
    }
  }

  @Override
  protected void doDump(TransferTask task) {
    Opened now = now();
    now.index().add(task.transfer());
    now.dumpShards().add(task.transfer().shardCount());
    endAll(task, ShardOutcome.OK);
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    now().index().remove(ids);
    return all(ids);
  }

  @Override
  public void clear() {
    now().index().clear();
  }

  static void endAll(TransferTask task, ShardOutcome outcome) {
    for (int shard = 0; shard < task.transfer().shardCount(); shard++) {
      task.end(shard, outcome, null);
    }
  }

  /** Nothing stays, so every block is gone. */
  static BitSet all(BlockIds ids) {
    BitSet all = new BitSet(ids.size());
    all.set(0, ids.size());
    return all;
  }

  @Override
  protected void doClose() {
    // The metrics keep the index otherwise.
    opened = null;
  }
}
