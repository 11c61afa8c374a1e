package ucm.store.ds3fs;

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
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * The stand-in for 3FS's library, {@code src/test/c/sim_hf3fs.c}, built by gcc. The stores find and load
 * it as they would the real one, and their calls of it are the real ones; this class drives it.
 */
@SuppressWarnings("restricted")
final class SimulatedHf3fs {

  static final Path LIBRARY =
      Path.of("target/sim", UsrbioLibrary.FILE_NAME).toAbsolutePath().normalize();

  /** Everything that must be as before when all is closed. */
  private static final List<String> KEPT =
      List.of("iovs", "iov_bytes", "rings", "registered", "under_way");

  private static final Path SOURCE = Path.of("src/test/c/sim_hf3fs.c");

  private static SimulatedHf3fs loaded;

  private final SymbolLookup symbols;

  private SimulatedHf3fs() {
    UsrbioLibrary.require(LIBRARY.toString());
    symbols = SymbolLookup.libraryLookup(LIBRARY, Arena.global());
  }

  /** The library, healed, with folders as its mounts; the test is skipped where it cannot be built. */
  static synchronized SimulatedHf3fs load(Path... mounts) {
    if (loaded == null) {
      build();
      loaded = new SimulatedHf3fs();
    }
    loaded.heal();
    String paths = Arrays.stream(mounts).map(Path::toString).collect(Collectors.joining(":"));
    loaded.callWithText("sim_mounts", paths);
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
                  "-o",
                  LIBRARY.toString(),
                  SOURCE.toString(),
                  "-lpthread")
              .redirectErrorStream(true)
              .start();
      String said = new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(gcc.waitFor()).as(said).isZero();
    } catch (IOException e) {
      assumeTrue(false, "no gcc to build the stand-in for 3FS with: " + e.getMessage());
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Has calls of a kind fail: so many, from the n-th from now on, counted from 1. */
  void fail(String kind, long nth, long times, int errno) {
    try (Arena arena = Arena.ofConfined()) {
      call(
          "sim_fail",
          FunctionDescriptor.ofVoid(
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_INT),
          arena.allocateFrom(kind),
          nth,
          times,
          errno);
    }
  }

  /** Has some requests move a part only: one in so many, or none when 0. */
  void shortEvery(long requests) {
    call("sim_short_every", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), requests);
  }

  /** Has each request take at least so many microseconds. */
  void delay(long micros) {
    call("sim_delay", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), micros);
  }

  /** While held, no request is carried out. */
  void hold(boolean held) {
    call("sim_hold", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT), held ? 1 : 0);
  }

  void awaitUnderWay(long requests) {
    call("sim_await_under_way", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), requests);
  }

  void awaitIdle() {
    call("sim_await_idle", FunctionDescriptor.ofVoid());
  }

  /** Forgets failures to come, what was counted, and misuse. */
  void heal() {
    call("sim_heal", FunctionDescriptor.ofVoid());
  }

  long count(String what) {
    try (Arena arena = Arena.ofConfined()) {
      long count =
          (long)
              call(
                  "sim_count",
                  FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.ADDRESS),
                  arena.allocateFrom(what));
      assertThat(count).as("the stand-in counts no %s", what).isNotEqualTo(-1);
      return count;
    }
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
    assertThat(text.getString(0)).as("misuse of USRBIO").isEmpty();
    assertThat(count("misuses")).isZero();
  }

  private void callWithText(String function, String text) {
    try (Arena arena = Arena.ofConfined()) {
      call(function, FunctionDescriptor.ofVoid(ValueLayout.ADDRESS), arena.allocateFrom(text));
    }
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
