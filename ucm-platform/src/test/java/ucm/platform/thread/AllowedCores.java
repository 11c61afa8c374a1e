package ucm.platform.thread;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;

/** What the kernel says of where a thread may run. */
final class AllowedCores {

  private static final String KEY = "Cpus_allowed_list:";

  private AllowedCores() {}

  /** Of the calling thread. */
  static List<Long> now() {
    return of(Path.of("/proc/thread-self"));
  }

  /** The folder that {@code /proc} has for the calling thread. */
  static Path thread() {
    try {
      return Path.of("/proc").resolve(Files.readSymbolicLink(Path.of("/proc/thread-self")));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Of a thread, by its folder. */
  static List<Long> of(Path thread) {
    try {
      String list =
          Files.readAllLines(thread.resolve("status")).stream()
              .filter(line -> line.startsWith(KEY))
              .findFirst()
              .orElseThrow()
              .replace(KEY, "")
              .strip();
      // For example 0-1,4.
      return Arrays.stream(list.split(",", -1))
          .flatMap(
              range -> {
                String[] ends = range.split("-", -1);
                return LongStream.rangeClosed(
                        Long.parseLong(ends[0]), Long.parseLong(ends[ends.length - 1]))
                    .boxed();
              })
          .toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
