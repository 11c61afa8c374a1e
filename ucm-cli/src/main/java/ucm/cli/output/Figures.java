package ucm.cli.output;

import java.util.Locale;

/** Numbers as people read them in tables. */
public final class Figures {

  private static final double GB = 1e9;

  private Figures() {}

  public static String grouped(long number) {
    return String.format(Locale.ROOT, "%,d", number);
  }

  public static String percent(double share) {
    return String.format(Locale.ROOT, "%.2f%%", 100 * share);
  }

  /** Gigabytes, without their unit; small ones with more digits. */
  public static String gigabytes(double bytes) {
    double gb = bytes / GB;
    return String.format(Locale.ROOT, gb < 10 ? "%,.3f" : "%,.1f", gb);
  }

  public static String fixed(double number, int digits) {
    return String.format(Locale.ROOT, "%,." + digits + "f", number);
  }

  /** A number with two digits after the point and none grouped. */
  public static String plain(double number) {
    return String.format(Locale.ROOT, "%.2f", number);
  }

  /** A time in the unit that suits it. */
  public static String duration(double seconds) {
    if (seconds < 1) {
      return fixed(1000 * seconds, 1) + " ms";
    }
    if (seconds < 600) {
      return fixed(seconds, 1) + " s";
    }
    return seconds < 36_000 ? fixed(seconds / 60, 1) + " min" : fixed(seconds / 3600, 1) + " h";
  }
}
