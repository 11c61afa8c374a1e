package ucm.lite.trace;

import java.nio.charset.StandardCharsets;

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
  /** What a line of text is. */
  enum Kind {
    RECORD,
    META,
    OTHER
  }

  private static final byte[] TRACE = word("UCMTrace:");
  private static final byte[] META = word("UCMTraceMeta:");
  private static final byte[] TIMESTAMP = word("timestamp:");
  private static final byte[] REQUEST_ID = word("request_id:");
  private static final byte[] INPUT_LENGTH = word("input_length:");
  private static final byte[] AFTER_REQUEST_ID = word(", input_length:");
  private static final byte[] OUTPUT_LENGTH = word("output_length:");
  private static final byte[] BLOCK_IDS = word("ucm_block_ids:");
  private static final byte[] BLOCK_HASHES = word("block_hashes:");
  private static final byte[] HASH_IDS = word("hash_ids:");
  private static final byte[] TRACE_BLOCK = word("trace_hash_block_size=");
  private static final byte[] ENGINE_BLOCK = word("vllm_hash_block_size=");
  private static final byte[] COMMA = word(",");
  private static final int MAX_BLOCK_TOKENS = 1 << 20;

  /**
   * Says whether the bytes {@code start} (inclusive) to {@code end} (exclusive) are a trace line.
   */
  static Kind kindOf(byte[] line, int start, int end) {
    int timestamp = UcmLine.find(line, start, end, TIMESTAMP);
    if (timestamp >= 0
        && (UcmLine.find(line, timestamp, end, INPUT_LENGTH) >= 0
            || UcmLine.find(line, start, timestamp, TRACE) >= 0)) {
      return Kind.RECORD;
    }
    if (UcmLine.find(line, start, end, META) >= 0) {
      return Kind.META;
    }
    return UcmLine.find(line, start, end, TRACE) >= 0 ? Kind.RECORD : Kind.OTHER;
  }

  /** Fills the draft from a line of kind {@code RECORD}. */
  void parse(byte[] bytes, int start, int end, RecordDraft draft) throws BadLineException {
    draft.clear();
    draft.format = TraceFormat.UCM;
    UcmLine line = new UcmLine(bytes, start, end);
    int timestamp = line.find(TIMESTAMP);
    if (timestamp < 0) {
      throw new BadLineException(0, "a UCMTrace line without timestamp", "'timestamp: ...'");
    }
    line.moveTo(timestamp);
    line.expect(TIMESTAMP);
    int column = line.column();
    draft.timestampMillis = RecordDraft.millis(line.decimal("timestamp"), draft.format, column);
    line.expect(COMMA);
    if (line.skip(REQUEST_ID)) {
      int next = line.find(AFTER_REQUEST_ID);
      if (next < 0) {
        throw new BadLineException(
            line.column(), "no input_length after request_id", "', input_length: ...'");
      }
      draft.requestId = line.takeTo(next);
      line.expect(COMMA);
    }
    draft.inputTokens = length(line, INPUT_LENGTH, "input_length");
    line.expect(COMMA);
    draft.outputTokens = length(line, OUTPUT_LENGTH, "output_length");
    line.expect(COMMA);
    if (!line.skip(BLOCK_HASHES) && !line.skip(HASH_IDS)) {
      line.expect(BLOCK_IDS);
    }
    parseIds(line, draft);
  }

  private static int length(UcmLine line, byte[] word, String field) throws BadLineException {
    line.expect(word);
    int column = line.column();
    return RecordDraft.tokens(field, line.integer(field), column);
  }

  private static void parseIds(UcmLine line, RecordDraft draft) throws BadLineException {
    if (!line.skip('[')) {
      throw new BadLineException(line.column(), line.here(), "'[' and the block ids");
    }
    line.skipSpaces();
    if (line.skip(']')) {
      return;
    }
    while (true) {
      int column = line.column();
      char quote = line.skip('\'') ? '\'' : '"';
      if (quote == '"' && !line.skip('"')) {
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
      line.skipSpaces();
      if (line.skip(']')) {
        return;
      }
      line.expect(COMMA);
    }
  }

  /** Returns the tokens a traced block holds, from a line of kind {@code META}. */
  int blockTokens(byte[] bytes, int start, int end) throws BadLineException {
    UcmLine line = new UcmLine(bytes, start, end);
    int at = line.find(TRACE_BLOCK);
    byte[] key = at >= 0 ? TRACE_BLOCK : ENGINE_BLOCK;
    at = at >= 0 ? at : line.find(ENGINE_BLOCK);
    if (at < 0) {
      throw new BadLineException(
          0,
          "a UCMTraceMeta line without a block size",
          "'trace_hash_block_size=...' or 'vllm_hash_block_size=...'");
    }
    line.moveTo(at);
    line.expect(key);
    int column = line.column();
    long tokens = line.integer("block size");
    if (tokens <= 0 || tokens > MAX_BLOCK_TOKENS) {
      throw new BadLineException(
          column, "block size " + tokens, "tokens from 1 to " + MAX_BLOCK_TOKENS);
    }
    return (int) tokens;
  }

  private static byte[] word(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
