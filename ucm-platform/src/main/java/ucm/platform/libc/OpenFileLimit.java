package ucm.platform.libc;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** How many files this process may have open. */
public final class OpenFileLimit {

  // Linux's default.
  private static final int USUAL = 1024;

  private OpenFileLimit() {}

  /** The soft limit now, by {@code getrlimit}. */
  public static int now() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment limit = arena.allocate(Libc.RLIMIT_BYTES, Long.BYTES);
      if (Libc.limit(Libc.RLIMIT_NOFILE, limit) < 0) {
        return USUAL;
      }
      long files = limit.get(ValueLayout.JAVA_LONG, 0);
      // RLIM_INFINITY is the largest unsigned number.
      return files < 0 ? Integer.MAX_VALUE : (int) Math.min(files, Integer.MAX_VALUE);
    }
  }
}
