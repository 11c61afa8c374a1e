package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.image.UcmProcess.Ended;

/** The wheel with the Python package, the image and the command {@code ucm}, in an environment of its own. */
class WheelIT {

  private static final Path TARGET = UcmProcess.IMAGE.getParent();
  private static final Path PROGRAM = Path.of("..", "tools", "build", "Wheel.java");
  private static final Path PYTHON = Path.of("/usr/bin/python3");

  /** A user that no file says anything of, and without a home. */
  private static final String NOBODY = "54321";

  @TempDir private Path folder;

  private static Path wheel() throws IOException {
    try (Stream<Path> found = Files.list(TARGET)) {
      return found.filter(file -> file.toString().endsWith(".whl")).findAny().orElseThrow();
    }
  }

  private Process make(Path image, Path into, String zone) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                PROGRAM.toString(),
                Path.of("..", "python").toString(),
                image.toString(),
                System.getProperty("ucm.version"),
                System.getProperty("os.arch").equals("amd64") ? "x86_64" : "aarch64",
                Files.createDirectories(into).toString())
            .redirectErrorStream(true);
    builder.environment().put("TZ", zone);
    return builder.start();
  }

  @Test
  void theSameFilesGiveTheSameBytesWhateverTheTimeZone() throws Exception {
    Path again = folder.resolve("again");
    assertThat(make(UcmProcess.IMAGE, again, "Asia/Tokyo").waitFor()).isZero();
    assertThat(again.resolve(wheel().getFileName())).hasSameBinaryContentAs(wheel());
  }

  @Test
  void aLibraryThatNeedsANewerSystemThanTheTagSaysIsRefused() throws Exception {
    Path image = Files.createDirectories(folder.resolve("image"));
    Path library = image.resolve("lib.so");
    Files.writeString(library, "\177ELF needs GLIBC_2.28", StandardCharsets.ISO_8859_1);
    assertThat(make(image, folder.resolve("old"), "UTC").waitFor()).isZero();
    Files.writeString(library, "\177ELF needs GLIBC_2.34", StandardCharsets.ISO_8859_1);
    Process refused = make(image, folder.resolve("new"), "UTC");
    String said = new String(refused.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(refused.waitFor()).isNotZero();
    assertThat(said).contains("lib.so needs GLIBC_2.34, and the wheel's tag promises GLIBC_2.28");
  }

  @Test
  void commandAndDaemonNeedNothingElse() throws Exception {
    assumeTrue(Files.isExecutable(PYTHON), "needs the Debian package python3 (.ci/packages)");
    Path environment = folder.resolve("venv");
    Ended made = run(PYTHON, "-m", "venv", environment);
    assumeTrue(made.exitCode() == 0, "needs the Debian package python3-venv (.ci/packages)");
    Path pip = environment.resolve("bin/pip");
    run(pip, "install", "--no-index", wheel()).requireOk();
    run(pip, "check").requireOk();
    Path ucm = environment.resolve("bin/ucm");
    assertThat(run(ucm, "--version").out()).startsWith("ucm " + System.getProperty("ucm.version"));

    // Nothing may be written beside the package, and no user need have a home.
    Path work = Files.createDirectory(folder.resolve("work"));
    List<Object> user = List.of();
    if (Files.getAttribute(folder, "unix:uid").equals(0)) {
      user = List.of("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups");
      Files.setPosixFilePermissions(work, PosixFilePermissions.fromString("rwxrwxrwx"));
      Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
    run("chmod", "-R", "a-w", environment).requireOk();
    Path socket = work.resolve("d").resolve("ucm.sock");
    String start = "from ucm import daemon; print(daemon.start('%s', 60))".formatted(socket);
    assertThat(run(user, environment.resolve("bin/python"), "-B", "-c", start).out().strip())
        .isEqualTo("None");
    Ended status = run(user, ucm, "serve", "status", "--socket", socket, "--json").requireOk();
    ProcessHandle daemon = ProcessHandle.of(status.json().get("pid").asLong()).orElseThrow();
    assertThat(daemon.destroy()).isTrue();
    var _ = daemon.onExit().get();
    run("chmod", "-R", "u+w", environment).requireOk();
  }

  private Ended run(Object... command) throws Exception {
    return run(List.of(), command);
  }

  /** Runs a command with nothing in its environment. */
  private Ended run(List<Object> before, Object... command) throws Exception {
    Path out = folder.resolve("out");
    List<String> words =
        Stream.concat(before.stream(), Arrays.stream(command)).map(String::valueOf).toList();
    ProcessBuilder builder = new ProcessBuilder(words).redirectErrorStream(true);
    builder.environment().clear();
    builder.environment().put("PATH", "/usr/bin:/bin");
    Process process = builder.redirectOutput(out.toFile()).start();
    return new Ended(process.waitFor(), Files.readString(out), "");
  }
}
