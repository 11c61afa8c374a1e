package ucm.store.fake;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreLife;
import ucm.api.StoreMetrics;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

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
public final class FakeStore implements Store {

  /** What there is while the store is open. */
  private record Opened(
      BlockLayout layout,
      boolean scheduler,
      BlockIndex index,
      StoreMetrics.Counter lookupBlocks,
      StoreMetrics.Counter hitBlocks,
      StoreMetrics.Counter loadShards,
      StoreMetrics.Counter missingShards,
      StoreMetrics.Counter dumpShards) {}

  private final StoreLife life = new StoreLife("Fake");
  private final AtomicLong taskNumbers = new AtomicLong();
  private volatile @Nullable FakeConfig config;
  private volatile @Nullable Opened opened;

  /** A store that is not configured yet. */
  public FakeStore() {}

  @Override
  public boolean keepsBytes() {
    return false;
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return FakeConfig.keys();
  }

  @Override
  public void configure(StoreConfig values) {
    life.configured();
    config = FakeConfig.from(values);
  }

  @Override
  public Optional<String> refuseNext(@Nullable Store next) {
    return LastStage.refusal("Fake", next);
  }

  @Override
  public void open(StoreContext context) {
    life.opened();
    try {
      opened = acquire(context);
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  private Opened acquire(StoreContext context) {
    LastStage.require("Fake", context);
    FakeConfig wanted = config;
    if (wanted == null || wanted.layout().isEmpty()) {
      throw new StoreException("Fake was configured with errors: correct them first");
    }
    BlockLayout layout = wanted.layout().get();
    StoreMetrics metrics = context.metrics();
    StoreMetrics.Counter evictions =
        metrics.counter("fake_evicted_blocks", "Blocks that made room for others.");
    BlockIndex index = index(wanted.bufferNumber(), layout.shardCount(), evictions);
    metrics.gauge("fake_blocks", "Blocks that Fake remembers.", index::size);
    return new Opened(
        layout,
        wanted.scheduler(),
        index,
        metrics.counter("fake_lookup_blocks", "Blocks looked up."),
        metrics.counter("fake_hit_blocks", "Blocks looked up and found."),
        metrics.counter("fake_load_shards", "Shards loaded, found or not."),
        metrics.counter("fake_missing_shards", "Shards loaded and not found."),
        metrics.counter("fake_dump_shards", "Shards dumped."));
  }

  private static BlockIndex index(int blocks, int shardCount, StoreMetrics.Counter evictions) {
    try {
      return new BlockIndex(blocks, shardCount, evictions);
    } catch (OutOfMemoryError e) {
      throw new StoreException(
          "Fake wants to remember "
              + blocks
              + " blocks, and a heap of at most "
              + (Runtime.getRuntime().maxMemory() >> 20)
              + " MiB has no room for that: lower "
              + FakeConfig.BUFFER_NUMBER
              + " or raise -Xmx",
          e);
    }
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    Opened now = requireOpen();
    BitSet found = now.index().lookup(ids);
    now.lookupBlocks().add(ids.size());
    now.hitBlocks().add(found.cardinality());
    return found;
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    Opened now = requireOpen();
    int run = now.index().run(ids);
    now.lookupBlocks().add(ids.size());
    now.hitBlocks().add(run);
    return run - 1;
  }

  @Override
  public void prefetch(BlockIds ids) {
    requireOpen();
  }

  @Override
  public Task load(Transfer transfer) {
    Opened now = requireOpen();
    TransferTask task = begin(now, transfer);
    BitSet missing = now.index().use(transfer);
    int shards = transfer.shardCount();
    now.loadShards().add(shards);
    now.missingShards().add(missing.cardinality());
    for (int shard = 0; shard < shards; shard++) {
      task.end(shard, missing.get(shard) ? ShardOutcome.MISSING : ShardOutcome.OK, null);
    }
    return task;
  }

  @Override
  public Task dump(Transfer transfer) {
    Opened now = requireOpen();
    TransferTask task = begin(now, transfer);
    now.index().add(transfer);
    int shards = transfer.shardCount();
    now.dumpShards().add(shards);
    for (int shard = 0; shard < shards; shard++) {
      task.ok(shard);
    }
    return task;
  }

  private TransferTask begin(Opened now, Transfer transfer) {
    if (now.scheduler()) {
      throw new StoreException("Fake has the scheduler role (device_id -1) and moves no data");
    }
    if (!transfer.layout().equals(now.layout())) {
      throw new StoreException(
          transfer
              + " is cut as "
              + transfer.layout()
              + "; Fake is configured for "
              + now.layout());
    }
    return new TransferTask(taskNumbers.incrementAndGet(), transfer);
  }

  @Override
  public FlushResult flush(Duration timeout) {
    requireOpen();
    return FlushResult.clean();
  }

  @Override
  public BitSet durable(BlockIds ids) {
    requireOpen();
    return new BitSet();
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen().index().remove(ids);
    return all(ids);
  }

  /** Nothing stays, so every block is gone. */
  static BitSet all(BlockIds ids) {
    BitSet all = new BitSet(ids.size());
    all.set(0, ids.size());
    return all;
  }

  @Override
  public void close() {
    life.closed();
    opened = null;
  }

  private Opened requireOpen() {
    life.requireOpen();
    Opened now = opened;
    if (now == null) {
      throw new StoreClosedException(name());
    }
    return now;
  }

  @Override
  public String toString() {
    return life.toString();
  }
}
