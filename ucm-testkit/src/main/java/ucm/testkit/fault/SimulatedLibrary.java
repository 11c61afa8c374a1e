package ucm.testkit.fault;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;
import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assumptions;

/**
 * A simulated native library, written in C for tests, and what drives it. A store finds, loads and
 * calls it as it would the real one. Beside the functions of that library it has some for tests:
 *
 * <pre>{@code
 * void sim_fail(const char *what, long nth, long times, int code);
 * void sim_heal(void);
 * long sim_count(const char *what);
 * const char *sim_first_misuse(void); // at most 511 bytes, empty when there was none
 * }</pre>
 *
 * <p>As thread-safe as these are. The JVM must be started with {@code --enable-native-access} for this
 * module; {@code ALL-UNNAMED} when the test kit is on the class path, where surefire puts it.
 */
@SuppressWarnings("restricted") // Tests know the C source that they call.
public final class SimulatedLibrary {

  private static final int LONGEST_MISUSE = 512;

  private final SymbolLookup symbols;

  /**
   * Finds the functions of a library that was built, and stays loaded for the life of the process.
   *
   * @param library the file, by its absolute path
   */
  public SimulatedLibrary(Path library) {
    symbols = SymbolLookup.libraryLookup(library, Arena.global());
  }

  /**
   * Builds a shared library by gcc. The test is skipped where there is none, and fails with what gcc
   * says when that is an error or a warning. One that is newer than its source is left as it is: other
   * processes of the test may use it. Where several build it at a time, one does and the others wait.
   *
   * @param source the C file
   * @param library the file to make; its folder need not exist
   * @param options more for gcc
   */
  public static synchronized void build(Path source, Path library, String... options) {
    try {
      Path folder = Files.createDirectories(library.toAbsolutePath().getParent());
      // Of the process: its threads have the lock of the class.
      try (FileChannel file = FileChannel.open(folder.resolve(".lock"), CREATE, WRITE);
          FileLock _ = file.lock()) {
        if (!Files.exists(library)
            || Files.getLastModifiedTime(library).compareTo(Files.getLastModifiedTime(source))
                <= 0) {
          compile(source, library, options);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void compile(Path source, Path library, String... options) throws IOException {
    List<String> command = new ArrayList<>(List.of("gcc", "-shared", "-fPIC", "-O2"));
    command.addAll(List.of("-Wall", "-Wextra", "-Werror"));
    command.addAll(List.of(options));
    command.addAll(List.of("-o", library.toString(), source.toString(), "-lpthread"));
    Process gcc = start(command);
    String said = new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (gcc.onExit().join().exitValue() != 0) {
      throw new AssertionError("gcc cannot build " + source.toAbsolutePath() + ":\n" + said);
    }
  }

  private static Process start(List<String> command) {
    try {
      return new ProcessBuilder(command).redirectErrorStream(true).start();
    } catch (IOException e) {
      return Assumptions.abort("no gcc to build a simulated library with: " + e.getMessage());
    }
  }

  /**
   * Has calls of a kind fail.
   *
   * @param what the kind, as the library names it
   * @param nth the first to fail, from now on, counted from 1
   * @param times how many fail
   * @param code what they fail with
   */
  public void fail(String what, long nth, long times, int code) {
    try (Arena arena = Arena.ofConfined()) {
      call(
          "sim_fail",
          FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_INT),
          arena.allocateFrom(what),
          nth,
          times,
          code);
    }
  }

  /** Forgets failures to come, and misuse. */
  public void heal() {
    call("sim_heal", FunctionDescriptor.ofVoid());
  }

  /** What the library has counted under a name. */
  public long count(String what) {
    try (Arena arena = Arena.ofConfined()) {
      FunctionDescriptor type = FunctionDescriptor.of(JAVA_LONG, ADDRESS);
      return (long) requireNonNull(call("sim_count", type, arena.allocateFrom(what)));
    }
  }

  /** What it has counted under each of some names. */
  public Map<String, Long> counts(Collection<String> names) {
    Map<String, Long> counts = new TreeMap<>();
    names.forEach(name -> counts.put(name, count(name)));
    return counts;
  }

  /** Fails with what was first done wrong with the library, if anything was. */
  public void requireNoMisuse() {
    MemoryLayout longest = MemoryLayout.sequenceLayout(LONGEST_MISUSE, JAVA_BYTE);
    FunctionDescriptor type = FunctionDescriptor.of(ADDRESS.withTargetLayout(longest));
    MemorySegment text = (MemorySegment) requireNonNull(call("sim_first_misuse", type));
    String misuse = text.getString(0);
    if (!misuse.isEmpty()) {
      throw new AssertionError("misuse of the library: " + misuse);
    }
  }

  /**
   * Calls a function of the library.
   *
   * @param type the types of its parameters and its result, as the C source has them
   * @return its result; null when it has none
   */
  public @Nullable Object call(String function, FunctionDescriptor type, Object... arguments) {
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
