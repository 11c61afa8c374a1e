package ucm.testkit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a store must give back when it is closed, as a test sees it: threads, open files and mapped
 * files. Made before the store is opened, asked after it is closed. Linux only; tests that ask it must
 * not run at the same time as others in one process. Thread-safe.
 */
public final class LeakCheck {

  private static final String THREAD_PREFIX = "ucm-";
  private static final Path DESCRIPTORS = Path.of("/proc/self/fd");
  private static final Path MAPPINGS = Path.of("/proc/self/maps");

  private final Set<Thread> threadsBefore = threads();

  private LeakCheck() {}

  /** Notes what there is before the store is opened. */
  public static LeakCheck start() {
    return new LeakCheck();
  }

  /**
   * Fails when a thread lives whose name begins with {@code ucm-}, as all threads of stores shall, and
   * that was not there at the start.
   */
  public void requireNoThread() {
    Set<Thread> left = threads();
    left.removeAll(threadsBefore);
    if (!left.isEmpty()) {
      throw new AssertionError("threads alive after close: " + left);
    }
  }

  /**
   * Fails when this process has a file within a directory open or mapped, removed ones included.
   *
   * @param directory where the store keeps its files
   */
  public void requireNoFileOf(Path directory) {
    List<String> left = new ArrayList<>();
    try (Stream<Path> descriptors = Files.list(DESCRIPTORS);
        Stream<String> mappings = Files.lines(MAPPINGS)) {
      String inside = directory.toRealPath() + "/";
      for (Path descriptor : descriptors.toList()) {
        try {
          left.add("open: " + Files.readSymbolicLink(descriptor));
        } catch (NoSuchFileException e) {
          // It was closed since, as the list's own always is.
        }
      }
      mappings.map("mapped: "::concat).forEach(left::add);
      left.removeIf(file -> !file.contains(inside));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    if (!left.isEmpty()) {
      throw new AssertionError("files in use after close:\n" + String.join("\n", left));
    }
  }

  private static Set<Thread> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith(THREAD_PREFIX))
        .collect(Collectors.toSet());
  }
}
