package ucm.pipeline.connector.statistics;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
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

  private static final String MAX_SIZE = "UCM_LOG_MAX_SIZE";
  private static final String MAX_FILES = "UCM_LOG_MAX_FILES";
  private static final int USUAL_SIZE = 5;
  private static final int USUAL_FILES = 10;

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
   * (default 5). A number that is none, or below 1, counts as unset; {@link #problems} tells of it.
   */
  public static TraceOptions of(Map<String, String> environment) {
    return new TraceOptions(
        Path.of(environment.getOrDefault("UCM_LOG_PATH", "log")),
        (long) number(environment, MAX_SIZE, USUAL_SIZE) << 20,
        number(environment, MAX_FILES, USUAL_FILES));
  }

  /** What is wrong with the bounds that the environment names, for people. */
  public static List<String> problems(Map<String, String> environment) {
    List<String> problems = new ArrayList<>();
    for (String name : List.of(MAX_SIZE, MAX_FILES)) {
      String found = environment.getOrDefault(name, "").strip();
      if (!found.isEmpty() && number(environment, name, 0) == 0) {
        problems.add(
            "%s is a whole number from 1 on; found %s, so %s is used"
                .formatted(name, found, name.equals(MAX_SIZE) ? USUAL_SIZE : USUAL_FILES));
      }
    }
    return problems;
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
