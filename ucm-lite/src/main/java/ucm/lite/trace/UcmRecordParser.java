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
  enum Kind {
    RECORD,
    META,
    OTHER
  }

  private static final String TIMESTAMP = "timestamp:";
  private static final String INPUT_LENGTH = "input_length:";
  private static final int MAX_BLOCK_TOKENS = 1 << 20;

  // The line at hand, a character for each byte, and where it is read.
  private String text = "";
  private int position;

  /** Takes a line, and says what it is. */
  Kind begin(byte[] bytes, int length) {
    text = new String(bytes, 0, length, StandardCharsets.ISO_8859_1);
    position = 0;
    int at = text.indexOf(TIMESTAMP);
    if (at >= 0 && text.indexOf(INPUT_LENGTH, at) >= 0) {
      return Kind.RECORD;
    }
    if (text.contains("UCMTraceMeta:")) {
      return Kind.META;
    }
    return text.contains("UCMTrace:") ? Kind.RECORD : Kind.OTHER;
  }

  /** Fills the draft from a line of kind {@code RECORD}. */
  void parse(RecordDraft draft) throws BadLineException {
    draft.clear();
    draft.format = TraceFormat.UCM;
    if (!moveBehind(TIMESTAMP)) {
      throw new BadLineException(0, "a UCMTrace line without timestamp", "'timestamp: ...'");
    }
    int column = column();
    draft.timestampMillis = RecordDraft.millis(decimal("timestamp"), draft.format, column);
    expect(",");
    if (skip("request_id:")) {
      draft.requestId = takeTo(", " + INPUT_LENGTH, "no input_length after request_id");
      expect(",");
    }
    draft.inputTokens = length(INPUT_LENGTH, "input_length");
    expect(",");
    draft.outputTokens = length("output_length:", "output_length");
    expect(",");
    if (!skip("block_hashes:") && !skip("hash_ids:")) {
      expect("ucm_block_ids:");
    }
    parseIds(draft);
  }

  private int length(String word, String field) throws BadLineException {
    expect(word);
    int column = column();
    return RecordDraft.tokens(field, integer(field), column);
  }

  private void parseIds(RecordDraft draft) throws BadLineException {
    if (!skip("[")) {
      throw new BadLineException(column(), here(), "'[' and the block ids");
    }
    if (skip("]")) {
      return;
    }
    while (true) {
      int column = column();
      String quote = skip("'") ? "'" : "\"";
      if (quote.equals("\"") && !skip(quote)) {
        throw new BadLineException(
            column, here() + " in the list of block ids", "32 hex digits in quotes");
      }
      long high = hex16();
      long low = hex16();
      if (!skip(quote)) {
        throw new BadLineException(
            column(), "a block id of more than 32 hex digits", "32 hex digits in quotes");
      }
      draft.addBlock(high, low, column);
      if (skip("]")) {
        return;
      }
      expect(",");
    }
  }

  /** Returns the tokens a traced block holds, from a line of kind {@code META}. */
  int blockTokens() throws BadLineException {
    if (!moveBehind("trace_hash_block_size=") && !moveBehind("vllm_hash_block_size=")) {
      throw new BadLineException(
          0,
          "a UCMTraceMeta line without a block size",
          "'trace_hash_block_size=...' or 'vllm_hash_block_size=...'");
    }
    int column = column();
    long tokens = integer("block size");
    if (tokens <= 0 || tokens > MAX_BLOCK_TOKENS) {
      throw new BadLineException(
          column, "block size " + tokens, "tokens from 1 to " + MAX_BLOCK_TOKENS);
    }
    return (int) tokens;
  }

  private int column() {
    return position + 1;
  }

  /** Moves behind the next such word and the spaces after it, if there is one. */
  private boolean moveBehind(String word) {
    int at = text.indexOf(word, position);
    if (at >= 0) {
      position = at + word.length();
      skipSpaces();
    }
    return at >= 0;
  }

  /** Consumes the word and spaces after it, when the line goes on with it. */
  private boolean skip(String word) {
    boolean found = text.startsWith(word, position);
    if (found) {
      position += word.length();
      skipSpaces();
    }
    return found;
  }

  private void expect(String word) throws BadLineException {
    if (!skip(word)) {
      throw new BadLineException(column(), here(), "'" + word + "'");
    }
  }

  private void skipSpaces() {
    while (position < text.length() && text.charAt(position) == ' ') {
      position++;
    }
  }

  /** Consumes the text before a word, which has to come, and returns it. */
  private String takeTo(String word, String missing) throws BadLineException {
    int to = text.indexOf(word, position);
    if (to < 0) {
      throw new BadLineException(column(), missing, "'" + word + " ...'");
    }
    byte[] taken = text.substring(position, to).getBytes(StandardCharsets.ISO_8859_1);
    position = to;
    return new String(taken, StandardCharsets.UTF_8);
  }

  /** Consumes an integer of at most 18 digits, with a sign if there is one. */
  private long integer(String field) throws BadLineException {
    int column = column();
    String number = run("0123456789.-");
    if (!number.matches("-?[0-9]{1,18}")) {
      throw new BadLineException(column, field + " that is no integer", "an integer");
    }
    return Long.parseLong(number);
  }

  private double decimal(String field) throws BadLineException {
    int column = column();
    try {
      return Double.parseDouble(run("0123456789.eE+-"));
    } catch (NumberFormatException _) {
      throw new BadLineException(column, field + " that is no number", "a number");
    }
  }

  /** Consumes characters as long as they are among some. */
  private String run(String characters) {
    int start = position;
    while (position < text.length() && characters.indexOf(text.charAt(position)) >= 0) {
      position++;
    }
    return text.substring(start, position);
  }

  private long hex16() throws BadLineException {
    long value = 0;
    for (int i = 0; i < 16; i++) {
      int digit = position < text.length() ? Character.digit(text.charAt(position), 16) : -1;
      if (digit < 0) {
        throw new BadLineException(column(), here() + " in a block id", "32 hex digits in quotes");
      }
      value = value << 4 | digit;
      position++;
    }
    return value;
  }

  /** Says what is at the cursor without quoting it. */
  private String here() {
    return position >= text.length() ? "the end of the line" : "something else";
  }
}
