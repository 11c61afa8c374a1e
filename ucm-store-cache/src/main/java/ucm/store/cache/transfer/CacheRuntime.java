package ucm.store.cache.transfer;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.platform.device.EngineDevice;
import ucm.platform.thread.CpuAffinity;
import ucm.platform.thread.ShardWorkers;
import ucm.store.cache.config.Admission;
import ucm.store.cache.config.CacheConfig;
import ucm.store.cache.config.PoolMemory;
import ucm.store.cache.pool.CacheLookup;
import ucm.store.cache.pool.SlotPool;

/**
 * A Cache store that is open and moves data.
 *
 * <p>A dump: the caller's thread gives each shard a slot ({@link DumpTask}); the copy threads fill the
 * slots and end the shards for the engine ({@link DumpCopy}); the dispatcher hands groups of them to the
 * next stage ({@link NextWrite}); a slot is released when the next stage's task has completed.
 *
 * <p>A load: the caller's thread looks for each shard ({@link LoadTask}); the copy threads copy what is
 * in the pool; the rest is one transfer of the next stage into slots, copied on to the engine by the
 * next stage's threads as it arrives ({@link NextRead}).
 *
 * <p>A shard that finds no slot, because all are referenced, waits without a thread: the dispatcher
 * tries again when slots come free, until the deadline ({@link TimeoutScheduler}). Nothing that holds a slot
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
  public final NextTraffic traffic = new NextTraffic();
  public final DumpLedger ledger;
  public final Admission admission;
  final WriteBehind writes;
  final Dispatcher dispatcher;
  final TimeoutScheduler timeouts;

  private final LongSupplier clock;
  private final CacheLookup lookups;
  private final CacheFlush flush;
  private final Prefetcher prefetcher;
  private final AtomicLong lastTask = new AtomicLong();

  /**
   * Allocates the pool and starts the threads.
   *
   * @param faults is told of a thread that ends by an error
   * @throws StoreException when there is not enough memory
   */
  public CacheRuntime(
      CacheConfig config, StoreContext context, Thread.UncaughtExceptionHandler faults) {
    this.config = config;
    this.next = context.next();
    this.clock = context.nanoClock();
    this.metrics = new CacheMetrics(context.metrics());
    // What can fail comes first: the threads are started last.
    CpuAffinity affinity = CpuAffinity.of(config.cores());
    this.buffer = CachePool.join(config, next, metrics.evictions);
    this.memory = buffer.memory;
    this.pool = buffer.slots;
    try {
      this.engineDevice = buffer.open(config.engineDevice());
    } catch (RuntimeException | Error e) {
      buffer.leave();
      throw e;
    }
    this.dispatcher = new Dispatcher(this, faults);
    metrics.show(context.metrics(), buffer);
    // The tasks let in bound what these are given.
    this.copyThreads = Math.min(config.streams(), Runtime.getRuntime().availableProcessors());
    this.copiers =
        new ShardWorkers(
            "cache-copy",
            copyThreads,
            new ShardWorkers.Limits(
                Integer.MAX_VALUE,
                CacheConfig.WAITING_QUEUE_DEPTH.name(),
                Integer.MAX_VALUE,
                CacheConfig.RUNNING_QUEUE_DEPTH.name()),
            affinity);
    copiers.whenThreadEnds(faults);
    this.ledger = new DumpLedger(clock);
    this.admission = new Admission(config.waitingTasks(), config.runningShards());
    this.writes = new WriteBehind(this);
    this.lookups = new CacheLookup(pool, next, config.loadNextOnly(), context.metrics());
    this.flush = new CacheFlush(this, clock);
    this.prefetcher = new Prefetcher(this);
    this.timeouts =
        new TimeoutScheduler(clock, TimeUnit.MILLISECONDS.toNanos(config.timeoutMs()), faults);
    timeouts.start();
    dispatcher.start();
    buffer.add(this);
    LOG.info(
        "Cache of instance {}: {}; cache_policy {}; device: {}",
        config.uniqueId(),
        buffer,
        config.policy().word(),
        engineDevice);
  }

  /** Answers which blocks are here or in the next stage. */
  public CacheLookup lookups() {
    return lookups;
  }

  public void prefetch(BlockIds ids) {
    if (next != null && !config.loadNextOnly() && !ids.isEmpty()) {
      prefetcher.prefetch(next, ids);
    }
  }

  public Task load(Transfer transfer) {
    admit(transfer, metrics.loads);
    LoadTask load = new LoadTask(this, lastTask.incrementAndGet(), transfer);
    load.start();
    plan(load);
    return load.task;
  }

  public Task dump(Transfer transfer) {
    admit(transfer, metrics.dumps);
    DumpTask dump = new DumpTask(this, lastTask.incrementAndGet(), transfer);
    if (transfer.shardCount() > 0) {
      ledger.add(dump);
    }
    dump.start();
    Store store = next;
    if (!dump.mustAsk() || store == null) {
      plan(dump);
    } else {
      dispatcher.submit(
          () -> {
            while (dump.hasMoreToAsk()) {
              dump.askMore(store);
              plan(dump);
            }
          });
    }
    return dump.task;
  }

  public FlushResult flush(Duration timeout) throws InterruptedException {
    return flush.await(timeout);
  }

  /** Whether a load that another task was to fill may try by itself: that task is another store's. */
  boolean isShared() {
    return buffer.isShared();
  }

  /** A block is not going to be durable: the stores that share the pool all name it. */
  void failed(long high, long low, @Nullable Throwable cause) {
    for (CacheRuntime member : buffer.members()) {
      member.ledger.failed(high, low, cause);
    }
  }

  /** Has shards copied from their slots into the engine's memory. */
  void copyToEngine(LoadCopy batch) {
    if (batch.work().transfer.isHost()) {
      copiers.submit(batch);
    } else {
      engineDevice.loads().submit(batch, batch.size());
    }
  }

  /** Has shards copied from the engine's memory into their slots. */
  void copyFromEngine(DumpCopy batch) {
    if (batch.work().transfer.isHost()) {
      copiers.submit(batch);
    } else {
      engineDevice.dumps().submit(batch, batch.size());
    }
  }

  /** The next stage, for those that exist only where there is one. */
  Store requireNext() {
    return Objects.requireNonNull(next);
  }

  /**
   * Drains within {@code timeout_ms}, ends the threads, and frees the memory when it is unused. An
   * interrupted thread does not drain, and does the rest all the same.
   */
  public void close() {
    admission.close();
    DeferredInterrupts interrupts = new DeferredInterrupts();
    long deadline = clock.getAsLong() + TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
    try {
      if (interrupts.any()) {
        throw new InterruptedException();
      }
      drain(deadline);
    } catch (InterruptedException e) {
      LOG.warn("Cache: interrupted while closing; what is under way is dropped");
      timeouts.expireAll();
      interrupts.note();
    }
    boolean copied = interrupts.await(copiers::close, JOIN);
    copied &= interrupts.await(engineDevice::closeThreads, JOIN);
    if (!interrupts.await(dispatcher::close, JOIN)) {
      LOG.warn("Cache: the next stage has not answered a look-up; its thread is left over");
    }
    if (!interrupts.await(timeouts::close, JOIN)) {
      LOG.warn("Cache: the timeout thread is left over");
    }
    buffer.remove(this);
    if (buffer.isShared()) {
      pool.dropUnfinished();
    }
    awaitTraffic(interrupts, deadline);
    if (copied) {
      traffic.close(buffer::leave);
    } else {
      LOG.error("Cache: copies do not end; {} bytes are not freed", memory.byteSize());
    }
    interrupts.restore();
  }

  /** An interrupted thread does not wait here: the memory is freed when the last transfer ends. */
  private void awaitTraffic(DeferredInterrupts interrupts, long deadline) {
    int open;
    try {
      long left = interrupts.any() ? 0 : Math.max(0, deadline - clock.getAsLong());
      open = traffic.awaitNone(left);
    } catch (InterruptedException e) {
      interrupts.note();
      return;
    }
    if (open > 0) {
      LOG.warn(
          "Cache: the next stage still works on {} transfers; {} bytes are freed when it is done",
          open,
          memory.byteSize());
    }
  }

  private void drain(long deadline) throws InterruptedException {
    int tasks = admission.awaitNone(Math.max(0, deadline - clock.getAsLong()));
    if (tasks > 0) {
      LOG.warn("Cache: {} tasks were not done when the store closed; they are ended", tasks);
      timeouts.expireAll();
    }
    writes.hurry(1);
    long pending = ledger.await(deadline);
    if (buffer.isShared()) {
      // Those who go on using the pool are to know what this store's next stage fails to keep.
      FlushResult _ = flush.flushNext(this, deadline);
    }
    FlushResult left = ledger.take(pending);
    if (!left.ok()) {
      LOG.warn(
          "Cache: when the store closed, {} dumped blocks were not written to the next stage, and"
              + " {} had failed since the last flush",
          left.pendingBlocks(),
          left.failedCount(),
          left.cause());
    }
  }

  private void admit(Transfer transfer, TaskMetrics counted) {
    if (!transfer.layout().equals(config.layout())) {
      throw new StoreException(
          "Cache keeps blocks of "
              + config.layout()
              + "; the transfer is made for "
              + transfer.layout()
              + ": make it with the layout the store was configured with");
    }
    engineDevice.require(transfer);
    try {
      admission.enter(transfer.shardCount());
    } catch (QueueFullException e) {
      counted.queueFull.increment();
      throw e;
    }
  }

  private void plan(CacheTask work) {
    // Those who wait for slots come first: take none while there are any.
    work.plan(pool.isWanted() ? SlotPool.ALL_STRIPES : 0);
    if (work.wantsRoom()) {
      dispatcher.retry(work);
    }
  }
}
