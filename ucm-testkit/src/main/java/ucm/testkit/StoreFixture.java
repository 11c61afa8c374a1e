package ucm.testkit;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.testkit.TransferMemory.Placement;

/**
 * Open stores of one layout, for a test of a store's own, and what such tests ask of them: whole
 * blocks, or one shard of each, with the bytes of {@link BlockBytes}. The stores are closed with it,
 * last opened first.
 */
public class StoreFixture implements AutoCloseable {

  /** How long a task may take. */
  public static final Duration PATIENCE = Duration.ofSeconds(60);

  /** How blocks are cut. */
  public final BlockLayout layout;

  /** What all of the stores count. */
  public final RecordingMetrics metrics = new RecordingMetrics();

  private final List<Store> opened = new ArrayList<>();

  /** Nothing opened yet. */
  public StoreFixture(BlockLayout layout) {
    this.layout = layout;
  }

  /** The configuration of a worker as an engine writes it, without the store's own keys. */
  public static Map<String, Object> workerKeys(BlockLayout layout) {
    Map<String, Object> keys = CommonKeys.values(layout);
    keys.put(CommonKeys.DEVICE_ID.name(), 0);
    return keys;
  }

  /** Opens a last stage with the keys of a worker and its own. */
  public <S extends Store> S open(S store, Map<String, ?> settings) {
    return open(store, null, settings, System::nanoTime);
  }

  /**
   * Opens a store with the keys of a worker and its own.
   *
   * @param next the next stage, open; null for the last stage
   * @throws AssertionError when a setting is wrong
   */
  public <S extends Store> S open(
      S store, @Nullable Store next, Map<String, ?> settings, LongSupplier clock) {
    Map<String, Object> all = new TreeMap<>(workerKeys(layout));
    all.putAll(settings);
    StoreContract.configure(store, all);
    store.open(new TestContext(next, metrics, clock));
    opened.add(store);
    return store;
  }

  /** The result of a task, after a wait. */
  public static TransferResult ended(Task task) throws InterruptedException {
    return task.await(PATIENCE);
  }

  /** Memory for whole blocks. */
  public TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(layout, Placement.SCATTERED, ids);
  }

  /** Memory for one shard of each block. */
  public TransferMemory memory(BlockIds ids, int shard) {
    int[] shards = new int[ids.size()];
    Arrays.fill(shards, shard);
    return new TransferMemory(layout, Placement.SCATTERED, ids, shards);
  }

  /** Dumps whole blocks. */
  public TransferResult dump(Store store, BlockIds ids) throws InterruptedException {
    return ended(store.dump(memory(ids).fill().transfer()));
  }

  /** Dumps one shard of each block. */
  public TransferResult dumpShard(Store store, BlockIds ids, int shard)
      throws InterruptedException {
    return ended(store.dump(memory(ids, shard).fill().transfer()));
  }

  /** Loads whole blocks; whatever ends well must be right. */
  public TransferResult load(Store store, BlockIds ids) throws InterruptedException {
    return load(store, memory(ids));
  }

  /** Loads one shard of each block; whatever ends well must be right. */
  public TransferResult loadShard(Store store, BlockIds ids, int shard)
      throws InterruptedException {
    return load(store, memory(ids, shard));
  }

  /** Loads into some memory; whatever ends well must be right. */
  public static TransferResult load(Store store, TransferMemory memory)
      throws InterruptedException {
    TransferResult result = ended(store.load(memory.transfer()));
    memory.check(result);
    return result;
  }

  @Override
  public void close() {
    opened.reversed().forEach(Store::close);
    opened.clear();
  }
}
