package ucm.store.cache;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreLife;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.thread.ThreadFaults;
import ucm.store.cache.config.CacheConfig;
import ucm.store.cache.transfer.CacheRuntime;

/**
 * Keeps blocks in host memory, above a slower stage or alone.
 *
 * <p>A dump ends for the engine when its bytes are in the pool; they are written to the next stage in
 * the background, which {@link #flush} waits for. A block that could not be written there is no hit. A
 * load is served from the pool, or through it from the next stage. Alone, the store is a memory that
 * forgets what was used least recently: nothing ever becomes durable.
 *
 * <p>The engine's memory is the host's, or that of GPU {@code device_id}: each transfer says which.
 *
 * <p>With {@code device_id: -1} it has no pool: look-ups go to the next stage, and no data is moved.
 */
@StoreName("Cache")
public final class CacheStore implements Store {

  private final StoreLife life = new StoreLife("Cache");
  private final ReentrantLock closing = new ReentrantLock();
  private @Nullable CacheConfig config;
  private @Nullable Store next;
  // Null while not open, and for a scheduler.
  private @Nullable CacheRuntime cache;

  /** Does nothing. */
  public CacheStore() {}

  @Override
  public List<ConfigKey<?>> configKeys() {
    return CacheConfig.KEYS;
  }

  @Override
  public void configure(StoreConfig config) {
    life.configured();
    this.config = CacheConfig.from(config);
  }

  @Override
  public Optional<String> refuseNext(@Nullable Store next) {
    if (next == null) {
      CacheConfig checked = config;
      return checked != null && checked.loadNextOnly()
          ? Optional.of(
              "cache_load_backend_only is true, and Cache is the last stage: there is no stage"
                  + " below it to load from; set it to false, or add a store below it, as in"
                  + " Cache|Posix")
          : Optional.empty();
    }
    return next.keepsBytes()
        ? Optional.empty()
        : Optional.of(
            "Cache hands bytes on, and the next stage, "
                + next.name()
                + ", keeps metadata only: add a store below it that keeps bytes, or use "
                + next.name()
                + " alone");
  }

  @Override
  public void open(StoreContext context) {
    CacheConfig checked = config;
    life.opened();
    if (checked == null) {
      throw new IllegalStateException("Store Cache is being configured by another thread");
    }
    try {
      next = context.next();
      Optional<String> refusal = refuseNext(next);
      if (refusal.isPresent()) {
        throw new StoreException(refusal.get());
      }
      cache =
          checked.isScheduler()
              ? null
              : new CacheRuntime(checked, context, new ThreadFaults("Cache", this::close));
    } catch (RuntimeException | Error e) {
      life.closed();
      throw e;
    }
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    life.requireOpen();
    if (cache != null) {
      return cache.lookups().lookup(ids);
    }
    return next == null ? new BitSet() : next.lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    life.requireOpen();
    if (cache != null) {
      return cache.lookups().lookupPrefix(ids);
    }
    return next == null ? -1 : next.lookupPrefix(ids);
  }

  @Override
  public void prefetch(BlockIds ids) {
    life.requireOpen();
    if (cache != null) {
      cache.prefetch(ids);
    }
  }

  @Override
  public Task load(Transfer transfer) {
    return moving("load").load(transfer);
  }

  @Override
  public Task dump(Transfer transfer) {
    return moving("dump").dump(transfer);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    life.requireOpen();
    if (cache != null) {
      return cache.flush(timeout);
    }
    return next == null ? FlushResult.clean() : next.flush(timeout);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    life.requireOpen();
    return next == null ? new BitSet() : next.durable(ids);
  }

  @Override
  public boolean canRemove() {
    return next == null || next.canRemove();
  }

  /** Removes blocks from the next stage first, so that none comes back into the pool. */
  @Override
  public BitSet remove(BlockIds ids) {
    life.requireOpen();
    BitSet gone = new BitSet(ids.size());
    gone.set(0, ids.size());
    if (next != null) {
      gone = next.remove(ids);
    }
    if (cache != null) {
      for (int i = 0; i < ids.size(); i++) {
        cache.pool.drop(ids.high(i), ids.low(i));
      }
    }
    return gone;
  }

  /** A second thread that closes waits for the first, which is bounded. */
  @Override
  public void close() {
    closing.lock();
    try {
      if (life.closed() && cache != null) {
        cache.close();
      }
    } finally {
      closing.unlock();
    }
  }

  private CacheRuntime moving(String operation) {
    life.requireOpen();
    if (cache == null) {
      throw new StoreException(
          "Cache was asked to "
              + operation
              + " with device_id -1: that is the scheduler, which looks up and moves no data; set"
              + " device_id to the device of this worker");
    }
    return cache;
  }

  /** the open next stage, for the tests of this package; null for a scheduler. */
  @Nullable
  public CacheRuntime opened() {
    return cache;
  }
}
