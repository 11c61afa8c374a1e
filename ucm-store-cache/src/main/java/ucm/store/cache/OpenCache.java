package ucm.store.cache;

import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.SequencedSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.store.common.CpuAffinity;
import ucm.store.common.ShardWorkers;

/**
 * A Cache store that is open and moves data.
 *
 * <p>A dump: the caller's thread gives each shard a slot ({@link DumpWork}); the copy threads fill the
 * slots and end the shards for the engine ({@link DumpCopy}); the dispatcher hands groups of them to the
 * backend ({@link BackendWrite}); a slot is released when the backend's task is terminal.
 *
 * <p>A load: the caller's thread looks for each shard ({@link LoadWork}); the copy threads copy what is
 * in the pool; the rest is one transfer of the backend into slots, copied on to the engine by the
 * backend's threads as it arrives ({@link BackendRead}).
 *
 * <p>A shard that finds no slot, because all are referenced, waits without a thread: the dispatcher
 * tries again when slots come free, until the deadline ({@link Deadlines}). Nothing that holds a slot
 * ever waits for another one, so slots do come free unless the backend hangs.
 *
 * <p>A load that meets its deadline is over for the engine, whose memory is not touched any more; its
 * slots stay referenced until the backend's tasks are terminal, and so does the memory of the pool, even
 * beyond {@link #close}.
 */
final class OpenCache {

  private static final Logger LOG = LoggerFactory.getLogger(OpenCache.class);
  // Enough for threads that have nothing to wait for, on a machine that is busy.
  private static final Duration JOIN = Duration.ofSeconds(5);

  final CacheConfig config;
  final @Nullable Store backend;
  final CacheMetrics metrics;
  final PoolMemory memory;
  final SlotDirectory pool;
  final HostDevice device;
  final EngineDevice engineDevice;
  final ShardWorkers copiers;
  final int copyThreads;
  final BackendTraffic traffic = new BackendTraffic();
  final DumpLedger ledger;
  final BorrowedDumps borrowed;
  final Admission admission;
  final WriteBehind writes;
  final Dispatcher dispatcher;
  final Deadlines deadlines;

  /** The builder of a read that was made; the next one need not let its arrays grow anew. */
  final AtomicReference<Transfer.@Nullable Builder> spareBuilder = new AtomicReference<>();

  private final LongSupplier clock;
  private final Prefetcher prefetcher;
  private final @Nullable SharedBuffer shared;
  private final AtomicLong lastTask = new AtomicLong();

  /**
   * Allocates the pool and starts the threads.
   *
   * @throws StoreException when there is not enough memory
   */
  OpenCache(CacheConfig config, StoreContext context) {
    this.config = config;
    this.backend = context.backend();
    this.clock = context.nanoClock();
    this.metrics = new CacheMetrics(context.metrics());
    // What can fail comes first: the threads are started when there is nothing left to go wrong.
    CpuAffinity affinity = CpuAffinity.of(config.cores());
    this.shared = config.shared() ? SharedBuffer.join(config) : null;
    this.memory = shared == null ? memory(config, backend) : shared.memory();
    try {
      this.engineDevice = EngineDevice.open(config, memory);
    } catch (RuntimeException | Error e) {
      freeMemory();
      throw e;
    }
    this.dispatcher = new Dispatcher(this);
    this.pool =
        shared == null
            ? new SlotPool(
                memory.slots(),
                config.layout().shardCount(),
                config.policy(),
                metrics.evictions,
                dispatcher::wake)
            : shared.pool(backend, metrics.evictions, dispatcher::wake);
    metrics.show(context.metrics(), pool, memory);
    this.device = new HostDevice(memory);
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
    this.ledger = new DumpLedger(clock);
    this.borrowed = new BorrowedDumps(pool, clock);
    this.admission = new Admission(config.waitingTasks(), config.runningShards());
    this.writes = new WriteBehind(this);
    this.prefetcher = new Prefetcher(this);
    this.deadlines = new Deadlines(clock, TimeUnit.MILLISECONDS.toNanos(config.timeoutMs()));
    deadlines.start();
    dispatcher.start();
    if (shared == null) {
      String policy = config.policy().word();
      LOG.info(
          "Cache of instance {}: {}; cache_policy {}; device: {}",
          config.uniqueId(),
          memory,
          policy,
          engineDevice);
    } else {
      shared.start();
      LOG.info("Cache of instance {}: {}; device: {}", config.uniqueId(), shared, engineDevice);
    }
  }

  private void freeMemory() {
    if (shared == null) {
      memory.free();
    } else {
      shared.leave();
    }
  }

  BitSet lookup(BlockIds ids) {
    int size = ids.size();
    BitSet found = new BitSet(size);
    int absent = 0;
    for (int i = 0; i < size; i++) {
      if (inPool(ids, i)) {
        found.set(i);
      } else {
        absent++;
      }
    }
    if (absent == 0 || backend == null) {
      return found;
    }
    if (absent == size) {
      return backend.lookup(ids);
    }
    long[] words = new long[2 * absent];
    int next = 0;
    for (int i = found.nextClearBit(0); i < size; i = found.nextClearBit(i + 1)) {
      words[next++] = ids.high(i);
      words[next++] = ids.low(i);
    }
    BitSet behind = backend.lookup(BlockIds.wrap(words));
    int asked = 0;
    for (int i = found.nextClearBit(0); i < size; i = found.nextClearBit(i + 1)) {
      if (behind.get(asked++)) {
        found.set(i);
      }
    }
    return found;
  }

  int lookupPrefix(BlockIds ids) {
    int size = ids.size();
    int next = 0;
    while (next < size) {
      while (next < size && inPool(ids, next)) {
        next++;
      }
      if (next == size || backend == null) {
        break;
      }
      int run = backend.lookupPrefix(next == 0 ? ids : ids.slice(next, size)) + 1;
      next += run;
      if (run == 0 || next == size || !inPool(ids, next)) {
        break;
      }
    }
    return next - 1;
  }

  void prefetch(BlockIds ids) {
    if (backend != null && !config.loadBackendOnly() && !ids.isEmpty()) {
      prefetcher.prefetch(backend, ids);
    }
  }

  Task load(Transfer transfer) {
    admit(transfer);
    LoadWork load = new LoadWork(this, lastTask.incrementAndGet(), transfer);
    load.start();
    plan(load);
    return load.task;
  }

  Task dump(Transfer transfer) {
    admit(transfer);
    DumpWork dump = new DumpWork(this, lastTask.incrementAndGet(), transfer);
    if (transfer.shardCount() > 0) {
      ledger.add(dump);
    }
    dump.start();
    Store store = backend;
    if (store == null || !dump.mustAsk()) {
      plan(dump);
    } else {
      dispatcher.submit(
          () -> {
            dump.ask(store);
            plan(dump);
          });
    }
    return dump.task;
  }

  FlushResult flush(Duration timeout) throws InterruptedException {
    long deadline = clock.getAsLong() + TimeUnit.NANOSECONDS.convert(timeout);
    FlushResult own;
    writes.hurry(1);
    try {
      own = ledger.await(deadline);
    } finally {
      writes.hurry(-1);
    }
    if (backend == null) {
      return own;
    }
    long left = Math.max(0, deadline - clock.getAsLong());
    FlushResult behind = backend.flush(Duration.ofNanos(left));
    BlockIds lost = behind.failedBlocks();
    for (int i = 0; i < lost.size(); i++) {
      // It took them over, and failed afterwards.
      pool.drop(lost.high(i), lost.low(i));
    }
    return merge(merge(own, behind), borrowed.await(backend, deadline));
  }

  BitSet durable(BlockIds ids) {
    return backend == null ? new BitSet() : backend.durable(ids);
  }

  /** What is shared with other workers; null when the buffer is this process's alone. */
  @Nullable SharedBuffer shared() {
    return shared;
  }

  /** Has shards copied from their slots into the engine's memory. */
  void copyToEngine(LoadCopy batch) {
    if (batch.work().transfer.isHost()) {
      copiers.submit(batch);
    } else {
      engineDevice.loads().submit(batch);
    }
  }

  /** Has shards copied from the engine's memory into their slots. */
  void copyFromEngine(DumpCopy batch) {
    if (batch.work().transfer.isHost()) {
      copiers.submit(batch);
    } else {
      engineDevice.dumps().submit(batch);
    }
  }

  /** The backend, for those that exist only where there is one. */
  Store requireBackend() {
    return Objects.requireNonNull(backend);
  }

  /** Drains within {@code timeout_ms}, ends the threads, and frees the memory when nobody uses it. */
  void close() {
    admission.close();
    boolean interrupted = false;
    long deadline = clock.getAsLong() + TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
    try {
      drain(deadline);
    } catch (InterruptedException e) {
      LOG.warn("Cache: interrupted while closing; what is under way is dropped");
      deadlines.expireAll();
      interrupted = true;
    }
    boolean copied = copiers.close(JOIN);
    copied &= engineDevice.closeThreads(JOIN);
    try {
      if (!dispatcher.close(JOIN)) {
        LOG.warn("Cache: the stage behind has not answered a look-up; its thread is left behind");
      }
      if (!deadlines.close(JOIN)) {
        LOG.warn("Cache: the thread of the deadlines is left behind");
      }
      if (shared != null) {
        shared.forgetDumped();
      }
      int open = traffic.awaitNone(Math.max(0, deadline - clock.getAsLong()));
      if (open > 0) {
        LOG.warn(
            "Cache: the stage behind still works on {} transfers; {} bytes are freed when it is"
                + " done",
            open,
            memory.byteSize());
      }
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (copied) {
      traffic.close(
          () -> {
            engineDevice.release();
            freeMemory();
          });
    } else {
      LOG.error("Cache: copies do not end; {} bytes are not freed", memory.byteSize());
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void drain(long deadline) throws InterruptedException {
    int tasks = admission.awaitNone(Math.max(0, deadline - clock.getAsLong()));
    if (tasks > 0) {
      LOG.warn("Cache: {} tasks were not done when the store closed; they are ended", tasks);
      deadlines.expireAll();
    }
    writes.hurry(1);
    FlushResult left = ledger.await(deadline);
    if (!left.ok()) {
      LOG.warn(
          "Cache: when the store closed, {} dumped blocks were not written to the stage behind, and"
              + " {} had failed since the last flush",
          left.pendingBlocks(),
          left.failedCount(),
          left.cause());
    }
  }

  private void admit(Transfer transfer) {
    if (!transfer.layout().equals(config.layout())) {
      throw new StoreException(
          "Cache keeps blocks of "
              + config.layout()
              + "; the transfer is made for "
              + transfer.layout()
              + ": make it with the layout the store was configured with");
    }
    engineDevice.require(transfer);
    admission.enter(transfer.shardCount());
  }

  private void plan(Work work) {
    // Those who wait for slots come first: take none while there are any.
    work.plan(pool.wanting() > 0 ? SlotDirectory.ALL_STRIPES : 0);
    if (work.wantsRoom()) {
      dispatcher.retry(work);
    }
  }

  private boolean inPool(BlockIds ids, int i) {
    return !config.loadBackendOnly() && pool.isComplete(ids, i);
  }

  private static FlushResult merge(FlushResult own, FlushResult behind) {
    SequencedSet<BlockIds> named = new LinkedHashSet<>();
    for (BlockIds ids : new BlockIds[] {own.failedBlocks(), behind.failedBlocks()}) {
      for (int i = 0; i < ids.size(); i++) {
        named.add(BlockIds.of(ids.high(i), ids.low(i)));
      }
    }
    long[] words = new long[2 * named.size()];
    int next = 0;
    for (BlockIds id : named) {
      words[next++] = id.high(0);
      words[next++] = id.low(0);
    }
    // A block may have failed in both: one name, one failure.
    long unnamed = own.failedCount() - own.failedBlocks().size();
    unnamed += behind.failedCount() - behind.failedBlocks().size();
    return new FlushResult(
        own.pendingBlocks() + behind.pendingBlocks(),
        BlockIds.wrap(words),
        named.size() + unnamed,
        own.cause() != null ? own.cause() : behind.cause());
  }

  private static PoolMemory memory(CacheConfig config, @Nullable Store backend) {
    int slots = (int) config.slots();
    long stride = config.stride();
    MemoryRegion offered = backend == null ? null : backend.offerMemory(slots * stride);
    if (offered != null) {
      return PoolMemory.offered(offered, slots, stride);
    }
    long available = new HostMemory(Path.of("/")).available();
    if (slots * stride > available) {
      throw new StoreException(
          "Cache needs "
              + CacheConfig.gib(slots * stride)
              + " GiB of memory for its buffer (cache_buffer_capacity_gb "
              + config.capacityGb()
              + "), and "
              + CacheConfig.gib(available)
              + " GiB are available: lower cache_buffer_capacity_gb; each of the "
              + config.localRanks()
              + " workers on this node has a buffer of its own");
    }
    return PoolMemory.allocate(slots, stride);
  }
}
