package ucm.lite.trace;

/**
 * Bounds and choices of a {@link TraceReader}.
 *
 * @param maxBadLines bad lines skipped over all inputs together before reading stops with an error;
 *     0 or more
 * @param maxLineBytes longest line that is parsed, in bytes after decompression, from 64 to 1 GiB;
 *     a longer one is a bad line. Memory grows up to the longest line seen.
 * @param blockTokens tokens a block, overruling what the format or the trace says, or 0 for what
 *     they say; at most 1 Mi
 */
public record TraceReaderOptions(int maxBadLines, int maxLineBytes, int blockTokens) {
  private static final int MIN_LINE_BYTES = 64;
  private static final int MAX_LINE_BYTES = 1 << 30;
  private static final int MAX_BLOCK_TOKENS = 1 << 20;

  /** 100 bad lines, lines up to 64 MiB, block size as the trace says. */
  public static final TraceReaderOptions DEFAULT = new TraceReaderOptions(100, 64 << 20, 0);

  /** Refuses values out of their range. */
  public TraceReaderOptions {
    check("maxBadLines", maxBadLines, 0, Integer.MAX_VALUE);
    check("maxLineBytes", maxLineBytes, MIN_LINE_BYTES, MAX_LINE_BYTES);
    check("blockTokens", blockTokens, 0, MAX_BLOCK_TOKENS);
  }

  /** These options with another number of bad lines, 0 or more. */
  public TraceReaderOptions withMaxBadLines(int lines) {
    return new TraceReaderOptions(lines, maxLineBytes, blockTokens);
  }

  /** These options with another longest line, from 64 bytes to 1 GiB. */
  public TraceReaderOptions withMaxLineBytes(int bytes) {
    return new TraceReaderOptions(maxBadLines, bytes, blockTokens);
  }

  /** These options with so many tokens a block, at most 1 Mi; 0 for what the trace says. */
  public TraceReaderOptions withBlockTokens(int tokens) {
    return new TraceReaderOptions(maxBadLines, maxLineBytes, tokens);
  }

  private static void check(String name, int value, int low, int high) {
    if (value < low || value > high) {
      throw new IllegalArgumentException(
          name + " is " + value + ", must be between " + low + " and " + high);
    }
  }
}
