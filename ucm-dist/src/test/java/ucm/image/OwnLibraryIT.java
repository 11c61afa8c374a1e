package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where UCM's own library comes from, and that everything works without it. */
class OwnLibraryIT {

  private static final Path LIBRARY = UcmProcess.IMAGE.resolve("lib/libucm_native.so");
  private static final Map<String, String> OFF =
      Map.of("UCM_JAVA_OPTS", "-Ducm.native_library=off");

  @TempDir private Path folder;

  private Path config() throws IOException {
    return UcmYaml.write(
        folder.resolve("ucm.yaml"),
        "store_pipeline: Posix",
        "storage_backends: \"" + folder.resolve("blocks") + "\"");
  }

  /** What this machine should get. */
  private static String expected() throws IOException {
    boolean able =
        Files.readAllLines(Path.of("/proc/cpuinfo")).stream()
            .filter(line -> line.startsWith("flags"))
            .map(line -> Arrays.asList(line.split("\\s+")))
            .anyMatch(flags -> flags.containsAll(List.of("avx512f", "vpclmulqdq", "sse4_2")));
    return !Files.exists(LIBRARY)
        ? "memory copies: plain: no library ucm_native"
        : able
            ? "memory copies: with streaming stores (AVX-512)"
            : "memory copies: plain: this processor lacks AVX-512 F or VPCLMULQDQ";
  }

  @Test
  void imageHasTheLibraryWhereItCouldBeBuilt() throws IOException {
    assertThat(Files.exists(LIBRARY))
        .isEqualTo(
            System.getProperty("os.arch").equals("amd64") && Files.exists(Path.of("/usr/bin/gcc")));
    UcmProcess.Ended doctor = UcmProcess.run("doctor", "--config", config());
    assertThat(doctor.out()).as(doctor.all()).contains(expected());
  }

  @Test
  void jarsOnTheModulePathBringItAndLeaveNoCopyOfIt() throws IOException {
    Path copies = Files.createDirectory(folder.resolve("copies"));
    ProcessBuilder java =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin/java").toString(),
            "-Djna.tmpdir=" + copies,
            "--enable-native-access=com.sun.jna,ucm.platform",
            "--module-path",
            System.getProperty("ucm.modules"),
            "--add-modules",
            "ALL-MODULE-PATH",
            "--module",
            "ucm.cli/ucm.cli.Main",
            "doctor",
            "--config",
            config().toString());
    UcmProcess.Ended doctor = UcmProcess.finish(java.start());
    assertThat(doctor.out()).as(doctor.all()).contains(expected());
    assertThat(copies).isEmptyDirectory();
  }

  @Test
  void movesTheSameBytesWithoutIt() throws IOException {
    UcmProcess.Ended doctor = off("doctor", "--config", config());
    assertThat(doctor.out())
        .as(doctor.all())
        .contains(
            "file calls: through JNA: ucm.native_library is off",
            "memory copies: plain: ucm.native_library is off",
            "are equal; removed again");
    // The benchmark compares every byte that was loaded.
    String small = "--blocks 4 --task-blocks 2 --lookups 16 --buffer-gb 0.05";
    String bench = "bench store --repeat 1 --warmup 0 " + small + " --dir " + folder;
    UcmProcess.Ended moved = off((Object[]) bench.split(" "));
    assertThat(moved.exitCode()).as(moved.all()).isZero();
    assertThat(moved.out()).contains("Every loaded byte was compared.");
  }

  private static UcmProcess.Ended off(Object... args) {
    return UcmProcess.finish(UcmProcess.start(UcmProcess.IMAGE, OFF, args));
  }
}
