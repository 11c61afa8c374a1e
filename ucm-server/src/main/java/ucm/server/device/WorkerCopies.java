package ucm.server.device;

import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockLender.Lending;
import ucm.api.MemoryRegion;
import ucm.device.Device;
import ucm.device.DeviceDriver;
import ucm.device.DeviceException;
import ucm.device.DeviceInfo;
import ucm.device.DeviceStream;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.server.protocol.DeviceFields;
import ucm.server.protocol.DeviceFields.CopyMessage;
import ucm.server.protocol.WorkerFields;
import ucm.server.staging.StagingSegment;

/**
 * Copies between the slots of a rank and its KV cache on a device, and from slots that a store lends. Loads have
 * a stream and a thread, saves have others, so that both directions of the bus are used at once. Thread-safe.
 *
 * <p>After {@link #close} nothing here touches the worker's memory any more.
 */
public final class WorkerCopies implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(WorkerCopies.class);

  private final WorkerMemory memory;
  private final StagingSegment segment;
  private final @Nullable Lending lent;
  private final KvLayout layout;
  // Slots hold blocks of one group, whose layers lie one behind the other.
  private final int[] groupOf;
  private final CopyThread loads;
  private final CopyThread saves;
  // Guarded by this.
  private boolean closed;

  /** A thread with its stream. */
  private final class CopyThread {

    private final ExecutorService thread;
    private @Nullable DeviceStream stream;

    CopyThread(String name) {
      thread =
          Executors.newSingleThreadExecutor(
              Thread.ofPlatform().daemon().name("ucm-serve-" + name).factory());
    }

    /** Has something done with the stream; {@code done} gets why it could not be, or an empty text. */
    void submit(Consumer<DeviceStream> work, Consumer<String> done) {
      try {
        thread.execute(() -> done.accept(run(work)));
      } catch (RejectedExecutionException e) {
        done.accept("the worker is being closed");
      }
    }

    private String run(Consumer<DeviceStream> work) {
      DeviceStream on = stream;
      try {
        if (on == null) {
          on = memory.device().stream(0);
          stream = on;
        }
        work.accept(on);
        on.awaitAll();
        return "";
      } catch (DeviceException e) {
        settle(on);
        return String.valueOf(e.getMessage());
      }
    }

    private void settle(@Nullable DeviceStream on) {
      try {
        if (on != null) {
          on.awaitAll();
        }
      } catch (DeviceException e) {
        // The copies have ended all the same: the context is lost.
        LOG.debug("a stream ended with {}", e.toString());
      }
    }

    /** Returns when nothing is under way, however long that takes. */
    void close() {
      CompletableFuture.runAsync(this::closeStream, thread).join();
      thread.shutdown();
    }

    private void closeStream() {
      try {
        if (stream != null) {
          stream.close();
        }
      } catch (DeviceException e) {
        LOG.debug("a stream closed with {}", e.toString());
      }
    }
  }

  private WorkerCopies(
      WorkerMemory memory, StagingSegment segment, @Nullable Lending lent, WorkerFields worker) {
    this.memory = memory;
    this.segment = segment;
    this.lent = lent;
    layout = worker.layout();
    groupOf = worker.groups().groupOf(layout);
    int rank = worker.rank();
    loads = new CopyThread("load-" + rank);
    saves = new CopyThread("save-" + rank);
  }

  /**
   * Opens a worker's KV cache, and finds out whether both processes mean the same memory.
   *
   * @param worker the rank and its layers
   * @param segment the slots of the rank; pinned on the device, if they were not
   * @param lent slots of a store, which loads may name as well, by the numbers behind those of the segment
   * @throws DeviceException when the daemon cannot copy; says why
   */
  public static WorkerCopies open(
      SharedDevices devices,
      DeviceFields fields,
      WorkerFields worker,
      StagingSegment segment,
      @Nullable Lending lent) {
    Device device = devices.require(fields.uuid());
    segment.pin(device);
    WorkerMemory memory = new WorkerMemory(device, fields, worker.layout());
    WorkerCopies copies = new WorkerCopies(memory, segment, lent, worker);
    try {
      copies.probe();
    } catch (RuntimeException e) {
      copies.close();
      throw e;
    }
    return copies;
  }

  /** Reads what the worker has written, and writes the opposite. */
  private void probe() {
    DeviceFields.Probe probe = memory.probe();
    byte[] written = probe.written();
    Device device = memory.device();
    MemoryRegion page = device.allocatePinned(written.length);
    try {
      MemoryRegion region = memory.probeRegion();
      // Filled, so that bytes that were never copied are not taken for the worker's.
      page.segment().fill((byte) 0);
      await(stream -> stream.copy(region, probe.offset(), page, 0, written.length));
      byte[] found = page.segment().toArray(ValueLayout.JAVA_BYTE);
      if (!Arrays.equals(found, written)) {
        throw new DeviceException("the daemon reads other bytes than the worker has written");
      }
      for (int i = 0; i < written.length; i++) {
        page.segment().set(ValueLayout.JAVA_BYTE, i, (byte) ~written[i]);
      }
      await(stream -> stream.copy(page, 0, region, probe.offset(), written.length));
    } finally {
      device.free(page);
    }
  }

  private void await(Consumer<DeviceStream> work) {
    CompletableFuture<String> done = new CompletableFuture<>();
    loads.submit(work, done::complete);
    String error = done.join();
    if (!error.isEmpty()) {
      throw new DeviceException(error);
    }
  }

  /**
   * Copies soon.
   *
   * @param done gets an empty text when all is copied, else why it is not; called once, by another thread
   * @throws IllegalArgumentException when there are no such layers, slots or blocks
   */
  public void copy(CopyMessage message, Consumer<String> done) {
    require("layer", message.firstLayer(), layout.layers());
    require("layer", message.firstLayer() + message.layers() - 1, layout.layers());
    int slots = segment.slots() + (lent == null || message.save() ? 0 : lent.slots());
    for (int slot : message.slots()) {
      require("slot", slot, slots);
    }
    for (int block : message.blocks()) {
      require("block", block, memory.blocks());
    }
    CopyThread thread = message.save() ? saves : loads;
    thread.submit(stream -> queue(stream, message), done);
  }

  private static void require(String what, int number, int count) {
    if (number < 0 || number >= count) {
      throw new IllegalArgumentException(
          "there are " + count + " of " + what + "s; found number " + number);
    }
  }

  private void queue(DeviceStream stream, CopyMessage message) {
    long offset = 0;
    int group = groupOf[message.firstLayer()];
    for (int layer = 0; layer < message.firstLayer() + message.layers(); layer++) {
      if (groupOf[layer] != group) {
        continue;
      }
      for (WorkerMemory.Tensor tensor : memory.layers().get(layer)) {
        if (layer >= message.firstLayer()) {
          queue(stream, message, tensor, offset);
        }
        offset += tensor.blockBytes();
      }
    }
  }

  private void queue(
      DeviceStream stream, CopyMessage message, WorkerMemory.Tensor tensor, long slotOffset) {
    for (int i = 0; i < message.slots().length; i++) {
      int slot = message.slots()[i];
      MemoryRegion host = segment.region();
      long onHost = slot * segment.stride() + slotOffset;
      if (lent != null && slot >= segment.slots()) {
        host = lent.memory();
        onHost = (slot - segment.slots()) * lent.stride() + slotOffset;
      }
      long onDevice = tensor.offsetOf(message.blocks()[i]);
      if (message.save()) {
        stream.copy(tensor.region(), onDevice, host, onHost, tensor.blockBytes());
      } else {
        stream.copy(host, onHost, tensor.region(), onDevice, tensor.blockBytes());
      }
    }
  }

  /** The device's name. */
  public String deviceName() {
    return memory.device().info().name();
  }

  /** Waits for what is under way, then lets the worker's memory go. Idempotent. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    loads.close();
    saves.close();
    try {
      memory.close();
    } catch (DeviceException e) {
      LOG.warn("memory of a worker was not let go: {}", e.getMessage());
    }
  }

  /**
   * The devices that the daemon copies with, each opened once, by the names that all processes know.
   * Thread-safe.
   */
  public static final class SharedDevices implements AutoCloseable {

    // Guarded by this.
    private final Map<String, Device> open = new HashMap<>();

    /** Opens nothing yet. */
    public SharedDevices() {}

    /**
     * The device of a name.
     *
     * @param uuid as its driver tells it, 32 hexadecimal digits
     * @throws DeviceException when this process does not see it
     */
    synchronized Device require(String uuid) {
      return open.computeIfAbsent(uuid, SharedDevices::find);
    }

    private static Device find(String uuid) {
      DeviceDriver driver =
          DeviceDriver.find("cuda")
              .orElseThrow(
                  () -> new DeviceException("this runtime has no driver for CUDA devices"));
      for (DeviceInfo info : driver.devices()) {
        if (info.uuid().equals(uuid)) {
          return driver.open(info.id());
        }
      }
      throw new DeviceException(
          "the daemon does not see the worker's GPU; give both processes or containers the same"
              + " GPUs");
    }

    /** Lets them go; what was opened on them must be closed. */
    @Override
    public synchronized void close() {
      open.values().forEach(Device::close);
      open.clear();
    }
  }
}
