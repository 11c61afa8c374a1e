package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import ucm.api.MemoryRegion;

/**
 * The stand-in for the CUDA driver, {@code src/test/c/sim_cuda.c}, built by gcc and loaded into this
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

  private final SymbolLookup symbols;

  private SimulatedCuda() {
    System.load(LIBRARY.toString());
    symbols = SymbolLookup.libraryLookup(LIBRARY, Arena.global());
  }

  /** The driver, healed; the test is skipped where it cannot be built. */
  static synchronized SimulatedCuda load() {
    if (loaded == null) {
      build();
      loaded = new SimulatedCuda();
    }
    loaded.heal();
    loaded.hold(false);
    loaded.delay(0);
    return loaded;
  }

  private static void build() {
    try {
      Files.createDirectories(LIBRARY.getParent());
      Process gcc =
          new ProcessBuilder(
                  "gcc",
                  "-shared",
                  "-fPIC",
                  "-O2",
                  "-Wall",
                  "-Wextra",
                  "-Werror",
                  "-Wl,-soname,libcuda.so.1",
                  "-o",
                  LIBRARY.toString(),
                  SOURCE.toString(),
                  "-lpthread")
              .redirectErrorStream(true)
              .start();
      String said = new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(gcc.waitFor()).as(said).isZero();
    } catch (IOException e) {
      assumeTrue(false, "no gcc to build the simulated CUDA driver with: " + e.getMessage());
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Has calls of a function fail: so many, from the n-th from now on, counted from 1. */
  void fail(String function, long nth, long times, int code) {
    try (Arena arena = Arena.ofConfined()) {
      call(
          "sim_fail",
          FunctionDescriptor.ofVoid(
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_INT),
          arena.allocateFrom(function),
          nth,
          times,
          code);
    }
  }

  /** Forgets failures to come, misuse, and what was lost. */
  void heal() {
    call("sim_heal", FunctionDescriptor.ofVoid());
  }

  /** Has each copy begin so many microseconds late. */
  void delay(long micros) {
    call("sim_delay", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), micros);
  }

  /** While held, no copy runs. */
  void hold(boolean held) {
    call("sim_hold", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT), held ? 1 : 0);
  }

  /** The handle of an event that was recorded and has not come. */
  long event() {
    return ((MemorySegment) call("sim_event", FunctionDescriptor.of(ValueLayout.ADDRESS)))
        .address();
  }

  void comes(long event) {
    call(
        "sim_event_comes",
        FunctionDescriptor.ofVoid(ValueLayout.ADDRESS),
        MemorySegment.ofAddress(event));
  }

  /** What is counted under a name, or the calls of a function. */
  long count(String what) {
    try (Arena arena = Arena.ofConfined()) {
      return (long)
          call(
              "sim_count",
              FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.ADDRESS),
              arena.allocateFrom(what));
    }
  }

  /** The bytes of memory of the device. */
  MemorySegment bytes(MemoryRegion device) {
    MemorySegment at =
        (MemorySegment)
            call(
                "sim_bytes",
                FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG),
                device.address());
    return at.reinterpret(device.byteSize());
  }

  /** What must not grow. */
  Map<String, Long> kept() {
    Map<String, Long> kept = new TreeMap<>();
    KEPT.forEach(name -> kept.put(name, count(name)));
    return kept;
  }

  void requireNoMisuse() {
    MemorySegment text =
        (MemorySegment)
            call(
                "sim_first_misuse",
                FunctionDescriptor.of(
                    ValueLayout.ADDRESS.withTargetLayout(
                        MemoryLayout.sequenceLayout(512, ValueLayout.JAVA_BYTE))));
    assertThat(text.getString(0)).as("misuse of the driver").isEmpty();
    assertThat(count("misuses")).isZero();
  }

  private Object call(String function, FunctionDescriptor type, Object... arguments) {
    try {
      return Linker.nativeLinker()
          .downcallHandle(symbols.findOrThrow(function), type)
          .invokeWithArguments(arguments);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
