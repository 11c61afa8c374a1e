package ucm.store.cache.config;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** How much host memory there is, and how much this process may still take, as the kernel says it. */
public final class HostMemory {

  private static final long KIB = 1024;

  private final Path root;

  /**
   * Reads below a root.
   *
   * @param root {@code /}, or its replacement in a test
   */
  public HostMemory(Path root) {
    this.root = root;
  }

  /**
   * Bytes that can be taken without swapping: {@code MemAvailable} of /proc/meminfo, or what the
   * control group (version 2) of a container leaves if that is less. {@link Long#MAX_VALUE} where
   * neither can be read, as on systems other than Linux.
   */
  public long available() {
    long machine = valueAfter("proc/meminfo", "MemAvailable:", KIB);
    long limit = valueAfter("sys/fs/cgroup/memory.max", "", 1);
    long used = valueAfter("sys/fs/cgroup/memory.current", "", 1);
    if (limit == Long.MAX_VALUE || used == Long.MAX_VALUE) {
      return machine;
    }
    // Unused file pages count as used there, and are given back at once when needed.
    long reclaimable = valueAfter("sys/fs/cgroup/memory.stat", "inactive_file", 1);
    long left = limit - used + (reclaimable == Long.MAX_VALUE ? 0 : reclaimable);
    return Math.min(machine, Math.max(0, left));
  }

  /**
   * Bytes of memory of this machine, or of its container (control group version 2) if that may have less.
   * {@link Long#MAX_VALUE} where neither can be read.
   */
  public long total() {
    return Math.min(
        valueAfter("proc/meminfo", "MemTotal:", KIB),
        valueAfter("sys/fs/cgroup/memory.max", "", 1));
  }

  /** The number after a word at the start of a line; MAX_VALUE when there is no such number. */
  private long valueAfter(String file, String word, long unit) {
    try {
      for (String line : Files.readAllLines(root.resolve(file))) {
        if (line.startsWith(word)) {
          String number = line.substring(word.length()).strip().split("\\s+", -1)[0];
          return Math.multiplyExact(Long.parseLong(number), unit);
        }
      }
    } catch (IOException | NumberFormatException e) {
      // Not there, or "max": no limit that could be told.
      return Long.MAX_VALUE;
    }
    return Long.MAX_VALUE;
  }
}
