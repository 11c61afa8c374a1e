package ucm.image;

import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import ucm.testkit.fault.SimulatedLibrary;

/** A {@code libcuda.so.1} for processes of the image: that of ucm-device-cuda's tests, built by gcc. */
final class SimulatedDriver {

  private static final Path SOURCE = Path.of("../ucm-device-cuda/src/test/c/sim_cuda.c");

  private final Path folder;

  /** Builds it in a folder; the test is skipped where there is no gcc. */
  SimulatedDriver(Path folder) throws IOException {
    this.folder = Files.createDirectories(folder);
    SimulatedLibrary.build(SOURCE, folder.resolve("libcuda.so.1"), "-Wl,-soname,libcuda.so.1");
  }

  /** Skips a test of what is said without a driver where there is one. */
  static void assumeNoRealDriver() {
    for (String place : List.of("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib")) {
      assumeFalse(
          Files.exists(Path.of(place, "libcuda.so.1")), "an NVIDIA driver is installed here");
    }
  }

  /** The environment of a process that finds it, and more. */
  Map<String, String> environment(String... more) {
    Map<String, String> all = new HashMap<>();
    all.put("LD_LIBRARY_PATH", folder.toString());
    all.put("SIM_CUDA_REPORT", report().toString());
    for (int i = 0; i < more.length; i += 2) {
      all.put(more[i], more[i + 1]);
    }
    return all;
  }

  /** What it counted when its process ended, by name. */
  Map<String, String> counted() throws IOException {
    Map<String, String> counted = new HashMap<>();
    try (Stream<String> lines = Files.lines(report())) {
      lines.forEach(
          line ->
              counted.put(
                  line.substring(0, line.indexOf('=')), line.substring(line.indexOf('=') + 1)));
    }
    return counted;
  }

  private Path report() {
    return folder.resolve("report");
  }
}
