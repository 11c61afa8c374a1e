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
 * skipped and reported as a {@link TraceProblem} up to the limit of the options. One reading has
 * one format and one block size. Requests arrive in the order of the inputs and of the lines in
 * them; they are not sorted by time.
 *
 * <p>Immutable and thread-safe; only one reading at a time may name standard input.
 */
public final class TraceReader {
  private final TraceReaderOptions options;
  private final InputStream stdin;

  /** Creates a reader with {@link TraceReaderOptions#DEFAULT} and the process's standard input. */
  public TraceReader() {
    this(TraceReaderOptions.DEFAULT);
  }

  /** A reader that takes {@code -} as the process's standard input. */
  public TraceReader(TraceReaderOptions options) {
    this(options, System.in);
  }

  /** A reader that reads what {@code -} stands for to its end, and does not close it. */
  public TraceReader(TraceReaderOptions options, InputStream stdin) {
    this.options = options;
    this.stdin = stdin;
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
    return new TraceReading(options, stdin, visitor).read(TraceInput.resolve(inputs));
  }
}
