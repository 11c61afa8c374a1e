package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where commands write: to files, to what only looks like one, and to a standard output that fails. */
class OutputIT {

  private static final Object[] GENERATE = {"trace", "generate", "--requests", "10", "-o"};

  @TempDir private Path folder;

  private static UcmProcess.Ended generate(Path output) {
    Object[] args = Arrays.copyOf(GENERATE, GENERATE.length + 1);
    args[GENERATE.length] = output;
    return UcmProcess.run(args);
  }

  @Test
  void writesIntoADeviceNodeAndLeavesIt() throws Exception {
    Path node = folder.resolve("nul");
    Process mknod = new ProcessBuilder("mknod", node.toString(), "c", "1", "3").start();
    assumeTrue(mknod.waitFor() == 0, "only root may make device nodes");
    generate(node).requireOk();
    assertThat(Files.isRegularFile(node, LinkOption.NOFOLLOW_LINKS)).as("is a device").isFalse();
  }

  @Test
  void writesIntoAPipe() throws Exception {
    Path pipe = folder.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    Process reader = new ProcessBuilder("cat", pipe.toString()).start();
    generate(pipe).requireOk();
    String read = new String(reader.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(read.lines()).hasSize(10);
    assertThat(Files.isRegularFile(pipe, LinkOption.NOFOLLOW_LINKS)).as("is a pipe").isFalse();
  }

  @Test
  void writesThroughALinkAndReplacesAFile() throws IOException {
    Path file = Files.writeString(folder.resolve("trace.jsonl"), "old");
    Path link = Files.createSymbolicLink(folder.resolve("link.jsonl"), file);
    assertThat(generate(link).exitCode()).isZero();
    assertThat(link).isSymbolicLink();
    assertThat(Files.readAllLines(file)).hasSize(10);
    Files.writeString(file, "old");
    assertThat(generate(file).exitCode()).isZero();
    assertThat(Files.readAllLines(file)).hasSize(10);
    assertThat(folder.toFile().list()).containsExactlyInAnyOrder("trace.jsonl", "link.jsonl");
  }

  @Test
  void replacesAConfigurationOnlyWhenTold() throws IOException {
    Path lmcache =
        Files.writeString(folder.resolve("lmcache.yaml"), "remote_url: \"hf3fs:///mnt/3fs\"\n");
    Path mine = Files.writeString(folder.resolve("ucm.yaml"), "mine");
    Object[] convert = {"config", "convert", "--from", "lmcache", lmcache, "--output", mine};
    UcmProcess.Ended refused = UcmProcess.run(convert);
    assertThat(refused.exitCode()).as(refused.all()).isEqualTo(2);
    assertThat(refused.err()).contains("ucm.yaml exists", "--force");
    assertThat(mine).hasContent("mine");
    Object[] forced = Arrays.copyOf(convert, convert.length + 1);
    forced[convert.length] = "--force";
    assertThat(UcmProcess.run(forced).exitCode()).isZero();
    assertThat(mine).content().contains("hf3fs", "Ds3fs");
    UcmProcess.Ended check = UcmProcess.run("config", "check", mine).requireOk();
    assertThat(check.out()).contains("0 errors, 0 warnings");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"--version", "--help", "config docs", "calc", "trace generate --requests 10"})
  void saysThatTheStandardOutputIsFull(String command) throws Exception {
    Path err = folder.resolve("err");
    int exit = shell(command + " > /dev/full 2> " + err);
    assertThat(exit).as(Files.readString(err)).isEqualTo(1);
    assertThat(Files.readString(err))
        .contains("ucm: cannot write to the standard output")
        .doesNotContain("Exception", "\tat ");
  }

  @Test
  void endsQuietlyWhenTheReaderLeaves() throws Exception {
    Path err = folder.resolve("err");
    int exit = shell("trace generate --requests 1000000000 2> " + err + " | head -n 1 > /dev/null");
    assertThat(exit).isZero();
    assertThat(err).isEmptyFile();
  }

  @Test
  void logLinesStandAloneBesideAProgressBar() throws Exception {
    String seen = terminal("demo --prompts 3 --input-len 1280");
    assertThat(seen).contains("[UC][I]").contains("\u001B[K");
    assertThat(seen.lines().filter(line -> line.contains("[UC][I]")))
        .as("each begins its line, or clears it")
        .allSatisfy(line -> assertThat(line).containsPattern("^(.*\u001B\\[K)?\\[[0-9-]+ "));
  }

  @Test
  void theDoctorHasColoursOnATerminalUnlessTheyAreUnwanted() throws Exception {
    assertThat(terminal("doctor")).contains("\u001B[32mok");
    assertThat(UcmProcess.run("doctor").out()).doesNotContain("\u001B");
  }

  @Test
  void aFolderOfPluginsThatIsNotThereIsWrongUsage() {
    UcmProcess.Ended ended = UcmProcess.run("stores", "--plugins", folder.resolve("none"));
    assertThat(ended.exitCode()).isEqualTo(2);
    assertThat(ended.err()).contains("--plugins names", "none");
  }

  @Test
  void aSmallHeapMayBeAskedFor() {
    Process small =
        UcmProcess.start(UcmProcess.IMAGE, Map.of("UCM_JAVA_OPTS", "-Xmx32m"), "stores");
    assertThat(UcmProcess.finish(small).exitCode()).isZero();
  }

  /** What a command shows on a terminal. */
  private static String terminal(String command) throws Exception {
    Process script =
        new ProcessBuilder("script", "-qec", UcmProcess.IMAGE + "/bin/ucm " + command, "/dev/null")
            .start();
    script.getOutputStream().close();
    String seen = new String(script.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(script.waitFor()).as(seen).isZero();
    return seen;
  }

  private static int shell(String command) throws Exception {
    Process shell =
        new ProcessBuilder(
                List.of(
                    "bash", "-c", "set -o pipefail; " + UcmProcess.IMAGE + "/bin/ucm " + command))
            .start();
    assertThat(shell.waitFor(2, TimeUnit.MINUTES)).as("%s ends", command).isTrue();
    return shell.exitValue();
  }
}
