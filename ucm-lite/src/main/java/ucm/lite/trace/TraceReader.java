package ucm.lite.trace;

import java.io.InputStream;
import java.util.List;

/**
 * Reads traces of LLM requests, one pass, in bounded memory: a buffer as long as the longest line
 * and the block ids of one request.
 *
 * <p>Files are read up to where they ended when they were opened; one that is cut off meanwhile is an
 * error.
 *
 * <p>Formats ({@link TraceFormat}) and compression (gzip, also several members in one file) are
 * found by content. Lines of a log that are no trace record are passed over; a damaged record is
 * skipped and reported as a {@link TraceProblem} up to a limit. One reading has
 * one format and one block size. Requests arrive in the order of the inputs and of the lines in
 * them; they are not sorted by time.
 *
 * <p>Immutable and thread-safe; only one reading at a time may name standard input.
 *
 * @param maxBadLines bad lines skipped over all inputs together before reading stops with an error
 * @param maxLineBytes longest line that is parsed, in bytes after decompression, from 64 to 1 GiB;
 *     a longer one is a bad line. Memory grows up to the longest line seen.
 * @param blockTokens tokens a block, overruling what the format or the trace says, or 0 for what
 *     they say; at most 1 Mi
 * @param stdin what {@code -} stands for; read to its end, and not closed
 */
public record TraceReader(int maxBadLines, int maxLineBytes, int blockTokens, InputStream stdin) {

  /** The bound of a line unless another one is given: 64 MiB. */
  public static final int MAX_LINE_BYTES = 64 << 20;

  public TraceReader {
    check("maxBadLines", maxBadLines, 0, Integer.MAX_VALUE);
    check("maxLineBytes", maxLineBytes, 64, 1 << 30);
    check("blockTokens", blockTokens, 0, 1 << 20);
  }

  /** A reader that skips 100 bad lines, and takes {@code -} as the process's standard input. */
  public TraceReader() {
    this(System.in);
  }

  /** A reader that skips 100 bad lines. */
  public TraceReader(InputStream stdin) {
    this(100, MAX_LINE_BYTES, 0, stdin);
  }

  private static void check(String name, int value, int low, int high) {
    if (value < low || value > high) {
      throw new IllegalArgumentException(
          name + " is " + value + ", must be between " + low + " and " + high);
    }
  }

  /**
   * Reads the inputs one after the other. All names are resolved before the first one is read.
   * Blocks until all is read.
   *
   * @param inputs files (plain or gzip), directories (the files directly in them, in name order,
   *     without those whose name starts with a dot), or {@code -} for standard input
   * @param visitor receives the requests and the progress
   * @return what was read; at least one request
   * @throws TraceException when an input is missing, unreadable, empty, damaged, binary, or has no
   *     record (in a directory: when no file has one); when formats or block sizes mix; when there
   *     are more bad lines than allowed. The visitor may have received requests before.
   */
  public TraceReadReport read(List<String> inputs, TraceVisitor visitor) {
    return new TraceReading(this, visitor).read(TraceInput.resolve(inputs));
  }
}
