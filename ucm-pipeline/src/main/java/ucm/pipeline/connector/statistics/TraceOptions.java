package ucm.pipeline.connector.statistics;

import java.nio.file.Path;
import java.util.Map;

/**
 * Where traces of requests are written, and how much of them is kept.
 *
 * @param folder made when it is missing
 * @param maxFileBytes a file that would grow beyond it is compressed and begun again; a single longer line is
 *     written all the same
 * @param maxFiles files kept of each writer, the one being written included
 */
public record TraceOptions(Path folder, long maxFileBytes, int maxFiles) {

  public TraceOptions {
    if (maxFileBytes < 1 || maxFiles < 1) {
      throw new IllegalArgumentException(
          "traces need at least one file of at least one byte; found %s files of %s bytes"
              .formatted(maxFiles, maxFileBytes));
    }
  }

  /**
   * As the original, whose log files have the same bounds: in the folder {@code UCM_LOG_PATH} (default
   * {@code log}), {@code UCM_LOG_MAX_FILES} files (default 10) of {@code UCM_LOG_MAX_SIZE} MiB each
   * (default 5). A number that is none, or below 1, counts as unset.
   */
  public static TraceOptions of(Map<String, String> environment) {
    return new TraceOptions(
        Path.of(environment.getOrDefault("UCM_LOG_PATH", "log")),
        (long) number(environment, "UCM_LOG_MAX_SIZE", 5) << 20,
        number(environment, "UCM_LOG_MAX_FILES", 10));
  }

  private static int number(Map<String, String> environment, String name, int otherwise) {
    try {
      int found = Integer.parseInt(environment.getOrDefault(name, "").strip());
      return found < 1 ? otherwise : found;
    } catch (NumberFormatException e) {
      return otherwise;
    }
  }
}
