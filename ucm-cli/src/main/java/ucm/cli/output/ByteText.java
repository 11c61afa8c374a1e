package ucm.cli.output;

import java.util.Locale;

/** Numbers of bytes, for people. */
public final class ByteText {

  public static final double GIB = 1L << 30;
  public static final double MIB = 1L << 20;

  private static final String[] UNITS = {"KiB", "MiB", "GiB", "TiB", "PiB"};

  private ByteText() {}

  /** In the unit that leaves one to four digits before the point. */
  public static String of(long bytes) {
    if (bytes < 1024) {
      return bytes + " B";
    }
    double value = bytes / 1024.0;
    int unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    return String.format(Locale.ROOT, "%.2f %s", value, UNITS[unit]);
  }
}
