package ucm.store.cache.shared;

import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.Store;
import ucm.api.StoreMetrics;
import ucm.platform.libc.FileException;
import ucm.store.cache.config.CacheConfig;
import ucm.store.cache.config.HostMemory;
import ucm.store.cache.config.PoolMemory;

/** What an open Cache has when it shares its buffer: the segment, its pool, and the monitor of the other owners. */
public final class SharedBuffer {

  private static final Logger LOG = LoggerFactory.getLogger(SharedBuffer.class);

  // It ends at once unless it is copying for an engine.
  private static final Duration JOIN = Duration.ofSeconds(5);

  private final SharedSegment segment;
  private final PoolMemory memory;
  private @Nullable SharedPool pool;
  private @Nullable OwnerMonitor monitor;
  private @Nullable Store next;

  private SharedBuffer(SharedSegment segment) {
    this.segment = segment;
    SegmentLayout layout = segment.layout();
    this.memory = PoolMemory.offered(segment.slots(), layout.slots(), layout.stride());
  }

  /** Attaches to the buffer of the configured instance, or makes it. */
  public static SharedBuffer join(CacheConfig config) {
    int slabs = (int) (config.slots() / config.layout().shardCount());
    return new SharedBuffer(
        SharedSegment.join(
            SegmentFolder.DEV_SHM,
            config.uniqueId(),
            SegmentLayout.of(config.layout(), slabs),
            new HostMemory(Path.of("/")).available()));
  }

  /** The slots' bytes, owned by this and valid until {@link #leave}. */
  public PoolMemory memory() {
    return memory;
  }

  /** This process's view of the pool; asked for once. */
  public SharedPool pool(
      @Nullable Store next,
      StoreMetrics.Counter evictions,
      Runnable whenRoom,
      Thread.UncaughtExceptionHandler faults) {
    SharedPool made = new SharedPool(segment, next != null, evictions, whenRoom);
    this.next = next;
    this.pool = made;
    this.monitor = new OwnerMonitor(made, segment.owners(), faults);
    return made;
  }

  /** The shared lock of a stripe, for the tests of this package. */
  public StripeLock stripeLock(int stripe) {
    SegmentLayout layout = segment.layout();
    return new StripeLock(segment.words(), layout.stripeAt(stripe), segment.owners());
  }

  /** Starts to monitor the other owners. */
  public void start() {
    if (monitor != null) {
      monitor.start();
    }
  }

  /** Drops from the pool what the next stage does not have from this worker for good. May block. */
  public void forgetDumped() {
    if (pool != null && next != null) {
      pool.forgetDumped(next);
    }
  }

  /** Gives up all references and the memory; this process may touch neither afterwards. */
  public void leave() {
    if (monitor != null && !monitor.close(JOIN)) {
      LOG.error("Cache: a copy for another worker's load does not end; {} is not left", segment);
      return;
    }
    try {
      if (pool != null) {
        pool.leave();
      }
      segment.close();
    } catch (FileException e) {
      LOG.error("Cache: the shared buffer {} could not be left cleanly", segment, e);
    }
  }

  @Override
  public String toString() {
    return memory + " shared in " + segment;
  }
}
