package ucm.lite.record;

import java.util.Arrays;
import java.util.function.Consumer;
import ucm.lite.trace.TraceException;
import ucm.platform.table.BlockTable;

/**
 * A trace kept to be read again and again: the numbered blocks of all requests in order, and what
 * the requests say. Models that need the future, or facts about the whole trace first, run on it.
 *
 * <p>Memory: 27 to 46 bytes a distinct block on the heap; 4 bytes a reference and 36 a request on the
 * heap up to a bound, then in memory-mapped temporary files. Made by a {@code TraceAnalyzer} or a
 * {@code TraceSample}; its opener closes it. Many threads may read it.
 */
public final class RecordedTrace implements AutoCloseable {
  /** References kept on the heap: 256 MiB, and no more than a 32nd of it. */
  public static final long HEAP_REFERENCES =
      Math.min(1L << 26, Runtime.getRuntime().maxMemory() / 32 / Integer.BYTES);

  private static final int REQUESTS_BETWEEN_CHECKS = 1024;

  /** What the tape of requests has of each: see {@link #add}. */
  static final int FACTS = 9;

  private static final int TIMESTAMP = 3;

  private final IntTape references;
  private final IntTape facts;
  private final BlockTable index;
  private final int[] added = new int[FACTS];
  private int requests;
  private int blockTokens;

  /** An empty trace of blocks that the table numbers. */
  @SuppressWarnings("exports") // For packages of this module.
  public RecordedTrace(BlockTable index) {
    this.index = index;
    this.references = new IntTape(HEAP_REFERENCES);
    // Requests are fewer than references, and take more room.
    this.facts = new IntTape(HEAP_REFERENCES / 4);
  }

  /** A table by block or request, filled with -1 for none. */
  public static int[] table(int length) {
    int[] table = new int[length];
    Arrays.fill(table, -1);
    return table;
  }

  /** Adds a request, whose blocks the table of this trace has numbered. */
  public void add(NumberedRequest request) {
    if (requests == Integer.MAX_VALUE) {
      throw new TraceException("more than " + requests + " requests, expected fewer");
    }
    blockTokens = request.count > 0 ? request.blockTokens : blockTokens;
    long start = references.size();
    long timestamp = Double.doubleToRawLongBits(request.timestampMillis);
    added[0] = (int) start;
    added[1] = (int) (start >>> Integer.SIZE);
    added[2] = request.count;
    added[TIMESTAMP] = (int) timestamp;
    added[TIMESTAMP + 1] = (int) (timestamp >>> Integer.SIZE);
    added[5] = request.inputTokens;
    added[6] = request.outputTokens;
    added[7] = request.known;
    added[8] = request.place;
    facts.append(added, FACTS);
    references.append(request.blocks, request.count);
    requests++;
  }

  public int requests() {
    return requests;
  }

  public int uniqueBlocks() {
    return index.size();
  }

  /** The blocks of all prompts, each counted as often as it occurs. */
  public long references() {
    return references.size();
  }

  /** Tokens of a full block; 0 when no request has a block. */
  public int blockTokens() {
    return blockTokens;
  }

  public void read(int request, NumberedRequest cursor) {
    int[] of = cursor.facts;
    facts.read((long) request * FACTS, of, FACTS);
    cursor.begin(of[2], index.size());
    cursor.start = pair(of, 0);
    cursor.count = of[2];
    references.read(cursor.start, cursor.blocks, cursor.count);
    cursor.known = of[7];
    cursor.number = request;
    cursor.place = of[8];
    cursor.timestampMillis = Double.longBitsToDouble(pair(of, TIMESTAMP));
    cursor.inputTokens = of[5];
    cursor.outputTokens = of[6];
    cursor.blockTokens = blockTokens;
  }

  private static long pair(int[] of, int at) {
    return Integer.toUnsignedLong(of[at]) | (long) of[at + 1] << Integer.SIZE;
  }

  /** Shows every request to a model, in order. */
  public void feed(Consumer<NumberedRequest> model) throws InterruptedException {
    NumberedRequest cursor = new NumberedRequest();
    for (int request = 0; request < requests; request++) {
      if (request % REQUESTS_BETWEEN_CHECKS == 0 && Thread.interrupted()) {
        throw new InterruptedException();
      }
      read(request, cursor);
      model.accept(cursor);
    }
  }

  public double timestampMillis(int request) {
    int[] of = new int[2];
    facts.read((long) request * FACTS + TIMESTAMP, of, of.length);
    return Double.longBitsToDouble(pair(of, 0));
  }

  /** The first half of a block's id. */
  public long idHigh(int block) {
    return index.high(block);
  }

  /** The second half of a block's id. */
  public long idLow(int block) {
    return index.low(block);
  }

  /** Frees the memory and the temporary files. No other thread may be reading. */
  @Override
  public void close() {
    references.close();
    facts.close();
  }
}
