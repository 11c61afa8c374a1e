package ucm.cli.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Which share of the bytes of all inputs has been read; unknown with standard input among them. */
public final class ReadProgress {

  private static final double UNKNOWN = -1;

  private final long all;
  private String input = "";
  private long before;
  private long inInput;

  public ReadProgress(List<String> inputs) {
    long sum = 0;
    for (String name : inputs) {
      long size = size(name);
      sum = size < 0 || sum < 0 ? -1 : sum + size;
    }
    this.all = sum;
  }

  /** Bytes of a file, or of the files in a folder; -1 where there are none to know. */
  private static long size(String name) {
    try {
      Path path = Path.of(name);
      if (!Files.isDirectory(path)) {
        return Files.isRegularFile(path) ? Files.size(path) : -1;
      }
      try (Stream<Path> files = Files.list(path)) {
        return files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
      }
    } catch (IOException | InvalidPathException e) {
      // Only the bar is lost: the reader says what is wrong.
      return -1;
    }
  }

  /**
   * Takes note of how far an input is; returns the share of all, or less than 0 when not known.
   */
  public double at(String name, long bytesRead) {
    if (!name.equals(input)) {
      before += inInput;
      input = name;
    }
    inInput = bytesRead;
    return all <= 0 ? UNKNOWN : Math.min(1, (double) (before + inInput) / all);
  }
}
