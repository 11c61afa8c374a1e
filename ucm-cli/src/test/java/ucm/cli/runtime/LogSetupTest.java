package ucm.cli.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.util.LogbackMDCAdapter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LogSetupTest {

  private static final long PID = ProcessHandle.current().pid();

  @TempDir private Path folder;

  static LoggerContext context() {
    LoggerContext context = new LoggerContext();
    context.setMDCAdapter(new LogbackMDCAdapter());
    return context;
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(folder.resolve("log"))) {
      return files.filter(file -> !file.getFileName().toString().startsWith(".")).sorted().toList();
    }
  }

  /** Logs some lines at a level that keeps the console quiet, and waits until they are written. */
  private void log(Map<String, String> environment, int lines, String message) {
    LoggerContext context = context();
    LogSetup.configure(context, environment);
    for (int i = 0; i < lines; i++) {
      context.getLogger("test").warn(message, i);
      context.getLogger("test").info("{} is below the level", i);
    }
    context.stop();
  }

  @Test
  void writesLinesOfTheOriginalsFormIntoTheFolderThatIsAskedFor() throws IOException {
    log(
        Map.of("UCM_LOG_PATH", folder.resolve("log").toString(), "UC_LOGGER_LEVEL", "warning"),
        2,
        "line {}");
    assertThat(files()).containsExactly(folder.resolve("log/ucm-" + PID + ".log"));
    assertThat(Files.readAllLines(files().getFirst()))
        .hasSize(2)
        .last()
        .asString()
        .as("the thread is the one that logs, not the one that writes")
        .matches(
            "\\[\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{6}]\\[UC]\\[W] line 1 \\["
                + PID
                + ","
                + kernelId()
                + "]");
  }

  private static String kernelId() throws IOException {
    return Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
  }

  @Test
  void logsForTheOwnerAloneAndFollowsNoLink() throws IOException {
    Path log = folder.resolve("a/log");
    LoggerContext context = context();
    Map<String, String> environment = Map.of("UCM_LOG_PATH", log.toString());
    LogSetup.file(context, environment).orElseThrow().stop();
    Path file = log.resolve("ucm-" + PID + ".log");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-------");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(log)))
        .isEqualTo("rwx------");
    Files.delete(file);
    Path other = Files.writeString(folder.resolve("other"), "mine");
    Files.createSymbolicLink(file, other);
    assertThat(LogSetup.file(context, environment)).isEmpty();
    assertThat(other).hasContent("mine");
  }

  @Test
  void saysThatALevelIsUnknown() {
    assertThat(LogSetup.levelProblem(Map.of())).isEmpty();
    assertThat(LogSetup.levelProblem(Map.of("UC_LOGGER_LEVEL", "Warning"))).isEmpty();
    assertThat(LogSetup.levelProblem(Map.of("UC_LOGGER_LEVEL", "loud")))
        .hasValueSatisfying(
            problem -> assertThat(problem).contains("UC_LOGGER_LEVEL", "loud", "warning"));
  }

  @Test
  void rotatesBySizeAndKeepsAsManyFilesAsAreAskedFor() throws IOException {
    String large = "{} " + "x".repeat(64 << 10);
    log(
        Map.of(
            "UCM_LOG_PATH",
            folder.resolve("log").toString(),
            "UCM_LOG_MAX_SIZE",
            "1",
            "UCM_LOG_MAX_FILES",
            "3",
            "UCM_LOG_LEVEL",
            "error"),
        1,
        large);
    assertThat(Files.size(files().getFirst())).as("below the level").isZero();
    LoggerContext context = context();
    LogSetup.file(
            context,
            Map.of(
                "UCM_LOG_PATH",
                folder.resolve("log").toString(),
                "UCM_LOG_MAX_SIZE",
                "1",
                "UCM_LOG_MAX_FILES",
                "3"))
        .ifPresent(context.getLogger("file")::addAppender);
    context.getLogger("file").setAdditive(false);
    for (int i = 0; i < 80; i++) {
      context.getLogger("file").error(large, i);
    }
    context.stop();
    assertThat(files()).hasSize(3);
    for (Path file : files()) {
      assertThat(Files.size(file)).isBetween(1L, (1L << 20) + (65L << 10));
    }
    assertThat(Files.readString(folder.resolve("log/ucm-" + PID + ".log"))).contains("[E] 79 x");
  }

  @Test
  void theDaemonsFileIsBegunAgainAndThreeAreKept() throws IOException {
    Path path = Files.createDirectory(folder.resolve("log")).resolve("ucm.sock.log");
    Files.writeString(path, "what the daemon before said\n");
    LoggerContext context = context();
    LogSetup.configure(context, Map.of());
    List<Path> opened = new ArrayList<>();
    LogSetup.intoFile(context, path, 1 << 20, opened::add);
    context.getLogger("test").info("serving");
    for (int i = 0; i < 80; i++) {
      context.getLogger("test").error("{} " + "x".repeat(64 << 10), i);
    }
    context.stop();
    assertThat(files())
        .containsExactly(
            path, path.resolveSibling("ucm.sock.log.1"), path.resolveSibling("ucm.sock.log.2"));
    assertThat(Files.readString(path)).contains("[UC][E] 79 x");
    for (Path file : files()) {
      assertThat(Files.size(file)).isBetween(1L, (1L << 20) + (65L << 10));
    }
    assertThat(opened).hasSizeGreaterThan(3).allMatch(path::equals);
  }

  @Test
  void saysThatABoundIsNoNumber() {
    assertThat(LogSetup.problems(Map.of("UCM_LOG_MAX_SIZE", "7"))).isEmpty();
    assertThat(LogSetup.problems(Map.of("UCM_LOG_MAX_SIZE", "abc", "UCM_LOG_MAX_FILES", "0")))
        .containsExactly(
            "UCM_LOG_MAX_SIZE is a whole number from 1 on; found abc, so 5 is used",
            "UCM_LOG_MAX_FILES is a whole number from 1 on; found 0, so 10 is used");
  }

  @Test
  void takesTheLevelOfEitherVariable() {
    assertThat(LogSetup.level(Map.of())).isEqualTo(Level.INFO);
    assertThat(LogSetup.level(Map.of("UCM_LOG_LEVEL", "debug"))).isEqualTo(Level.DEBUG);
    assertThat(LogSetup.level(Map.of("UC_LOGGER_LEVEL", "WARNING", "UCM_LOG_LEVEL", "debug")))
        .isEqualTo(Level.WARN);
    assertThat(LogSetup.level(Map.of("UC_LOGGER_LEVEL", "loud"))).isEqualTo(Level.INFO);
  }

  @Test
  void aFolderThatCannotBeWrittenCostsTheFileOnly() throws IOException {
    Path place = Files.writeString(folder.resolve("taken"), "no folder");
    LoggerContext context = context();
    assertThat(LogSetup.file(context, Map.of("UCM_LOG_PATH", place.toString()))).isEmpty();
    assertThat(LogSetup.file(context, Map.of())).isEmpty();
  }
}
