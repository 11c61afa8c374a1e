package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.BitSet;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreException;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.testkit.TransferMemory.Placement;

/** The open store of a test, the layout it was configured for, and what the suite asks of it often. */
final class OpenStore extends ForwardingStore {

  final BlockLayout layout;
  private final StoreContract suite;
  private final Store store;

  OpenStore(StoreContract suite, Store store, BlockLayout layout) {
    this.suite = suite;
    this.store = store;
    this.layout = layout;
  }

  @Override
  protected Store inner() {
    return store;
  }

  /** The bits from {@code first} to before {@code end}. */
  static BitSet bits(int first, int end) {
    BitSet bits = new BitSet();
    bits.set(first, end);
    return bits;
  }

  /** Memory for all shards of some blocks, each tensor a segment. */
  TransferMemory memory(BlockIds ids) {
    return memory(ids, Placement.SCATTERED);
  }

  TransferMemory memory(BlockIds ids, Placement placement) {
    return TransferMemory.ofBlocks(layout, placement, ids);
  }

  /** Memory for some shards of the first block. */
  TransferMemory shards(BlockIds ids, Placement placement, int... shards) {
    return TransferMemory.ofShards(layout, placement, ids, 0, shards);
  }

  /** Waits for a task; one that takes for ever is a failure and not a hang. */
  TransferResult ended(Task task) {
    try {
      return task.await(suite.patience());
    } catch (StoreTimeoutException e) {
      throw new AssertionError("the task did not end within " + suite.patience() + ": " + task, e);
    } catch (InterruptedException e) {
      throw new AssertionError("interrupted while waiting for " + task, e);
    }
  }

  TransferResult loaded(TransferMemory memory) {
    return ended(load(memory.transfer()));
  }

  /** Dumps memory with the bytes of its blocks, which must end well and leave it as it is. */
  void requireDumps(TransferMemory memory) {
    requireTaken(memory.fill().transfer());
    memory.check();
  }

  /** Dumps memory as it is, which must end well. */
  void requireTaken(Transfer transfer) {
    TransferResult result = ended(dump(transfer));
    assertThat(result.ok()).as("dump: %s", result).isTrue();
  }

  /** Loads what is there, which must end well. */
  void requireLoaded(Transfer transfer) {
    TransferResult result = ended(load(transfer));
    assertThat(result.ok()).as("load of blocks that are there: %s", result).isTrue();
  }

  /** Dumps whole blocks with their bytes, and waits until the store has taken them in. */
  void keep(BlockIds ids) {
    keep(memory(ids));
  }

  void keep(TransferMemory memory) {
    requireDumps(memory);
    settle();
  }

  void settle() {
    try {
      FlushResult flushed = flush(suite.patience());
      assertThat(flushed.ok()).as("flush after whole blocks were dumped: %s", flushed).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError("interrupted while flushing", e);
    }
  }

  /** Loads all shards of blocks and compares every byte. */
  void requireLoads(BlockIds ids) {
    requireLoads(ids, Placement.SCATTERED);
  }

  void requireLoads(BlockIds ids, Placement placement) {
    requireLoads(memory(ids, placement));
  }

  void requireLoads(TransferMemory memory) {
    requireLoaded(memory.transfer());
    requireRightBytes(memory);
  }

  /** All bytes are right, as far as the store keeps any. */
  void requireRightBytes(TransferMemory memory) {
    if (suite.keepsBytes()) {
      memory.check();
    }
    memory.checkGuards();
  }

  /** Any outcome may be, but bytes of a shard that ended well are right. */
  void requireRightBytes(TransferResult result, TransferMemory memory) {
    if (suite.keepsBytes()) {
      memory.check(result);
    }
    memory.checkGuards();
  }

  void requireFound(BlockIds ids) {
    assertThat(lookup(ids).cardinality()).as("blocks found").isEqualTo(ids.size());
    assertThat(lookupPrefix(ids)).as("last block found").isEqualTo(ids.size() - 1);
  }

  /** None of the blocks is found in any way. */
  void requireAbsent(BlockIds ids) {
    assertThat(lookup(ids).stream()).as("look-up of absent or incomplete blocks").isEmpty();
    assertThat(lookupPrefix(ids)).as("prefix look-up of absent or incomplete blocks").isEqualTo(-1);
    assertThat(durable(ids).stream()).as("durable among absent or incomplete blocks").isEmpty();
  }

  /**
   * Loads all shards of block 0 though it is incomplete: what was never dumped must not end well, and
   * what does end well must be right.
   *
   * @param lastLacking this shard and those before it were not dumped
   */
  void requireNotServed(BlockIds ids, int lastLacking) {
    TransferMemory memory = memory(ids.slice(0, 1));
    TransferResult result = loaded(memory);
    for (int shard = 0; shard <= lastLacking; shard++) {
      assertThat(result.outcome(shard))
          .as("shard %d, never dumped", shard)
          .isEqualTo(ShardOutcome.MISSING);
    }
    requireRightBytes(result, memory);
    assertThat(lookup(ids).get(0)).as("after the load of an incomplete block").isFalse();
  }

  /** A dump and a load of some memory are refused, and do not touch it. */
  void requireRefused(String what, TransferMemory memory) {
    memory.scribble();
    requireRefused(what + ", dump", () -> dump(memory.transfer()));
    requireRefused(what + ", load", () -> load(memory.transfer()));
    memory.checkScribbled();
  }

  private static void requireRefused(String what, Runnable call) {
    assertThatThrownBy(call::run)
        .as(what)
        .isInstanceOf(StoreException.class)
        .isNotInstanceOf(StoreClosedException.class)
        .message()
        .isNotBlank();
  }
}
