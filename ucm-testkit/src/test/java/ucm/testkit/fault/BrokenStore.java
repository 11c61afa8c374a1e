package ucm.testkit.fault;

import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntPredicate;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.ShardListener;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/** A correct store, of which a subclass gets one thing wrong. */
public class BrokenStore implements Store {

  final MemoryStore.Volume volume;
  public final Store inner;

  /** What was dumped and loaded so far. */
  final Queue<Transfer> dumps = new ConcurrentLinkedQueue<>();

  final Queue<Transfer> loads = new ConcurrentLinkedQueue<>();

  public BrokenStore(MemoryStore.Volume volume) {
    this.volume = volume;
    this.inner = new MemoryStore(volume);
  }

  @Override
  public String name() {
    return inner.name();
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return inner.configKeys();
  }

  @Override
  public void configure(StoreConfig config) {
    inner.configure(config);
  }

  @Override
  public void open(StoreContext context) {
    inner.open(context);
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    return inner.lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return inner.lookupPrefix(ids);
  }

  @Override
  public void prefetch(BlockIds ids) {
    inner.prefetch(ids);
  }

  @Override
  public Task load(Transfer transfer) {
    Task task = inner.load(transfer);
    loads.add(transfer);
    return task;
  }

  @Override
  public Task dump(Transfer transfer) {
    Task task = inner.dump(transfer);
    dumps.add(transfer);
    return task;
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return inner.flush(timeout);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return inner.durable(ids);
  }

  @Override
  public boolean canRemove() {
    return inner.canRemove();
  }

  @Override
  public BitSet remove(BlockIds ids) {
    return inner.remove(ids);
  }

  @Override
  public void close() {
    inner.close();
  }

  /** The shards of transfers that are of a block, with repetitions, by their index in the block. */
  static List<Integer> shardsOf(Queue<Transfer> transfers, BlockIds ids, int i) {
    List<Integer> shards = new ArrayList<>();
    for (Transfer transfer : transfers) {
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        if (transfer.ids().high(shard) == ids.high(i) && transfer.ids().low(shard) == ids.low(i)) {
          shards.add(transfer.shardIndex(shard));
        }
      }
    }
    return shards;
  }

  /** The same transfer of some of its shards only, with another listener. */
  public static Transfer part(Transfer whole, ShardListener listener, IntPredicate shards) {
    Transfer.Builder part =
        whole.pieceCount() < whole.layout().tensorCount()
            ? Transfer.packed(whole.layout())
            : Transfer.scattered(whole.layout());
    for (int shard = 0; shard < whole.shardCount(); shard++) {
      if (shards.test(shard)) {
        part.shard(whole.ids(), shard, whole.shardIndex(shard));
        for (int segment = 0; segment < whole.pieceCount(); segment++) {
          part.piece(whole.region(shard, segment), whole.offset(shard, segment));
        }
      }
    }
    return part.build(listener);
  }

  static TransferTask endedWell(Transfer transfer) {
    TransferTask task = new TransferTask(System.nanoTime(), transfer);
    for (int shard = 0; shard < transfer.shardCount(); shard++) {
      task.ok(shard);
    }
    return task;
  }

  /** Changes the byte at a distance from the end of the last segment of a shard. */
  static void spoil(Transfer transfer, int shard, int distance) {
    int segment = transfer.pieceCount() - 1;
    long at = transfer.offset(shard, segment) + transfer.pieceSize(segment) - 1 + distance;
    transfer.region(shard, segment).segment().set(ValueLayout.JAVA_BYTE, at, (byte) 0x11);
  }
}
