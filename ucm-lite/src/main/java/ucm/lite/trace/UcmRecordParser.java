package ucm.lite.trace;

/**
 * Parses the trace lines of a UCM log, wherever they start in the line:
 *
 * <pre>
 * timestamp: {s}, [request_id: {id}, ]input_length: {n}, output_length: {m},
 *     ucm_block_ids|block_hashes|hash_ids: ['{32 hex digits}', ...]
 * UCMTraceMeta: type=..., vllm_hash_block_size={tokens}[, trace_hash_block_size={tokens}], ...
 * </pre>
 *
 * <p>{@code trace_hash_block_size}, where present, is the size of a traced block; otherwise it is
 * {@code vllm_hash_block_size}.
 */
final class UcmRecordParser {
  enum Kind {
    RECORD,
    META,
    OTHER
  }

  private static final String TIMESTAMP = "timestamp:";
  private static final String INPUT_LENGTH = "input_length:";
  private static final int MAX_BLOCK_TOKENS = 1 << 20;

  private UcmLine line = new UcmLine(new byte[0], 0);

  /** Takes a line, and says what it is. */
  Kind begin(byte[] bytes, int length) {
    line = new UcmLine(bytes, length);
    if (line.has(TIMESTAMP, INPUT_LENGTH)) {
      return Kind.RECORD;
    }
    if (line.has("UCMTraceMeta:")) {
      return Kind.META;
    }
    return line.has("UCMTrace:") ? Kind.RECORD : Kind.OTHER;
  }

  /** Fills the draft from a line of kind {@code RECORD}. */
  void parse(RecordDraft draft) throws BadLineException {
    draft.clear();
    draft.format = TraceFormat.UCM;
    if (!line.moveBehind(TIMESTAMP)) {
      throw new BadLineException(0, "a UCMTrace line without timestamp", "'timestamp: ...'");
    }
    int column = line.column();
    draft.timestampMillis = RecordDraft.millis(line.decimal("timestamp"), draft.format, column);
    line.expect(",");
    if (line.skip("request_id:")) {
      draft.requestId = line.takeTo(", " + INPUT_LENGTH, "no input_length after request_id");
      line.expect(",");
    }
    draft.inputTokens = length(INPUT_LENGTH, "input_length");
    line.expect(",");
    draft.outputTokens = length("output_length:", "output_length");
    line.expect(",");
    if (!line.skip("block_hashes:") && !line.skip("hash_ids:")) {
      line.expect("ucm_block_ids:");
    }
    parseIds(draft);
  }

  private int length(String word, String field) throws BadLineException {
    line.expect(word);
    int column = line.column();
    return RecordDraft.tokens(field, line.integer(field), column);
  }

  private void parseIds(RecordDraft draft) throws BadLineException {
    if (!line.skip("[")) {
      throw new BadLineException(line.column(), line.here(), "'[' and the block ids");
    }
    if (line.skip("]")) {
      return;
    }
    while (true) {
      int column = line.column();
      String quote = line.skip("'") ? "'" : "\"";
      if (quote.equals("\"") && !line.skip(quote)) {
        throw new BadLineException(
            column, line.here() + " in the list of block ids", "32 hex digits in quotes");
      }
      long high = line.hex16();
      long low = line.hex16();
      if (!line.skip(quote)) {
        throw new BadLineException(
            line.column(), "a block id of more than 32 hex digits", "32 hex digits in quotes");
      }
      draft.addBlock(high, low, column);
      if (line.skip("]")) {
        return;
      }
      line.expect(",");
    }
  }

  /** Returns the tokens a traced block holds, from a line of kind {@code META}. */
  int blockTokens() throws BadLineException {
    if (!line.moveBehind("trace_hash_block_size=") && !line.moveBehind("vllm_hash_block_size=")) {
      throw new BadLineException(
          0,
          "a UCMTraceMeta line without a block size",
          "'trace_hash_block_size=...' or 'vllm_hash_block_size=...'");
    }
    int column = line.column();
    long tokens = line.integer("block size");
    if (tokens <= 0 || tokens > MAX_BLOCK_TOKENS) {
      throw new BadLineException(
          column, "block size " + tokens, "tokens from 1 to " + MAX_BLOCK_TOKENS);
    }
    return (int) tokens;
  }
}
