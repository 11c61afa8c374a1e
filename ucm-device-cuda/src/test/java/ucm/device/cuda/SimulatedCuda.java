package ucm.device.cuda;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import ucm.api.MemoryRegion;
import ucm.testkit.fault.SimulatedLibrary;

/**
 * The simulated CUDA driver, {@code src/test/c/sim_cuda.c}, built by gcc and loaded into this
 * process before JCuda asks for a {@code libcuda.so.1}: the linker takes the one that is there. All the
 * rest, JCuda's native code included, is the real thing.
 */
@SuppressWarnings("restricted")
final class SimulatedCuda {

  /** Everything that must be as before when all is closed. */
  private static final List<String> KEPT =
      List.of("streams", "events", "registrations", "allocations", "contexts");

  private static final Path SOURCE = Path.of("src/test/c/sim_cuda.c");
  private static final Path LIBRARY = Path.of("target/sim/libcuda.so.1").toAbsolutePath();

  private static SimulatedCuda loaded;

  private final SimulatedLibrary library;

  private SimulatedCuda() {
    System.load(LIBRARY.toString());
    library = new SimulatedLibrary(LIBRARY);
  }

  /** The driver, healed; the test is skipped where it cannot be built. */
  static synchronized SimulatedCuda load() {
    if (loaded == null) {
      SimulatedLibrary.build(SOURCE, LIBRARY, "-Wl,-soname,libcuda.so.1");
      loaded = new SimulatedCuda();
    }
    loaded.heal();
    loaded.hold(false);
    loaded.delay(0);
    return loaded;
  }

  /** Has calls of a function fail: so many, from the n-th from now on, counted from 1. */
  void fail(String function, long nth, long times, int code) {
    library.fail(function, nth, times, code);
  }

  /** Forgets failures to come, misuse, and what was lost. */
  void heal() {
    library.heal();
  }

  /** Has each copy begin so many microseconds late. */
  void delay(long micros) {
    library.call("sim_delay", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), micros);
  }

  /** While held, no copy runs. */
  void hold(boolean held) {
    library.call("sim_hold", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT), held ? 1 : 0);
  }

  /** The handle of an event that was recorded and has not come. */
  long event() {
    return ((MemorySegment) library.call("sim_event", FunctionDescriptor.of(ValueLayout.ADDRESS)))
        .address();
  }

  void comes(long event) {
    library.call(
        "sim_event_comes",
        FunctionDescriptor.ofVoid(ValueLayout.ADDRESS),
        MemorySegment.ofAddress(event));
  }

  /** What is counted under a name, or the calls of a function. */
  long count(String what) {
    return library.count(what);
  }

  /** The bytes of memory of the device. */
  MemorySegment bytes(MemoryRegion device) {
    MemorySegment at =
        (MemorySegment)
            library.call(
                "sim_bytes",
                FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG),
                device.address());
    return at.reinterpret(device.byteSize());
  }

  /** What must not grow. */
  Map<String, Long> kept() {
    return library.counts(KEPT);
  }

  void requireNoMisuse() {
    library.requireNoMisuse();
  }
}
