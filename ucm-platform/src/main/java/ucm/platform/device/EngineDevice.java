package ucm.platform.device;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.device.Device;
import ucm.device.DeviceAbsentException;
import ucm.device.DeviceDriver;
import ucm.device.DeviceException;
import ucm.device.DeviceStream;
import ucm.platform.memory.NumaMemory;
import ucm.platform.thread.CpuAffinity;

/**
 * The device that the engine's memory may belong to, or the reason why there is none. The slots that bytes
 * go through are pinned for it. Transfers of host memory need it not, whether it is there or not.
 * Thread-safe.
 */
public final class EngineDevice {

  private static final Logger LOG = LoggerFactory.getLogger(EngineDevice.class);
  private static final String CUDA = "cuda";
  // Enough for threads that have nothing to wait for, on a machine that is busy.
  private static final Duration JOIN = Duration.ofSeconds(5);

  /**
   * What a stage asks for.
   *
   * @param stage its name, for messages and, in lower case, for threads
   * @param key the configuration key that chooses the device, for messages
   * @param wanted the value of that key: {@code auto}, {@code host} or {@code cuda}
   * @param deviceId the device served
   * @param streams threads, with a stream each, for each direction
   * @param cores what its threads run on; empty leaves it to the kernel
   */
  public record Choice(
      String stage, String key, String wanted, int deviceId, int streams, List<Long> cores) {}

  private final Choice choice;
  private final @Nullable Device device;
  private final String description;
  private final @Nullable DeviceQueue loads;
  private final @Nullable DeviceQueue dumps;
  private volatile @Nullable DeviceException lost;

  private EngineDevice(Choice choice, String whyNot) {
    this.choice = choice;
    this.description = whyNot;
    this.device = null;
    this.loads = null;
    this.dumps = null;
  }

  private EngineDevice(Choice choice, Device device, SlotMemory memory, boolean pin) {
    this.choice = choice;
    this.device = device;
    long start = System.nanoTime();
    if (pin) {
      NumaMemory.prefer(memory.region().segment(), device.info().numaNode());
      // Kept by the device, which unpins all when it is closed.
      device.pin(memory.region(), memory.stride());
    }
    long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
    this.description = device.info().name() + ", buffers pinned in " + millis + " ms";
    CpuAffinity affinity = CpuAffinity.of(choice.cores());
    String prefix = choice.stage().toLowerCase(Locale.ROOT);
    int streams = choice.streams();
    this.loads = new DeviceQueue(prefix + "-load", streams, this, memory, affinity);
    try {
      this.dumps = new DeviceQueue(prefix + "-dump", streams, this, memory, affinity);
    } catch (RuntimeException e) {
      loads.close(JOIN);
      throw e;
    }
  }

  /**
   * Opens the device that the configuration asks for, pins the slots, and starts the threads.
   *
   * @param memory gives the slots when the device is there, so that others need not have them
   * @param pin whether they are to be pinned, as no other device of the driver has done so
   * @throws DeviceException when the configuration asks for a device that cannot be had
   */
  public static EngineDevice open(
      Choice choice, Supplier<? extends SlotMemory> memory, boolean pin) {
    if (choice.wanted().equals("host")) {
      return new EngineDevice(choice, choice.key() + " is host");
    }
    boolean must = choice.wanted().equals(CUDA);
    try {
      return openCuda(choice, memory, pin);
    } catch (DeviceException e) {
      if (must) {
        throw new DeviceException(choice.key() + " is cuda, and " + e.getMessage());
      }
      if (!(e instanceof DeviceAbsentException)) {
        LOG.warn("{} moves host memory only: {}", choice.stage(), e.getMessage());
      }
      return new EngineDevice(choice, String.valueOf(e.getMessage()));
    }
  }

  private static EngineDevice openCuda(
      Choice choice, Supplier<? extends SlotMemory> memory, boolean pin) {
    DeviceDriver driver =
        DeviceDriver.find(CUDA)
            .orElseThrow(
                () ->
                    new DeviceAbsentException(
                        "this runtime has no part for CUDA (module ucm.device.cuda): use the image"
                            + " with it"));
    Device device = driver.open(choice.deviceId());
    try {
      return new EngineDevice(choice, device, memory.get(), pin);
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
  public void require(Transfer transfer) {
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
          ("%s moves host memory only, and %s names memory of a device: hand in regions of"
                  + " MemoryRegion.host, or make the device usable; %s")
              .formatted(stage(), transfer, description));
    }
    DeviceException fault = lost;
    if (fault != null) {
      throw new StoreException("the device is lost: " + fault.getMessage(), fault);
    }
    if (!transfer.isOn(choice.deviceId())) {
      throw new StoreException(
          ("%s names memory that is not all of device %s, which this %s serves (device_id): hand in"
                  + " one transfer for each kind of memory")
              .formatted(transfer, choice.deviceId(), stage()));
    }
  }

  /** Whether there is one. */
  public boolean isThere() {
    return device != null;
  }

  /** The name of the stage that it serves. */
  String stage() {
    return choice.stage();
  }

  /** Where copies into memory of the device are queued; only for transfers that were let in. */
  public DeviceQueue loads() {
    return Objects.requireNonNull(loads);
  }

  /** Where copies out of memory of the device are queued. */
  public DeviceQueue dumps() {
    return Objects.requireNonNull(dumps);
  }

  /** A stream for the calling thread. */
  DeviceStream stream(int marks) {
    return Objects.requireNonNull(device).stream(marks);
  }

  /** It is unknown what the device does with the slots. */
  void lost(DeviceException cause) {
    if (lost == null) {
      LOG.error(
          "{}: the device is lost, its transfers are refused: {}", stage(), cause.getMessage());
      lost = cause;
    }
  }

  /**
   * Ends the threads.
   *
   * @return whether nothing can touch the slots any more
   */
  public boolean closeThreads(Duration timeout) {
    boolean ended = true;
    for (DeviceQueue queue : Arrays.asList(loads, dumps)) {
      ended &= queue == null || queue.close(timeout);
    }
    return ended && lost == null;
  }

  /** Unpins the slots and releases the device; when its threads have ended. */
  public void release() {
    try {
      if (device != null) {
        device.close();
      }
    } catch (DeviceException e) {
      LOG.warn("{}: the device was not let go cleanly: {}", stage(), e.getMessage());
    }
  }

  @Override
  public String toString() {
    // The reason is kept for the transfer that wants one.
    return device == null ? "host memory only" : description;
  }
}
