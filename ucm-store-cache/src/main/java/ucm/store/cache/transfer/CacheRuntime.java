package ucm.store.cache.transfer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLender;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.platform.device.EngineDevice;
import ucm.platform.thread.CpuAffinity;
import ucm.platform.thread.ShardWorkers;
import ucm.store.cache.config.CacheConfig;
import ucm.store.cache.config.PoolMemory;
import ucm.store.cache.pool.CacheLookup;
import ucm.store.cache.pool.SlotPool;

/**
 * A Cache store that is open and moves data.
 *
 * <p>A dump: the caller's thread gives each shard a slot ({@link DumpTask}); the copy threads fill the
 * slots and end the shards for the engine ({@link DumpTask.Copy}); the dispatcher hands groups of them to the
 * next stage ({@link NextWrite}); a slot is released when the next stage's task has completed.
 *
 * <p>A load: the caller's thread looks for each shard ({@link LoadTask}); the copy threads copy what is
 * in the pool; the rest is one transfer of the next stage into slots, copied on to the engine by the
 * next stage's threads as it arrives ({@link NextRead}).
 *
 * <p>A shard that finds no slot, because all are referenced, waits without a thread: the dispatcher
 * tries again when slots come free, until the deadline. Nothing that holds a slot
 * ever waits for another one, so slots do come free unless the next stage hangs.
 *
 * <p>A load that meets its deadline is over for the engine, whose memory is not touched any more; its
 * slots stay referenced until the next stage's tasks have completed, and so does the memory of the pool, even
 * beyond {@link #close}.
 */
public final class CacheRuntime {

  private static final Logger LOG = LoggerFactory.getLogger(CacheRuntime.class);
  // Enough for threads that have nothing to wait for, on a machine that is busy.
  private static final Duration JOIN = Duration.ofSeconds(5);

  final CacheConfig config;
  final @Nullable Store next;
  final CacheMetrics metrics;
  public final PoolMemory memory;
  public final SlotPool pool;
  final CachePool buffer;
  final EngineDevice engineDevice;
  final ShardWorkers copiers;
  final int copyThreads;
  final NextTraffic traffic = new NextTraffic();
  final Dumps dumps;
  final WriteBehind writes;
  final FailedWrites failedWrites;
  final Dispatcher dispatcher;

  /** Answers which blocks are here or in the next stage. */
  public final CacheLookup lookups;

  /**
   * Allocates the pool and starts the threads.
   *
   * @param dispatching makes the background thread
   * @param faults is told of another thread that ends by an error
   * @throws StoreException when there is not enough memory
   */
  public CacheRuntime(
      CacheConfig config,
      StoreContext context,
      Dumps dumps,
      ThreadFactory dispatching,
      Thread.UncaughtExceptionHandler faults) {
    this.config = config;
    this.next = context.next();
    this.dumps = dumps;
    this.metrics = new CacheMetrics(context.metrics());
    this.failedWrites = new FailedWrites(context.nanoClock());
    // What can fail comes first: the threads are started last.
    CpuAffinity affinity = CpuAffinity.of(config.device().cores());
    this.buffer = CachePool.join(config, next, metrics.evictions);
    this.memory = buffer.memory;
    this.pool = buffer.slots;
    try {
      this.engineDevice = buffer.open(config.device());
    } catch (RuntimeException | Error e) {
      buffer.leave();
      throw e;
    }
    this.dispatcher = new Dispatcher(this, dispatching);
    metrics.show(context.metrics(), buffer);
    // The tasks let in bound what these are given.
    this.copyThreads =
        Math.min(config.device().streams(), Runtime.getRuntime().availableProcessors());
    this.copiers = new ShardWorkers("cache-copy", copyThreads, Integer.MAX_VALUE, affinity);
    copiers.whenThreadEnds(faults);
    this.writes = new WriteBehind(this);
    this.lookups = new CacheLookup(pool, next, config.loadNextOnly(), context.metrics());
    dispatcher.start();
    buffer.members.add(this);
    // After a device has said from which memory, or has pinned it.
    memory.populate("ucm-cache-populate-0");
    LOG.info(
        "Cache of instance {}: {}; cache_policy {}; device: {}",
        config.uniqueId(),
        buffer,
        config.policy().word(),
        engineDevice);
  }

  /** Makes a task, of which nothing begins. */
  public TransferTask newTask(long id, Transfer transfer, boolean isDump) {
    if (isDump) {
      return new DumpTask(this, id, transfer);
    }
    return isInPool(transfer)
        ? new FetchTask(this, id, transfer)
        : new LoadTask(this, id, transfer);
  }

  /**
   * Starts a task.
   *
   * @throws StoreException when its memory cannot be moved
   */
  public void start(TransferTask task) {
    engineDevice.require(task.transfer());
    CacheTask begun = (CacheTask) task;
    begun.start();
    Store store = next;
    if (begun instanceof DumpTask dump && dump.mustAsk() && store != null) {
      dispatcher.submit(
          () -> {
            while (dump.hasMoreToAsk()) {
              dump.askMore(store);
              plan(dump);
            }
          });
    } else {
      plan(begun);
    }
  }

  /** Where blocks are lent; null when they are not. */
  public BlockLender.@Nullable Lending lending() {
    return memory.descriptor() == PoolMemory.NOT_SHARED
        ? null
        : new BlockLender.Lending(
            memory.region(),
            memory.descriptor(),
            engineDevice.isThere(),
            memory.slots(),
            memory.stride());
  }

  /** Lends the first blocks that are in the pool. */
  public int[] lend(BlockIds ids) {
    int[] lent = pool.lend(ids);
    writes.busy(lent.length);
    metrics.hitShards.add((long) lent.length * config.layout().shardCount());
    return lent;
  }

  /** Takes back what was lent, by this or by a {@link FetchTask}. */
  public void giveBack(int[] lent) {
    writes.busy(-lent.length);
    pool.giveBack(lent);
  }

  /** The transfer of a {@link FetchTask}: it says of no slot which it is, as that is found later. */
  public Transfer inPool(BlockIds ids) {
    int shards = config.layout().shardCount();
    Transfer.Builder inPool = Transfer.packed(config.layout()).expect(ids.size() * shards);
    for (int i = 0; i < ids.size(); i++) {
      for (int shard = 0; shard < shards; shard++) {
        inPool.shard(ids, i, shard).piece(memory.region(), 0);
      }
    }
    return inPool.build();
  }

  private boolean isInPool(Transfer transfer) {
    return transfer.shardCount() > 0 && transfer.region(0, 0) == memory.region();
  }

  /** A task of one direction was refused for want of room. */
  public void queueFull(boolean isDump) {
    metrics.tasks(isDump).queueFull().increment();
  }

  /**
   * Waits until what was dumped is durable: first for the writes to the next stage, then for that stage.
   * Where several stores share the pool, what this one was to dump may be on its way through another one, so
   * all of them are waited for. Failures of the next stages are noted with those of the store, whose next
   * flush tells them when this one is interrupted. See {@link Store#flush}.
   */
  public FlushResult flush(Duration timeout) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.NANOSECONDS.convert(timeout);
    List<CacheRuntime> stores = new ArrayList<>(buffer.members);
    stores.remove(this);
    stores.addFirst(this);
    long pending = 0;
    long counted = 0;
    for (CacheRuntime store : stores) {
      pending += store.awaitWrites(end);
      FlushResult lower = flushNext(store, end);
      pending += lower.pendingBlocks();
      counted = Math.max(counted, lower.failedCount());
    }
    FlushResult own = dumps.takeFailures().get();
    // A block that the next stage refused has failed in both: one name, one failure. Those that
    // neither names are taken for the same as well.
    return new FlushResult(
        pending, own.failedBlocks(), Math.max(own.failedCount(), counted), own.cause());
  }

  /** Waits for the writes, none of which is held back meanwhile; says how many blocks are pending. */
  private int awaitWrites(long end) throws InterruptedException {
    writes.hurry(1);
    try {
      return dumps.settling().await(left(end)).size();
    } finally {
      writes.hurry(-1);
    }
  }

  /** Flushes a store's next stage, and drops and notes what that took over and failed to keep. */
  private FlushResult flushNext(CacheRuntime store, long end) throws InterruptedException {
    if (store.next == null) {
      return FlushResult.clean();
    }
    FlushResult lower;
    try {
      lower = store.next.flush(left(end));
    } catch (StoreClosedException e) {
      if (store != this) {
        // It left meanwhile, and has flushed by itself.
        return FlushResult.clean();
      }
      throw e;
    }
    BlockIds lost = lower.failedBlocks();
    for (int i = 0; i < lost.size(); i++) {
      pool.drop(lost.high(i), lost.low(i));
      dumps.failed().tell(lost.high(i), lost.low(i), lower.cause());
    }
    for (CacheRuntime other : buffer.members) {
      if (other != this) {
        other.dumps.untold().accept(lower);
      }
    }
    return lower;
  }

  /** Whether a load that another task was to fill may try by itself: that task is another store's. */
  boolean isShared() {
    return buffer.isShared();
  }

  /** A block is not going to be durable: the stores that share the pool all name it. */
  void failed(long high, long low, @Nullable Throwable cause) {
    for (CacheRuntime member : buffer.members) {
      member.dumps.failed().tell(high, low, cause);
    }
  }

  /** Has shards copied between their slots and the engine's memory. */
  void copy(CopyBatch batch) {
    CacheTask task = batch.task;
    if (task.transfer.isHost()) {
      task.copies = copiers.submit(batch);
    } else {
      (task.isDump ? engineDevice.dumps() : engineDevice.loads()).submit(batch, batch.size());
    }
  }

  /** The next stage, for those that exist only where there is one. */
  Store requireNext() {
    return Objects.requireNonNull(next);
  }

  /**
   * Has what is in the pool written, ends the threads, and frees the memory when it is unused. No task is in
   * flight. An interrupted thread waits for no more writes, and does the rest all the same.
   *
   * @param timeout for the writes and the next stage's tasks
   */
  public void close(Duration timeout) {
    long end = System.nanoTime() + timeout.toNanos();
    writeRest(end);
    boolean copied = copiers.close(JOIN);
    copied &= engineDevice.closeThreads(JOIN);
    if (!dispatcher.close(JOIN)) {
      LOG.warn("Cache: the next stage has not answered a look-up; its thread is left over");
    }
    buffer.members.remove(this);
    if (buffer.members.isEmpty()) {
      // The memory itself may have to wait for the next stage.
      memory.endPopulating();
    }
    if (buffer.isShared()) {
      pool.dropUnfinished();
    }
    awaitTraffic(end);
    if (copied) {
      traffic.close(buffer::leave);
    } else {
      LOG.error("Cache: copies do not end; {} bytes are not freed", memory.byteSize());
    }
  }

  private void writeRest(long end) {
    long pending = 0;
    try {
      writes.hurry(1);
      pending = dumps.settling().await(left(end)).size();
      if (buffer.isShared()) {
        // Those who go on using the pool are to know what this store's next stage fails to keep.
        pending += flushNext(this, end).pendingBlocks();
      }
    } catch (InterruptedException e) {
      LOG.warn("Cache: interrupted while closing; what is under way is dropped");
      Thread.currentThread().interrupt();
    }
    FlushResult failures = dumps.takeFailures().get();
    if (pending > 0 || !failures.ok()) {
      LOG.warn(
          "Cache: when the store closed, {} dumped blocks were not written to the next stage, and"
              + " {} had failed since the last flush",
          pending,
          failures.failedCount(),
          failures.cause());
    }
  }

  /** An interrupted thread does not wait here: the memory is freed when the last transfer ends. */
  private void awaitTraffic(long end) {
    try {
      int open = traffic.awaitNone(left(end).toNanos());
      if (open > 0) {
        LOG.warn(
            "Cache: the next stage still works on {} transfers; {} bytes are freed when it is done",
            open,
            memory.byteSize());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static Duration left(long end) {
    return Duration.ofNanos(Math.max(0, end - System.nanoTime()));
  }

  private void plan(CacheTask work) {
    // Those who wait for slots come first: take none while there are any.
    work.plan(!pool.isWanted());
    if (work.wantsRoom()) {
      dispatcher.retry(work);
    }
  }
}
