package ucm.cli.output;

import java.util.Arrays;
import java.util.Locale;

/** A few measured times, and what people ask of them. Used by one thread. */
public final class Durations {

  private long[] nanos = new long[64];
  private int count;

  public void add(long elapsedNanos) {
    if (count == nanos.length) {
      nanos = Arrays.copyOf(nanos, 2 * count);
    }
    nanos[count++] = elapsedNanos;
  }

  /** Their sum in seconds. */
  double totalSeconds() {
    return Arrays.stream(nanos, 0, count).sum() / 1e9;
  }

  /** Their mean in milliseconds; 0 when there are none. */
  public double meanMillis() {
    return count == 0 ? 0 : totalSeconds() * 1e3 / count;
  }

  /** The smallest time, in milliseconds, that at least this share of them does not exceed. */
  public double quantileMillis(double share) {
    if (count == 0) {
      return 0;
    }
    long[] sorted = Arrays.copyOf(nanos, count);
    Arrays.sort(sorted);
    return sorted[Math.max(0, (int) Math.ceil(share * count) - 1)] / 1e6;
  }

  /** Milliseconds as tables show them. */
  public static String millis(double value) {
    return String.format(Locale.ROOT, value < 10 ? "%.2f" : "%.1f", value);
  }
}
