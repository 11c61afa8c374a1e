package ucm.lite.trace;

import java.io.IOException;
import java.math.BigDecimal;

/**
 * Writes requests as lines of a trace that {@link TraceReader} reads.
 *
 * <p>What a format cannot say is left out: Mooncake lines have no request id, UCM lines only full
 * blocks; the parent of a chat and its turn, which nothing here asks for, are not kept. JSON formats have ids
 * of 64 bits: longer ones are renumbered first, as {@link ucm.lite.edit.TraceEdits#renumbered} does. Not for
 * use by several threads.
 */
public final class TraceWriter implements TraceVisitor {
  private static final double MILLIS_PER_SECOND = 1000;

  private final TraceFormat format;
  private final Appendable out;
  private final StringBuilder line = new StringBuilder();
  private long written;

  /** A writer of lines of a format; the target is not closed. */
  public TraceWriter(TraceFormat format, Appendable out) {
    this.format = format;
    this.out = out;
  }

  @Override
  public void request(TraceRequest request) {
    line.setLength(0);
    switch (format) {
      case MOONCAKE -> {
        line.append("{\"timestamp\": ").append(number(request.timestampMillis()));
        lengths(request);
        ids(request);
      }
      case QWEN_BAILIAN -> bailian(request);
      case UCM -> ucm(request);
    }
    written++;
    try {
      out.append(line);
    } catch (IOException e) {
      throw new TraceException("the trace cannot be written: " + e.getMessage(), e);
    }
  }

  public long written() {
    return written;
  }

  private void bailian(TraceRequest request) {
    line.append("{\"chat_id\": ").append(chatId(request));
    line.append(", \"parent_chat_id\": -1, \"timestamp\": ")
        .append(number(request.timestampMillis() / MILLIS_PER_SECOND));
    lengths(request);
    line.append(", \"type\": \"text\", \"turn\": 1");
    ids(request);
  }

  /** A chat id is a number; a request without one gets its place in the trace. */
  private String chatId(TraceRequest request) {
    String id = request.requestId();
    boolean number =
        !id.isEmpty() && id.length() < 19 && id.chars().allMatch(c -> c >= '0' && c <= '9');
    return Long.toString(number ? Long.parseLong(id) : written);
  }

  private void ucm(TraceRequest request) {
    if (written == 0) {
      line.append("UCMTraceMeta: type=standard, vllm_hash_block_size=")
          .append(request.blockTokens())
          .append('\n');
    }
    line.append("UCMTrace: timestamp: ")
        .append(number(request.timestampMillis() / MILLIS_PER_SECOND));
    if (!request.requestId().isEmpty()) {
      line.append(", request_id: ").append(request.requestId());
    }
    line.append(", input_length: ").append(request.inputTokens());
    line.append(", output_length: ").append(request.outputTokens());
    line.append(", block_hashes: [");
    int full = Math.min(request.blockCount(), request.inputTokens() / request.blockTokens());
    for (int i = 0; i < full; i++) {
      line.append(i == 0 ? "'" : ", '");
      line.append(request.ids().hex(i)).append('\'');
    }
    line.append("]\n");
  }

  private void lengths(TraceRequest request) {
    line.append(", \"input_length\": ").append(request.inputTokens());
    line.append(", \"output_length\": ").append(request.outputTokens());
  }

  /** Ends a JSON line with the block ids. */
  private void ids(TraceRequest request) {
    line.append(", \"hash_ids\": [");
    for (int i = 0; i < request.blockCount(); i++) {
      if (request.ids().high(i) != 0) {
        throw new IllegalArgumentException("a block id of more than 64 bits: renumber the trace");
      }
      line.append(i == 0 ? "" : ", ").append(Long.toUnsignedString(request.ids().low(i)));
    }
    line.append("]}\n");
  }

  /** A number without a fraction where it has none, and never with an exponent. */
  private static String number(double value) {
    return value == Math.rint(value) && value < 1e15
        ? Long.toString((long) value)
        : new BigDecimal(Double.toString(value)).toPlainString();
  }
}
