package ucm.platform.fault;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.platform.libc.FileException;

/**
 * Which kinds of fault came lately, so that one which comes with each block is said once, and said again when it
 * had been away, as that of a disk that was full before. Keeps every kind: there should be few. Thread-safe.
 */
public final class RecentFaults {

  private static final long RECENT_NANOS = TimeUnit.MINUTES.toNanos(10);

  private final LongSupplier clock;
  // When each kind came last, by the clock.
  private final Map<String, Long> last = new ConcurrentHashMap<>();

  /** None yet, by a clock that counts nanoseconds. */
  public RecentFaults(LongSupplier clock) {
    this.clock = clock;
  }

  /** Of which kind a fault is: that of a disk which is full is another than that of one which cannot be written. */
  public static String kind(@Nullable Throwable fault) {
    return switch (fault) {
      case null -> "";
      case FileException ofFiles -> "errno " + ofFiles.errno();
      default -> fault.getClass().getName();
    };
  }

  /** Notes that a fault has come; returns whether it is to be said. */
  public boolean isNews(String kind) {
    long now = clock.getAsLong();
    Long before = last.put(kind, now);
    return before == null || now - before > RECENT_NANOS;
  }
}
