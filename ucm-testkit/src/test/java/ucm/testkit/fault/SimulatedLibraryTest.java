package ucm.testkit.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.testkit.TestProcess;

class SimulatedLibraryTest {

  // A library whose only function must not be given a negative number.
  private static final String SOURCE =
      """
      #include <string.h>

      static long calls, fails_at, fails, error;
      static const char *misuse = "";

      int real_call(int value) {
        calls++;
        if (value < 0) misuse = "a negative value";
        return calls >= fails_at && calls < fails_at + fails ? (int) error : value;
      }

      void sim_fail(const char *what, long nth, long times, int code) {
        if (strcmp(what, "real_call")) return;
        fails_at = calls + nth;
        fails = times;
        error = code;
      }

      void sim_heal(void) {
        fails = 0;
        misuse = "";
      }

      long sim_count(const char *what) { return strcmp(what, "calls") ? -1 : calls; }

      const char *sim_first_misuse(void) { return misuse; }
      """;

  private static final FunctionDescriptor CALL =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);

  @TempDir private Path folder;

  private Path build(String text) throws IOException {
    Path source = Files.writeString(folder.resolve("real.c"), text);
    Path library = folder.resolve("made/libreal.so").toAbsolutePath();
    SimulatedLibrary.build(source, library);
    return library;
  }

  @Test
  void drivesWhatItBuilt() throws IOException {
    SimulatedLibrary library = new SimulatedLibrary(build(SOURCE));
    library.fail("real_call", 2, 1, 5);
    assertThat(library.call("real_call", CALL, 7)).isEqualTo(7);
    assertThat(library.call("real_call", CALL, 7)).isEqualTo(5);
    assertThat(library.call("real_call", CALL, 7)).isEqualTo(7);
    assertThat(library.count("calls")).isEqualTo(3);
    assertThat(library.counts(List.of("calls", "pies")))
        .isEqualTo(Map.of("calls", 3L, "pies", -1L));
    library.requireNoMisuse();
    library.call("real_call", CALL, -1);
    assertThatThrownBy(library::requireNoMisuse).hasMessageContaining("a negative value");
    library.fail("real_call", 1, 1, 5);
    library.heal();
    library.requireNoMisuse();
    assertThat(library.call("real_call", CALL, 8)).isEqualTo(8);
  }

  @Test
  void showsWhatTheCompilerSays() {
    assertThatThrownBy(() -> build("int real_call(int unused) { return 0; }\n"))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("real.c")
        .hasMessageContaining("unused");
  }

  @Test
  void isBuiltByOneOfSeveralProcesses() throws Exception {
    // Skips where there is no gcc, which the processes could not.
    build(SOURCE);
    Path source = folder.resolve("real.c");
    List<TestProcess> builders = new ArrayList<>();
    try {
      for (int i = 0; i < 4; i++) {
        builders.add(
            new TestProcess(Builder.class, source.toString(), "" + folder.resolve("l.so")));
      }
      for (TestProcess builder : builders) {
        assertThat(builder.line()).isEqualTo("ready");
      }
      for (TestProcess builder : builders) {
        builder.tell("build");
      }
      Set<String> built = new HashSet<>();
      for (TestProcess builder : builders) {
        built.add(builder.line());
      }
      // A second one, while the first is in use, would be another library to the loader.
      assertThat(built).hasSize(1).allMatch(line -> line.startsWith("loaded "));
    } finally {
      builders.forEach(TestProcess::close);
    }
  }

  /** Builds and loads a library when told to, and says which file it was. */
  static final class Builder {

    private Builder() {}

    public static void main(String[] args) throws Exception {
      Path library = Path.of(args[1]);
      IO.readln("ready\n");
      SimulatedLibrary.build(Path.of(args[0]), library);
      Object file = Files.readAttributes(library, BasicFileAttributes.class).fileKey();
      new SimulatedLibrary(library).requireNoMisuse();
      IO.println("loaded " + file);
    }
  }
}
