package ucm.lite;

import java.util.Arrays;

/**
 * A trace kept to be read again and again: the numbered blocks of all requests in order, and what
 * the requests say. Models that need the future, or facts about the whole trace first, run on it.
 *
 * <p>Memory: 40 bytes a request and 24 to 48 a distinct block on the heap; 4 bytes a reference on
 * the heap up to a bound, then in a memory-mapped temporary file. Made by a {@link TraceAnalyzer};
 * whoever asked for it closes it. Many threads may read it.
 */
public final class RecordedTrace implements AutoCloseable {
  /** References kept on the heap: 256 MiB. */
  static final long HEAP_REFERENCES = 1L << 26;

  private static final int REQUESTS_BETWEEN_CHECKS = 1024;

  private final IntTape references;
  private final BlockIndex index;
  private long[] starts = new long[1025];
  private double[] timestamps = new double[1024];
  private int[] inputTokens = new int[1024];
  private int[] outputTokens = new int[1024];
  private int[] known = new int[1024];
  private int requests;
  private int blockTokens;

  RecordedTrace(BlockIndex index) {
    this(index, HEAP_REFERENCES);
  }

  RecordedTrace(BlockIndex index, long heapReferences) {
    this.index = index;
    this.references = new IntTape(heapReferences);
  }

  void add(NumberedRequest request) {
    if (requests == timestamps.length) {
      grow();
    }
    if (request.count > 0) {
      blockTokens = request.blockTokens;
    }
    references.append(request.blocks, request.count);
    timestamps[requests] = request.timestampMillis;
    inputTokens[requests] = request.inputTokens;
    outputTokens[requests] = request.outputTokens;
    known[requests] = request.known;
    starts[++requests] = references.size();
  }

  private void grow() {
    int length = (int) Math.min(Integer.MAX_VALUE - 8, 2L * requests);
    if (length == requests) {
      throw new TraceException("more than " + requests + " requests, expected fewer");
    }
    starts = Arrays.copyOf(starts, length + 1);
    timestamps = Arrays.copyOf(timestamps, length);
    inputTokens = Arrays.copyOf(inputTokens, length);
    outputTokens = Arrays.copyOf(outputTokens, length);
    known = Arrays.copyOf(known, length);
  }

  /**
   * Returns the number of requests.
   *
   * @return requests
   */
  public int requests() {
    return requests;
  }

  /**
   * Returns the number of distinct blocks.
   *
   * @return blocks
   */
  public int uniqueBlocks() {
    return index.size();
  }

  /**
   * Returns the blocks of all prompts, each counted as often as it occurs.
   *
   * @return references
   */
  public long references() {
    return references.size();
  }

  /**
   * Returns the size of a full block.
   *
   * @return tokens; 0 when no request has a block
   */
  public int blockTokens() {
    return blockTokens;
  }

  /** Fills the cursor with a request. */
  void read(int request, NumberedRequest cursor) {
    int count = count(request);
    cursor.ensureBlocks(count);
    references.read(starts[request], cursor.blocks, count);
    cursor.count = count;
    cursor.known = known[request];
    cursor.distinct = index.size();
    cursor.number = request;
    cursor.timestampMillis = timestamps[request];
    cursor.inputTokens = inputTokens[request];
    cursor.outputTokens = outputTokens[request];
    cursor.blockTokens = blockTokens;
  }

  /** Shows every request to a model, in order. */
  void feed(PrefixModel model) throws InterruptedException {
    NumberedRequest cursor = new NumberedRequest();
    for (int request = 0; request < requests; request++) {
      if (request % REQUESTS_BETWEEN_CHECKS == 0 && Thread.interrupted()) {
        throw new InterruptedException();
      }
      read(request, cursor);
      model.accept(cursor);
    }
  }

  /** The number of blocks of a request. */
  int count(int request) {
    return (int) (starts[request + 1] - starts[request]);
  }

  /** Where the blocks of a request are among all references. */
  long start(int request) {
    return starts[request];
  }

  double timestampMillis(int request) {
    return timestamps[request];
  }

  long idHigh(int block) {
    return index.high(block);
  }

  long idLow(int block) {
    return index.low(block);
  }

  /** Frees the memory and the temporary file. No other thread may be reading. */
  @Override
  public void close() {
    references.close();
  }
}
