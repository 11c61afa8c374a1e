package ucm.cli.output;

import java.util.Locale;

/** Numbers as people read them in tables. */
public final class Figures {

  public static final double GB = 1e9;
  public static final double GIB = 1L << 30;
  public static final double MIB = 1L << 20;

  private static final String[] BINARY_UNITS = {"KiB", "MiB", "GiB", "TiB", "PiB"};

  private Figures() {}

  public static String grouped(long number) {
    return String.format(Locale.ROOT, "%,d", number);
  }

  public static String percent(double share) {
    return String.format(Locale.ROOT, "%.2f%%", 100 * share);
  }

  /** A number of bytes in the unit that leaves one to four digits before the point. */
  public static String bytes(long bytes) {
    if (bytes < 1024) {
      return bytes + " B";
    }
    double value = bytes / 1024.0;
    int unit = 0;
    while (value >= 1024 && unit < BINARY_UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    return plain(value) + " " + BINARY_UNITS[unit];
  }

  /** Gigabytes, without their unit; small ones with more digits. */
  public static String gigabytes(double bytes) {
    double gb = bytes / GB;
    return fixed(gb, gb < 10 ? 3 : 1);
  }

  public static String fixed(double number, int digits) {
    return String.format(Locale.ROOT, "%,." + digits + "f", number);
  }

  /** A number rounded to a whole one. */
  public static String whole(double number) {
    return String.format(Locale.ROOT, "%.0f", number);
  }

  /** A number with two digits after the point and none grouped. */
  public static String plain(double number) {
    return String.format(Locale.ROOT, "%.2f", number);
  }

  /** Milliseconds, without their unit. */
  public static String millis(double value) {
    return String.format(Locale.ROOT, value < 10 ? "%.2f" : "%.1f", value);
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
