package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/**
 * All that a store is asked for while a directory of it is sick: tasks, each with a memory of its own
 * that is overwritten as soon as the task is terminal, and callers who wait for an answer.
 */
final class SickWork {

  private static final class Order {
    final BlockIds ids;
    final boolean isDump;
    final Task task;
    final TransferMemory memory;
    boolean isOver;

    Order(BlockIds ids, boolean isDump, Task task, TransferMemory memory) {
      this.ids = ids;
      this.isDump = isDump;
      this.task = task;
      this.memory = memory;
    }
  }

  private final Store store;
  private final BlockLayout layout;
  private final List<Order> orders = new ArrayList<>();
  private final List<Thread> callers = new ArrayList<>();

  SickWork(Store store, BlockLayout layout) {
    this.store = store;
    this.layout = layout;
  }

  /** Dumps whole blocks and waits. */
  static Task dump(Store store, BlockLayout layout, BlockIds ids) throws InterruptedException {
    TransferMemory memory = TransferMemory.ofBlocks(layout, Placement.PACKED, ids).fill();
    Task task = store.dump(memory.transfer());
    TestStores.ended(task);
    return task;
  }

  /** Begins to load each block by a task of its own. */
  void loadEach(BlockIds ids) {
    for (int i = 0; i < ids.size(); i++) {
      BlockIds id = ids.slice(i, i + 1);
      TransferMemory memory = TransferMemory.ofBlocks(layout, Placement.SCATTERED, id);
      orders.add(new Order(id, false, store.load(memory.transfer()), memory));
    }
  }

  /** Begins to dump each block by a task of its own. */
  void dumpEach(BlockIds ids) {
    for (int i = 0; i < ids.size(); i++) {
      BlockIds id = ids.slice(i, i + 1);
      TransferMemory memory = TransferMemory.ofBlocks(layout, Placement.SCATTERED, id).fill();
      orders.add(new Order(id, true, store.dump(memory.transfer()), memory));
    }
  }

  /** Begins to dump one shard of each block. */
  void dumpShards(BlockIds ids, int shard) {
    int[] shards = new int[ids.size()];
    Arrays.fill(shards, shard);
    TransferMemory memory = new TransferMemory(layout, Placement.SCATTERED, ids, shards).fill();
    // Its blocks do not become whole, so nothing is promised about them.
    orders.add(new Order(BlockIds.ofHex(List.of()), true, store.dump(memory.transfer()), memory));
  }

  /** Asks all that is answered to callers who wait. */
  void askEverything(BlockIds known, BlockIds unknown) {
    ask("prefix", () -> store.lookupPrefix(known));
    ask("prefix-unknown", () -> store.lookupPrefix(unknown));
    ask("lookup", () -> store.lookup(known));
    ask("lookup-unknown", () -> store.lookup(unknown));
    ask("durable", () -> store.durable(known));
    ask("prefetch", () -> store.prefetch(known));
    ask("flush", this::flush);
  }

  private void flush() {
    try {
      store.flush(Duration.ofMillis(200));
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private void ask(String name, Runnable question) {
    Runnable whileOpen =
        () -> {
          try {
            question.run();
          } catch (StoreClosedException e) {
            // Some tests close the store before all have asked.
          }
        };
    callers.add(Thread.ofPlatform().daemon().name("test-" + name).start(whileOpen));
  }

  /** Waits until all callers have their answer. */
  void awaitAnswers() throws InterruptedException {
    for (Thread caller : callers) {
      assertThat(caller.join(TestStores.PATIENCE))
          .as("%s is answered; meanwhile\n%s", caller.getName(), Waiting.stacks())
          .isTrue();
    }
  }

  /** Waits for the tasks of some blocks, which must go well. */
  void awaitOk(BlockIds ids) throws InterruptedException {
    for (Order order : orders) {
      if (contains(ids, order.ids)) {
        await(order).requireOk();
      }
    }
  }

  private static boolean contains(BlockIds list, BlockIds id) {
    for (int i = 0; i < list.size() && id.size() > 0; i++) {
      if (list.high(i) == id.high(0) && list.low(i) == id.low(0)) {
        return true;
      }
    }
    return false;
  }

  /** Waits for all tasks. */
  void awaitAll() throws InterruptedException {
    for (Order order : orders) {
      await(order);
    }
  }

  /** What is loaded well must be right; from then on, the memory is ours and holds other bytes. */
  private static TransferResult await(Order order) throws InterruptedException {
    TransferResult result = TestStores.ended(order.task);
    if (!order.isOver) {
      order.isOver = true;
      for (int i = 0; i < order.memory.shardCount(); i++) {
        if (!order.isDump && !result.failedShards().get(i)) {
          order.memory.check(i);
        }
      }
      order.memory.scribble();
    }
    return result;
  }

  /** What was dumped well is there, and whatever is there is right. */
  void requireWhatWasPromised(TestStores stores) throws InterruptedException {
    for (Order order : orders) {
      if (order.isDump && order.ids.size() > 0) {
        boolean ok = order.task.result().ok();
        assertThat(store.lookup(order.ids).get(0) || !ok).as("dumped and gone").isTrue();
        assertThat(stores.load(store, order.ids).ok() || !ok).isTrue();
      }
    }
  }

  /** Looks whether any memory was touched after its task; all have been waited for. */
  void requireMemoryUntouched() {
    orders.forEach(order -> order.memory.checkScribbled());
  }
}
