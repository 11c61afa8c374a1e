package ucm.device.cuda;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies that are queued with a stream by one call of {@code cuMemcpyBatchAsync}, which drivers of CUDA
 * 12.8 and later have. JCuda does not name it, so it is called through JNA, by the address that {@code
 * cuGetProcAddress} gives for the signature of 12.8.
 *
 * <p>For the thread that owns the stream. Adding a copy allocates nothing; a call some objects.
 */
final class CudaBatch implements AutoCloseable {

  /** {@code -Ducm.cuda.batch_copies=false} has each copy queued by a call of its own. */
  static final String PROPERTY = "ucm.cuda.batch_copies";

  // The first copies run while the next are added, and a failure names a small range of them.
  private static final int CAPACITY = 256;
  private static final int SINCE = 12080;
  // CUmemcpyAttributes: source access order, two location hints of type and id, flags.
  private static final int ATTRIBUTES_BYTES = 24;
  private static final int IN_STREAM_ORDER = 1;

  private static final Logger LOG = LoggerFactory.getLogger(CudaBatch.class);
  private static final Optional<Function> CALL = find();

  private final Function call;
  private final Arena arena = Arena.ofConfined();
  private final MemorySegment to = arena.allocate(ValueLayout.JAVA_LONG, CAPACITY);
  private final MemorySegment from = arena.allocate(ValueLayout.JAVA_LONG, CAPACITY);
  private final MemorySegment sizes = arena.allocate(ValueLayout.JAVA_LONG, CAPACITY);
  private final MemorySegment attributes = arena.allocate(ATTRIBUTES_BYTES, Long.BYTES);
  private final MemorySegment firstOfAttributes = arena.allocate(ValueLayout.JAVA_LONG);
  private final MemorySegment failed = arena.allocate(ValueLayout.JAVA_LONG);
  private int count;

  private CudaBatch(Function call) {
    this.call = call;
    attributes.set(ValueLayout.JAVA_INT, 0, IN_STREAM_ORDER);
  }

  /** A batch for a stream; empty where the driver has none, or the property says no. */
  static Optional<CudaBatch> preferred() {
    return "false".equals(System.getProperty(PROPERTY))
        ? Optional.empty()
        : CALL.map(CudaBatch::new);
  }

  /** Adds a copy between addresses of the host and of the device; true when the batch is full. */
  boolean add(long destination, long source, long bytes) {
    to.setAtIndex(ValueLayout.JAVA_LONG, count, destination);
    from.setAtIndex(ValueLayout.JAVA_LONG, count, source);
    sizes.setAtIndex(ValueLayout.JAVA_LONG, count, bytes);
    return ++count == CAPACITY;
  }

  /** Queues what was added; the batch is empty then, also when the driver refuses. */
  int queue(long stream) {
    if (count == 0) {
      return 0;
    }
    int copies = count;
    count = 0;
    return call.invokeInt(
        new Object[] {
          pointer(to),
          pointer(from),
          pointer(sizes),
          (long) copies,
          pointer(attributes),
          pointer(firstOfAttributes),
          1L,
          pointer(failed),
          new Pointer(stream)
        });
  }

  private static Pointer pointer(MemorySegment segment) {
    return new Pointer(segment.address());
  }

  private static Optional<Function> find() {
    try {
      NativeLibrary driver = NativeLibrary.getInstance("libcuda.so.1");
      PointerByReference found = new PointerByReference();
      int result =
          driver
              .getFunction("cuGetProcAddress_v2")
              .invokeInt(
                  new Object[] {"cuMemcpyBatchAsync", found, SINCE, 0L, new PointerByReference()});
      Pointer address = found.getValue();
      return result == 0 && address != null
          ? Optional.of(Function.getFunction(address))
          : Optional.empty();
    } catch (UnsatisfiedLinkError e) {
      LOG.debug("the driver queues no batches of copies: {}", e.getMessage());
      return Optional.empty();
    }
  }

  @Override
  public void close() {
    arena.close();
  }
}
