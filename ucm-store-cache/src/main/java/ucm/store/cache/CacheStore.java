package ucm.store.cache;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.AbstractStore;
import ucm.api.BlockIds;
import ucm.api.BlockLender;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.admin.Clearable;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.store.cache.config.CacheConfig;
import ucm.store.cache.transfer.CacheRuntime;
import ucm.store.cache.transfer.Dumps;

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
public final class CacheStore extends AbstractStore implements Clearable, BlockLender {

  private static final Logger LOG = LoggerFactory.getLogger(CacheStore.class);

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
  protected void doConfigure(StoreConfig config) {
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
            String.format(
                "Cache hands bytes on, and the next stage, %s, keeps metadata only: "
                    + "add a store below it that keeps bytes, or use %s alone",
                next.name(), next.name()));
  }

  /** A task says by itself whether its memory is that of the device. */
  @Override
  protected boolean takesDeviceMemory() {
    return true;
  }

  @Override
  protected void doOpen(StoreContext context) {
    next = context.next();
    if (!isScheduler()) {
      cache =
          new CacheRuntime(
              Objects.requireNonNull(config),
              context,
              new Dumps(
                  this::settled,
                  this::dumpFailed,
                  this::flushFailed,
                  this::awaitDumps,
                  this::takeFailedDumps),
              newThreads("dispatch"),
              this::threadFailed);
    }
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    if (cache != null) {
      return cache.lookups.lookup(ids);
    }
    return next == null ? new BitSet() : next.lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    requireOpen();
    if (cache != null) {
      return cache.lookups.lookupPrefix(ids);
    }
    return next == null ? -1 : next.lookupPrefix(ids);
  }

  @Override
  public @Nullable Lending lending() {
    requireOpen();
    return cache == null ? null : cache.lending();
  }

  @Override
  public int[] lend(BlockIds ids) {
    requireOpen();
    return runtime().lend(ids);
  }

  @Override
  public @Nullable Fetch fetch(BlockIds ids) {
    requireOpen();
    CacheRuntime cached = runtime();
    int blocks = cached.pool.beginFetch(ids.size());
    if (blocks == 0) {
      return null;
    }
    try {
      return (Fetch) load(cached.inPool(ids.slice(0, blocks)));
    } catch (RuntimeException e) {
      cached.pool.endFetch(blocks);
      throw e;
    }
  }

  @Override
  public void giveBack(int[] slots) {
    runtime().giveBack(slots);
  }

  @Override
  public void notePrompt(BlockIds ids) {
    requireOpen();
    if (next != null) {
      next.notePrompt(ids);
    }
  }

  @Override
  public Task load(Transfer transfer) {
    try {
      return super.load(transfer);
    } catch (QueueFullException e) {
      runtime().queueFull(false);
      throw e;
    }
  }

  @Override
  public Task dump(Transfer transfer) {
    try {
      return super.dump(transfer);
    } catch (QueueFullException e) {
      runtime().queueFull(true);
      throw e;
    }
  }

  @Override
  protected TransferTask newTask(long id, Transfer transfer, boolean isDump) {
    return runtime().newTask(id, transfer, isDump);
  }

  @Override
  protected void doLoad(TransferTask task) {
    runtime().start(task);
  }

  @Override
  protected void doDump(TransferTask task) {
    runtime().start(task);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    requireOpen();
    if (cache != null) {
      return cache.flush(timeout);
    }
    return next == null ? FlushResult.clean() : next.flush(timeout);
  }

  /** Asks for as much as all pools that divide the buffer may still have to write: each asks for itself. */
  @Override
  public boolean hasRoom(long bytes) {
    requireOpen();
    Store below = next;
    return below != null
        && below.hasRoom(Math.addExact(bytes, Objects.requireNonNull(config).capacityBytes()));
  }

  @Override
  public BitSet durable(BlockIds ids) {
    requireOpen();
    return next == null ? new BitSet() : next.durable(ids);
  }

  @Override
  public boolean canRemove() {
    return next == null || next.canRemove();
  }

  /** Removes blocks from the next stage first, so that none comes back into the pool. */
  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen();
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

  @Override
  public void clear() {
    requireOpen();
    if (cache != null) {
      cache.pool.dropAll();
    }
  }

  @Override
  protected void logFailure(String message, Throwable fault) {
    LOG.error(message, fault);
  }

  @Override
  protected void closesBefore(int openTasks) {
    LOG.warn("Cache: {} tasks were not done when the store closed; they are ended", openTasks);
  }

  @Override
  protected void doClose() {
    if (cache != null) {
      cache.close(timeToClose());
    }
  }

  private CacheRuntime runtime() {
    return Objects.requireNonNull(cache, "only a worker has tasks");
  }

  /** What moves data; null for a scheduler. */
  public @Nullable CacheRuntime opened() {
    return cache;
  }
}
