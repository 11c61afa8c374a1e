package ucm.lite.trace;

import com.carrotsearch.hppc.LongArrayList;
import ucm.api.BlockIds;

/** The values of the line being parsed; reused from line to line, so that ids are not boxed. */
final class RecordDraft {
  /** More blocks in one request are refused: the ids alone would take 64 MiB. */
  static final int MAX_BLOCKS = 1 << 22;

  private static final double MILLIS_PER_SECOND = 1000.0;
  private static final double MILLIS_OF_1973 = 1e11;
  private static final double MICROS_OF_1973 = 1e14;
  private static final double NANOS_OF_1973 = 1e17;

  TraceFormat format = TraceFormat.MOONCAKE;
  double timestampMillis;
  String requestId = "";
  int inputTokens;
  int outputTokens;
  // Two words each.
  private final LongArrayList ids = new LongArrayList();

  void clear() {
    timestampMillis = 0;
    requestId = "";
    inputTokens = 0;
    outputTokens = 0;
    clearBlocks();
  }

  void clearBlocks() {
    ids.clear();
  }

  int blockCount() {
    return ids.size() / 2;
  }

  void addBlock(long high, long low, int column) throws BadLineException {
    if (blockCount() == MAX_BLOCKS) {
      throw new BadLineException(
          column, "more than " + MAX_BLOCKS + " block ids", "at most that many");
    }
    ids.add(high, low);
  }

  static int tokens(String field, long value, int column) throws BadLineException {
    if (value < 0 || value > Integer.MAX_VALUE) {
      throw new BadLineException(
          column, field + " " + value, "a number of tokens from 0 to " + Integer.MAX_VALUE);
    }
    return (int) value;
  }

  static double timestamp(double value, int column) throws BadLineException {
    if (!(value >= 0) || Double.isInfinite(value)) {
      throw new BadLineException(column, "timestamp " + value, "a time that is not negative");
    }
    return value;
  }

  /**
   * Returns a timestamp in milliseconds. Wall-clock times are told by their size, as loggers write
   * them in any unit: from 1973 on they are above 10^11 in milliseconds, 10^14 in microseconds and
   * 10^17 in nanoseconds; smaller values have the unit of the format.
   */
  static double millis(double value, TraceFormat format, int column) throws BadLineException {
    double millis = value;
    if (value >= NANOS_OF_1973) {
      millis = value / 1e6;
    } else if (value >= MICROS_OF_1973) {
      millis = value / 1e3;
    } else if (value < MILLIS_OF_1973 && format != TraceFormat.MOONCAKE) {
      millis = value * MILLIS_PER_SECOND;
    }
    return timestamp(millis, column);
  }

  TraceRequest toRequest(int blockTokens) {
    return new TraceRequest(
        timestampMillis,
        requestId,
        inputTokens,
        outputTokens,
        blockTokens,
        BlockIds.wrap(ids.toArray()));
  }
}
