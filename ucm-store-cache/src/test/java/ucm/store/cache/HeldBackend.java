package ucm.store.cache;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ConfigKey;
import ucm.api.FlushResult;
import ucm.api.MemoryRegion;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreConfig;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.testkit.BlockBytes;

/** A backend that hangs on to every load and dump until the test says how each shard ends. */
@StoreName("Held")
final class HeldBackend implements Store {

  /** A load or dump that was started and goes on only by the hand of the test. */
  static final class Held {

    final Transfer transfer;
    private final TransferTask task;

    private Held(long id, Transfer transfer) {
      this.transfer = transfer;
      this.task = new TransferTask(id, transfer);
    }

    /** Writes the bytes of a shard where they are wanted; the shard has not ended by that. */
    void write(int shard) {
      BlockIds ids = transfer.ids();
      BlockBytes.fill(slot(shard), ids.high(shard), ids.low(shard), transfer.shardIndex(shard), 0);
    }

    /** Loads a shard and ends it well. */
    void serve(int shard) {
      write(shard);
      task.ok(shard);
    }

    /** Loads all shards. */
    void serveAll() {
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        serve(shard);
      }
    }

    /** Checks the bytes handed over for a dump, and ends all shards well. */
    void takeAll() {
      BlockIds ids = transfer.ids();
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        BlockBytes.check(
            slot(shard), ids.high(shard), ids.low(shard), transfer.shardIndex(shard), 0);
        task.ok(shard);
      }
    }

    /** Ends a shard badly. */
    void end(int shard, ShardOutcome outcome, @Nullable Throwable cause) {
      task.end(shard, outcome, cause);
    }

    /** Ends all shards badly. */
    void endAll(ShardOutcome outcome, @Nullable Throwable cause) {
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        task.end(shard, outcome, cause);
      }
    }

    /** The memory of a shard. */
    MemorySegment slot(int shard) {
      return transfer
          .region(shard, 0)
          .segment()
          .asSlice(transfer.offset(shard, 0), transfer.layout().shardSize());
    }
  }

  /** Answers a flush. */
  @FunctionalInterface
  interface Flush {
    FlushResult answer() throws InterruptedException;
  }

  /** What was looked up, call by call. */
  final List<BlockIds> lookups = new ArrayList<>();

  /** Is told the number of each look-up before its answer, from 1; may hold it, or throw. */
  volatile IntConsumer onLookup = number -> {};

  /** Is run before each answer of what it knows by itself; may throw. */
  volatile Runnable onKnown = () -> {};

  /** What a flush answers. */
  volatile Flush onFlush = FlushResult::clean;

  /** Whether it knows by itself what it {@linkplain #has has}; if not, it must be asked. */
  volatile boolean knows;

  final Set<String> present = new HashSet<>();
  final BlockingQueue<Held> loads = new LinkedBlockingQueue<>();
  final BlockingQueue<Held> dumps = new LinkedBlockingQueue<>();
  private final AtomicLong tasks = new AtomicLong();
  private volatile @Nullable StoreException refusal;
  private volatile boolean over;
  private @Nullable MemorySegment offer;
  private final boolean keepsBytes;

  /** One that keeps bytes. */
  HeldBackend() {
    this(true);
  }

  /** One that says whether it keeps bytes. */
  HeldBackend(boolean keepsBytes) {
    this.keepsBytes = keepsBytes;
  }

  @Override
  public boolean keepsBytes() {
    return keepsBytes;
  }

  /** The next load, which may be on its way still. */
  Held nextLoad() throws InterruptedException {
    return next(loads);
  }

  /** The next dump, which may be on its way still. */
  Held nextDump() throws InterruptedException {
    return next(dumps);
  }

  /** Answers loads and dumps with this from now on; null to accept them. */
  void refuse(@Nullable StoreException with) {
    refusal = with;
  }

  /** Fails what is held and not taken by the test, and what comes from now on. */
  void letGo() {
    over = true;
    for (BlockingQueue<Held> queue : List.of(loads, dumps)) {
      for (Held held = queue.poll(); held != null; held = queue.poll()) {
        held.endAll(ShardOutcome.FAILED, null);
      }
    }
  }

  /** Offers this to the stage in front when that opens. */
  HeldBackend offering(MemorySegment memory) {
    offer = memory;
    return this;
  }

  /** Says from now on that it has a block. */
  synchronized void has(BlockIds ids) {
    for (int i = 0; i < ids.size(); i++) {
      present.add(ids.hex(i));
    }
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return List.of();
  }

  @Override
  public void configure(StoreConfig config) {}

  @Override
  public void open(StoreContext context) {}

  @Override
  public BitSet lookup(BlockIds ids) {
    int number;
    synchronized (this) {
      lookups.add(ids);
      number = lookups.size();
    }
    onLookup.accept(number);
    return answer(ids);
  }

  @Override
  public @Nullable BitSet lookupKnown(BlockIds ids) {
    onKnown.run();
    return knows ? answer(ids) : null;
  }

  private synchronized BitSet answer(BlockIds ids) {
    BitSet found = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      found.set(i, present.contains(ids.hex(i)));
    }
    return found;
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return lookup(ids).nextClearBit(0) - 1;
  }

  @Override
  public void prefetch(BlockIds ids) {}

  @Override
  public Task load(Transfer transfer) {
    return hold(loads, transfer);
  }

  @Override
  public Task dump(Transfer transfer) {
    return hold(dumps, transfer);
  }

  @Override
  public @Nullable MemoryRegion offerMemory(long byteSize) {
    return offer == null ? null : MemoryRegion.host(offer);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return onFlush.answer();
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return lookup(ids);
  }

  @Override
  public void close() {}

  private Task hold(BlockingQueue<Held> queue, Transfer transfer) {
    StoreException answer = refusal;
    if (answer != null) {
      throw answer;
    }
    Held held = new Held(tasks.incrementAndGet(), transfer);
    queue.add(held);
    if (over) {
      letGo();
    }
    return held.task;
  }

  private static Held next(BlockingQueue<Held> queue) throws InterruptedException {
    Held held = queue.poll(60, TimeUnit.SECONDS);
    if (held == null) {
      throw new AssertionError("the backend was asked for nothing");
    }
    return held;
  }
}
