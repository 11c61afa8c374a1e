package ucm.lite.trace;

/**
 * Bounds and choices of a {@link TraceReader}.
 *
 * @param maxBadLines bad lines skipped over all inputs together before reading stops with an error
 * @param maxLineBytes longest line that is parsed, in bytes after decompression, from 64 to 1 GiB;
 *     a longer one is a bad line. Memory grows up to the longest line seen.
 * @param blockTokens tokens a block, overruling what the format or the trace says, or 0 for what
 *     they say; at most 1 Mi
 */
public record TraceReaderOptions(int maxBadLines, int maxLineBytes, int blockTokens) {
  /** 100 bad lines, lines up to 64 MiB, block size as the trace says. */
  public static final TraceReaderOptions DEFAULT = new TraceReaderOptions(100, 64 << 20, 0);

  public TraceReaderOptions {
    check("maxBadLines", maxBadLines, 0, Integer.MAX_VALUE);
    check("maxLineBytes", maxLineBytes, 64, 1 << 30);
    check("blockTokens", blockTokens, 0, 1 << 20);
  }

  private static void check(String name, int value, int low, int high) {
    if (value < low || value > high) {
      throw new IllegalArgumentException(
          name + " is " + value + ", must be between " + low + " and " + high);
    }
  }
}
