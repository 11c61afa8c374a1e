package ucm.lite.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** Resolves what the user named into files to read, before the first of them is read. */
final class TraceInputs {
  private static final String STDIN_ARGUMENT = "-";

  private TraceInputs() {}

  static List<TraceInput> resolve(List<String> names) {
    if (names.isEmpty()) {
      throw new TraceException(
          "no trace named, expected files, directories, or - for standard input");
    }
    List<TraceInput> inputs = new ArrayList<>();
    boolean stdin = false;
    for (String name : names) {
      if (!name.equals(STDIN_ARGUMENT)) {
        resolve(name, inputs);
      } else if (stdin) {
        throw new TraceException("standard input (-) is named twice, it can be read only once");
      } else {
        stdin = true;
        inputs.add(TraceInput.ofStdin());
      }
    }
    return inputs;
  }

  private static void resolve(String name, List<TraceInput> inputs) {
    Path path = path(name);
    if (Files.isDirectory(path)) {
      List<Path> files = filesIn(path);
      if (files.isEmpty()) {
        throw new TraceException(
            "directory " + name + " holds no files, expected trace files directly in it");
      }
      files.forEach(file -> inputs.add(TraceInput.file(file, /* fromDirectory= */ true)));
    } else if (!Files.exists(path)) {
      throw new TraceException(
          "trace " + name + " does not exist (looked at " + path.toAbsolutePath() + ")",
          new NoSuchFileException(name));
    } else if (!Files.isReadable(path)) {
      throw new TraceException("trace " + name + " exists but may not be read by this user");
    } else {
      inputs.add(TraceInput.file(path, /* fromDirectory= */ false));
    }
  }

  private static Path path(String name) {
    if (name.isBlank()) {
      throw new TraceException("a trace has an empty name, expected a file or directory");
    }
    try {
      return Path.of(name);
    } catch (InvalidPathException e) {
      throw new TraceException("not a possible file name: " + e.getMessage(), e);
    }
  }

  /**
   * The files directly in a directory in name order, hidden ones left out. One that is there
   * compressed, too, is read once: the compressor was stopped before it removed the other.
   */
  private static List<Path> filesIn(Path directory) {
    try (Stream<Path> entries = Files.list(directory)) {
      return entries
          .filter(entry -> Files.isRegularFile(entry) && !fileName(entry).startsWith("."))
          .filter(entry -> !Files.exists(entry.resolveSibling(fileName(entry) + ".gz")))
          .sorted(Comparator.comparing(TraceInputs::fileName))
          .toList();
    } catch (IOException e) {
      throw new TraceException(
          "directory " + directory + " cannot be listed: " + FileFault.of(e), e);
    }
  }

  private static String fileName(Path path) {
    Path last = path.getFileName();
    return last == null ? "" : last.toString();
  }
}
