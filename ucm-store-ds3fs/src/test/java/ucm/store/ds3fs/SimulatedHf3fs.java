package ucm.store.ds3fs;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import ucm.testkit.fault.SimulatedLibrary;

/**
 * The simulation of 3FS's library, {@code src/test/c/sim_hf3fs.c}, built by gcc. The stores find and load
 * it as they would the real one, and their calls of it are the real ones; this class drives it.
 */
final class SimulatedHf3fs {

  static final Path LIBRARY =
      Path.of("target/sim", UsrbioLibrary.FILE_NAME).toAbsolutePath().normalize();

  /** Everything that must be as before when all is closed. */
  private static final List<String> KEPT =
      List.of("iovs", "iov_bytes", "rings", "registered", "under_way");

  private static final Path SOURCE = Path.of("src/test/c/sim_hf3fs.c");

  // Only a test that fails waits for so long.
  private static final Duration WAIT = Duration.ofMinutes(1);

  private static SimulatedHf3fs loaded;

  private final SimulatedLibrary library;

  private SimulatedHf3fs() {
    UsrbioLibrary.require(LIBRARY.toString());
    library = new SimulatedLibrary(LIBRARY);
  }

  /** The library, healed, with folders as its mounts; the test is skipped where it cannot be built. */
  static synchronized SimulatedHf3fs load(Path... mounts) {
    if (loaded == null) {
      SimulatedLibrary.build(SOURCE, LIBRARY);
      loaded = new SimulatedHf3fs();
    }
    loaded.heal();
    String paths = Arrays.stream(mounts).map(Path::toString).collect(Collectors.joining(":"));
    try (Arena arena = Arena.ofConfined()) {
      loaded.library.call(
          "sim_mounts", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS), arena.allocateFrom(paths));
    }
    return loaded;
  }

  /** Has calls of a kind fail: so many, from the n-th from now on, counted from 1. */
  void fail(String kind, long nth, long times, int errno) {
    library.fail(kind, nth, times, errno);
  }

  /** Has some requests move a part only: one in so many, or none when 0. */
  void shortEvery(long requests) {
    library.call("sim_short_every", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), requests);
  }

  /** Has each request take at least so many microseconds. */
  void delay(long micros) {
    library.call("sim_delay", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), micros);
  }

  /** While held, no request is carried out. */
  void hold(boolean held) {
    library.call("sim_hold", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT), held ? 1 : 0);
  }

  void awaitUnderWay(long least) {
    await(least, Long.MAX_VALUE);
  }

  void awaitIdle() {
    await(0, 0);
  }

  private void await(long least, long most) {
    Object met =
        library.call(
            "sim_await_under_way",
            FunctionDescriptor.of(
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG),
            least,
            most,
            WAIT.toMillis());
    assertThat(met)
        .as(
            "from %d to %d requests under way within %s; found %d",
            least, most, WAIT, count("under_way"))
        .isEqualTo(1);
  }

  /** Forgets failures to come, what was counted, and misuse. */
  void heal() {
    library.heal();
  }

  long count(String what) {
    long count = library.count(what);
    assertThat(count).as("the simulation counts no %s", what).isNotEqualTo(-1);
    return count;
  }

  /** What must not grow. */
  Map<String, Long> kept() {
    return library.counts(KEPT);
  }

  void requireNoMisuse() {
    library.requireNoMisuse();
  }
}
