package ucm.testkit.fault;

import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import ucm.api.BlockIds;
import ucm.api.ShardListener;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.testkit.ForwardingStore;

/** A correct store, of which a subclass gets one thing wrong. */
public class BrokenStore extends ForwardingStore {

  MemoryStore.Volume volume = new MemoryStore.Volume();
  protected Store inner = new MemoryStore(volume);

  /** What was dumped and loaded so far. */
  final Queue<Transfer> dumps = new ConcurrentLinkedQueue<>();

  final Queue<Transfer> loads = new ConcurrentLinkedQueue<>();

  /** Keeps its blocks in a volume; said before it is configured. */
  BrokenStore on(MemoryStore.Volume newVolume) {
    volume = newVolume;
    inner = new MemoryStore(newVolume);
    return this;
  }

  @Override
  protected Store inner() {
    return inner;
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
    int[] some = IntStream.range(0, whole.shardCount()).filter(shards).toArray();
    return whole.select(some, listener);
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
