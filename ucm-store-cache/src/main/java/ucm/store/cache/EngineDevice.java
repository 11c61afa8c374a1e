package ucm.store.cache;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.MemoryRegion;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.device.Device;
import ucm.device.DeviceAbsentException;
import ucm.device.DeviceDriver;
import ucm.device.DeviceException;
import ucm.device.DeviceStream;
import ucm.store.common.CpuAffinity;

/**
 * The device that the engine's memory may belong to, or the reason why there is none. The pool is pinned
 * for it. Transfers of host memory need it not, whether it is there or not.
 */
final class EngineDevice {

  private static final Logger LOG = LoggerFactory.getLogger(EngineDevice.class);
  private static final String CUDA = "cuda";
  // Enough for threads that have nothing to wait for, on a machine that is busy.
  private static final Duration JOIN = Duration.ofSeconds(5);

  private final int deviceId;
  private final @Nullable Device device;
  private final String description;
  private final @Nullable DeviceQueue loads;
  private final @Nullable DeviceQueue dumps;
  private volatile @Nullable DeviceException lost;

  private EngineDevice(int deviceId, String whyNot) {
    this.deviceId = deviceId;
    this.description = whyNot;
    this.device = null;
    this.loads = null;
    this.dumps = null;
  }

  private EngineDevice(CacheConfig config, Device device, PoolMemory memory) {
    this.deviceId = config.deviceId();
    this.device = device;
    long start = System.nanoTime();
    for (MemoryRegion region : memory.regions()) {
      // Kept by the device, which unpins all when it is closed.
      device.pin(region);
    }
    long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
    this.description = device.info().name() + ", pool pinned in " + millis + " ms";
    CpuAffinity affinity = CpuAffinity.of(config.cores());
    this.loads = new DeviceQueue("load", config.streams(), this, memory, affinity);
    try {
      this.dumps = new DeviceQueue("dump", config.streams(), this, memory, affinity);
    } catch (RuntimeException e) {
      loads.close(JOIN);
      throw e;
    }
  }

  /**
   * Opens the device that the configuration asks for, pins the pool, and starts the threads.
   *
   * @throws DeviceException when {@code cache_device} asks for one that cannot be had
   */
  static EngineDevice open(CacheConfig config, PoolMemory memory) {
    if (config.device().equals("host")) {
      return new EngineDevice(config.deviceId(), "cache_device is host");
    }
    boolean must = config.device().equals(CUDA);
    try {
      return open(config.deviceId(), config, memory);
    } catch (DeviceException e) {
      if (must) {
        throw new DeviceException("cache_device is cuda, and " + e.getMessage());
      }
      if (!(e instanceof DeviceAbsentException)) {
        LOG.warn("Cache moves host memory only: {}", e.getMessage());
      }
      return new EngineDevice(config.deviceId(), String.valueOf(e.getMessage()));
    }
  }

  private static EngineDevice open(int deviceId, CacheConfig config, PoolMemory memory) {
    DeviceDriver driver =
        DeviceDriver.find(CUDA)
            .orElseThrow(
                () ->
                    new DeviceAbsentException(
                        "this runtime has no part for CUDA (module ucm.device.cuda): use the image"
                            + " with it"));
    Device device = driver.open(deviceId);
    try {
      return new EngineDevice(config, device, memory);
    } catch (RuntimeException | Error e) {
      try {
        device.close();
      } catch (DeviceException second) {
        e.addSuppressed(second);
      }
      throw e;
    }
  }

  /**
   * Checks that a transfer is one that can be moved.
   *
   * @throws StoreException when some of its memory belongs to a device that is not here
   */
  void require(Transfer transfer) {
    if (transfer.isHost()) {
      if (transfer.event() != 0) {
        throw new StoreException(
            transfer
                + " names host memory and an event of a device: a copy of host memory cannot wait"
                + " for it; wait before handing the transfer in");
      }
      return;
    }
    if (device == null) {
      throw new StoreException(
          "Cache moves host memory only, and "
              + transfer
              + " names memory of a device: hand in regions of MemoryRegion.host, or make the"
              + " device usable; "
              + description);
    }
    DeviceException fault = lost;
    if (fault != null) {
      throw new StoreException("the device is lost: " + fault.getMessage(), fault);
    }
    if (!transfer.isOn(deviceId)) {
      throw new StoreException(
          transfer
              + " names memory that is not all of device "
              + deviceId
              + ", which this Cache serves (device_id): hand in one transfer for each kind of"
              + " memory");
    }
  }

  /** Where copies into memory of the device are queued; only for transfers that were let in. */
  DeviceQueue loads() {
    return Objects.requireNonNull(loads);
  }

  /** Where copies out of memory of the device are queued. */
  DeviceQueue dumps() {
    return Objects.requireNonNull(dumps);
  }

  /** A stream for the calling thread. */
  DeviceStream stream(int marks) {
    return Objects.requireNonNull(device).stream(marks);
  }

  /** Nobody knows any more what the device does with the pool. */
  void lost(DeviceException cause) {
    if (lost == null) {
      LOG.error("Cache: the device is lost, its transfers are refused: {}", cause.getMessage());
      lost = cause;
    }
  }

  /**
   * Ends the threads.
   *
   * @return whether nothing can touch the pool any more
   */
  boolean closeThreads(Duration timeout) {
    boolean ended = true;
    for (DeviceQueue queue : queues()) {
      ended &= queue.close(timeout);
    }
    return ended && lost == null;
  }

  /** Unpins the pool and lets the device go; when its threads have ended. */
  void release() {
    try {
      if (device != null) {
        device.close();
      }
    } catch (DeviceException e) {
      LOG.warn("Cache: the device was not let go cleanly: {}", e.getMessage());
    }
  }

  private List<DeviceQueue> queues() {
    List<DeviceQueue> queues = new ArrayList<>();
    if (loads != null) {
      queues.add(loads);
    }
    if (dumps != null) {
      queues.add(dumps);
    }
    return queues;
  }

  @Override
  public String toString() {
    // Why there is none is told to who wants one.
    return device == null ? "host memory only" : description;
  }
}
