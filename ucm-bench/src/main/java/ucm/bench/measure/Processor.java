package ucm.bench.measure;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The machine's processor, as Linux names it. */
public final class Processor {

  private static final Path CPUINFO = Path.of("/proc/cpuinfo");
  private static final String MODEL = "model name";

  private Processor() {}

  /** What its maker calls it. */
  public static String model() {
    try {
      for (String line : Files.readAllLines(CPUINFO)) {
        if (line.startsWith(MODEL)) {
          return line.substring(line.indexOf(':') + 1).strip();
        }
      }
    } catch (IOException e) {
      // Not Linux, or hidden by a container.
    }
    return "unknown " + System.getProperty("os.arch");
  }
}
