package ucm.pipeline.connector;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import ucm.api.StoreException;

/**
 * Which generation of a model's blocks is in force. An engine that disowns what was stored, because its
 * weights have changed, begins a generation of its own; engines of that model which start later begin
 * with a third one, as they may have either weights. So none of them finds what was disowned, nor what
 * another engine computed with weights that it got at run time.
 *
 * <p>Kept in {@code .generations} of each directory of blocks: a file for each model that was ever reset,
 * with {@code <number> <generation>}. The highest number counts, so that it does not matter when one
 * directory is lost. Blocks that are in no directory live as long as this object does, and so do their
 * generations. Thread-safe; processes that write at once leave one of both generations.
 */
public final class Generations {

  /** Name of the folder in a directory of blocks. */
  static final String FOLDER = ".generations";

  private record Generation(long number, String text) {

    static final Generation FIRST = new Generation(0, "");

    static Generation read(Path file) {
      try {
        String[] words = Files.readString(file).strip().split(" ", 2);
        return new Generation(Long.parseLong(words[0]), words[1]);
      } catch (NoSuchFileException e) {
        return FIRST;
      } catch (IOException | RuntimeException e) {
        throw new StoreException(
            ("%s cannot be read (%s), so it is not known which blocks the model's engines have"
                    + " disowned: make it readable, or remove all blocks of the directory with it")
                .formatted(file, e),
            e);
      }
    }

    Generation latest(Generation other) {
      return other.number > number || (other.number == number && other.text.compareTo(text) > 0)
          ? other
          : this;
    }
  }

  private final Map<String, Generation> unwritten = new ConcurrentHashMap<>();

  /** None yet, but those that are in directories. */
  public Generations() {}

  /**
   * The generation with which an engine starts.
   *
   * @param directories of its blocks; none when they are in memory alone
   * @param model name of the model among the names of blocks
   * @return empty as long as no engine of the model has disowned anything
   * @throws StoreException when it cannot be read
   */
  String current(List<Path> directories, String model) {
    return latest(directories, model).text;
  }

  private Generation latest(List<Path> directories, String model) {
    Generation latest = unwritten.getOrDefault(key(directories, model), Generation.FIRST);
    for (Path directory : directories) {
      if (!Files.isDirectory(directory)) {
        continue; // No block is there either.
      }
      latest = latest.latest(Generation.read(file(directory, model)));
    }
    return latest;
  }

  /**
   * Has engines of the model that start from now on begin with a new generation.
   *
   * @throws StoreException when it cannot be written to any of the directories
   */
  void advance(List<Path> directories, String model) {
    Generation next =
        new Generation(latest(directories, model).number + 1, UUID.randomUUID().toString());
    unwritten.put(key(directories, model), next);
    List<IOException> failures = new ArrayList<>();
    for (Path directory : directories) {
      try {
        write(file(directory, model), next.number + " " + next.text + "\n");
      } catch (IOException e) {
        failures.add(e);
      }
    }
    if (!directories.isEmpty() && failures.size() == directories.size()) {
      throw new StoreException(
          ("that the blocks of %s are disowned cannot be written to %s (%s): engines that start"
                  + " after the end of this process find them again; make it writable, or remove"
                  + " the blocks")
              .formatted(model, directories, failures.getFirst()),
          failures.getFirst());
    }
  }

  private static String key(List<Path> directories, String model) {
    return directories + " " + model;
  }

  private static Path file(Path directory, String model) {
    String name = UUID.nameUUIDFromBytes(model.getBytes(StandardCharsets.UTF_8)).toString();
    return directory.resolve(FOLDER).resolve(name);
  }

  /** The file appears whole, and stays when the machine stops. */
  private static void write(Path file, String text) throws IOException {
    Path folder = Files.createDirectories(file.resolveSibling("")).toAbsolutePath();
    Path written = folder.resolve(UUID.randomUUID() + ".tmp");
    try {
      Files.writeString(written, text, StandardOpenOption.CREATE_NEW, StandardOpenOption.SYNC);
      Files.move(written, file, StandardCopyOption.ATOMIC_MOVE);
      sync(folder);
      sync(folder.resolveSibling(""));
    } finally {
      Files.deleteIfExists(written);
    }
  }

  private static void sync(Path folder) throws IOException {
    try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
      channel.force(true);
    }
  }
}
