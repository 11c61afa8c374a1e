package ucm.lite.trace;

import java.math.BigInteger;
import java.util.HexFormat;
import java.util.List;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.json.JsonFactory;

/**
 * Parses one line of a Mooncake or Qwen-Bailian trace, or of a UCM trace as JSON, whose block ids are
 * strings of 32 hex digits. Fields may come in any order; unknown ones are skipped unread. The messages of the JSON library are not passed on, as they quote the text.
 */
final class JsonRecordParser {
  private static final int TIMESTAMP = 1;
  private static final int INPUT = 2;
  private static final int OUTPUT = 4;
  private static final int IDS = 8;

  private static final int CHAT = 16;
  private static final int ALL = TIMESTAMP | INPUT | OUTPUT | IDS;

  /** In the order of their bits. */
  private static final List<String> NEEDED =
      List.of("timestamp", "input_length", "output_length", "hash_ids");

  private static final int HEX_DIGITS = 32;
  private static final BigInteger MAX_ID = BigInteger.TWO.pow(64).subtract(BigInteger.ONE);
  private static final BigInteger MIN_ID = BigInteger.valueOf(Long.MIN_VALUE);

  private final JsonFactory factory = new JsonFactory();

  /** Whether the last ids were hexadecimal, so that a record without ids is read as its neighbours. */
  private boolean hexIds;

  private boolean sawIds;

  /** Fills the draft from the first bytes of an array. */
  void parse(byte[] line, int length, RecordDraft draft) throws BadLineException {
    draft.clear();
    try (JsonParser json = factory.createParser(ObjectReadContext.empty(), line, 0, length)) {
      json.nextToken();
      parseObject(json, draft);
      if (json.nextToken() != null) {
        throw new BadLineException(column(json), "more text after the object", "one object a line");
      }
    } catch (JacksonException e) {
      int column = e.getLocation() == null ? 0 : Math.max(0, e.getLocation().getColumnNr());
      throw new BadLineException(column, "text that is not valid JSON", "one JSON object a line");
    }
  }

  private void parseObject(JsonParser json, RecordDraft draft) throws BadLineException {
    int seen = 0;
    boolean chat = false;
    double timestamp = 0;
    for (String name = json.nextName(); name != null; name = json.nextName()) {
      JsonToken value = json.nextToken();
      int field = field(name);
      // The format's own name counts where a line has both.
      boolean alias = field < 0;
      if (alias && ((seen & -field) != 0 || value != JsonToken.VALUE_NUMBER_INT)) {
        field = 0;
      }
      switch (Math.abs(field)) {
        case TIMESTAMP -> timestamp = RecordDraft.timestamp(number(json, value), column(json));
        case INPUT -> draft.inputTokens = tokens(json, value, name);
        case OUTPUT -> draft.outputTokens = tokens(json, value, name);
        case IDS -> parseIds(json, value, draft);
        case CHAT -> {
          chat = true;
          boolean scalar = value == JsonToken.VALUE_NUMBER_INT || value == JsonToken.VALUE_STRING;
          if (name.equals("chat_id") && scalar) {
            draft.requestId = json.getString();
          }
          json.skipChildren();
        }
        default -> json.skipChildren();
      }
      seen |= Math.abs(field);
    }
    if ((seen & ALL) != ALL) {
      String missing = NEEDED.get(Integer.numberOfTrailingZeros(~seen));
      throw new BadLineException(
          0, "an object without " + missing, "timestamp, input_length, output_length and hash_ids");
    }
    draft.format = chat ? TraceFormat.QWEN_BAILIAN : idFormat(draft, timestamp);
    draft.timestampMillis = RecordDraft.millis(timestamp, draft.format, 0);
  }

  /** A field by its name; negative under a name that other tools use, and 0 when it is not needed. */
  private static int field(String name) {
    return switch (name) {
      case "timestamp" -> TIMESTAMP;
      case "input_length" -> INPUT;
      case "output_length" -> OUTPUT;
      case "hash_ids" -> IDS;
      case "chat_id", "parent_chat_id" -> CHAT;
      case "prompt_tokens",
          "input_tokens",
          "num_prompt_tokens",
          "num_prefill_tokens",
          "ContextTokens" ->
          -INPUT;
      case "completion_tokens",
          "output_tokens",
          "num_completion_tokens",
          "num_decode_tokens",
          "GeneratedTokens" ->
          -OUTPUT;
      default -> 0;
    };
  }

  /** Before any ids, a prompt without one at a fraction of a time is UCM's: it keeps full blocks. */
  private TraceFormat idFormat(RecordDraft draft, double timestamp) {
    boolean ucm =
        (draft.blockCount() > 0 || sawIds)
            ? hexIds
            : (draft.inputTokens > 0 && timestamp != Math.rint(timestamp));
    return ucm ? TraceFormat.UCM : TraceFormat.MOONCAKE;
  }

  private void parseIds(JsonParser json, JsonToken value, RecordDraft draft)
      throws BadLineException {
    if (value != JsonToken.START_ARRAY) {
      throw new BadLineException(
          column(json), "hash_ids as " + kind(value), "an array of integers");
    }
    draft.clearBlocks();
    boolean hex = false;
    for (JsonToken id = json.nextToken(); id != JsonToken.END_ARRAY; id = json.nextToken()) {
      boolean string = id == JsonToken.VALUE_STRING && isHexId(json.getString());
      if ((!string && id != JsonToken.VALUE_NUMBER_INT)
          || (draft.blockCount() > 0 && string != hex)) {
        throw new BadLineException(
            column(json), kind(id) + " in hash_ids", "integers, or strings of 32 hex digits");
      }
      hex = string;
      if (hex) {
        String digits = json.getString();
        draft.addBlock(
            HexFormat.fromHexDigitsToLong(digits, 0, HEX_DIGITS / 2),
            HexFormat.fromHexDigitsToLong(digits, HEX_DIGITS / 2, HEX_DIGITS),
            0);
      } else {
        draft.addBlock(0, id(json), 0);
      }
    }
    if (draft.blockCount() > 0) {
      hexIds = hex;
      sawIds = true;
    }
  }

  private static boolean isHexId(String text) {
    return text.length() == HEX_DIGITS && text.chars().allMatch(HexFormat::isHexDigit);
  }

  private static long id(JsonParser json) throws BadLineException {
    if (json.getNumberType() != JsonParser.NumberType.BIG_INTEGER) {
      return json.getLongValue();
    }
    BigInteger id = json.getBigIntegerValue();
    if (id.compareTo(MAX_ID) > 0 || id.compareTo(MIN_ID) < 0) {
      throw new BadLineException(
          column(json), "an integer of " + id.bitLength() + " bits in hash_ids", "at most 64 bits");
    }
    return id.longValue();
  }

  private static int tokens(JsonParser json, JsonToken value, String field)
      throws BadLineException {
    if (value != JsonToken.VALUE_NUMBER_INT) {
      throw new BadLineException(column(json), field + " as " + kind(value), "an integer");
    }
    if (json.getNumberType() == JsonParser.NumberType.BIG_INTEGER) {
      throw new BadLineException(
          column(json),
          field + " beyond 64 bits",
          "a number of tokens from 0 to " + Integer.MAX_VALUE);
    }
    return RecordDraft.tokens(field, json.getLongValue(), column(json));
  }

  /** The timestamp, also where it is written as a string. */
  private static double number(JsonParser json, JsonToken value) throws BadLineException {
    if (value == JsonToken.VALUE_NUMBER_INT || value == JsonToken.VALUE_NUMBER_FLOAT) {
      return json.getDoubleValue();
    }
    try {
      if (value == JsonToken.VALUE_STRING) {
        return Double.parseDouble(json.getString());
      }
    } catch (NumberFormatException _) {
      // Said below, without the text.
    }
    throw new BadLineException(column(json), "timestamp as " + kind(value), "a number");
  }

  private static int column(JsonParser json) {
    return Math.max(0, json.currentTokenLocation().getColumnNr());
  }

  private static String kind(JsonToken token) {
    return switch (token) {
      case START_OBJECT -> "an object";
      case START_ARRAY -> "an array";
      case VALUE_STRING -> "a string";
      case VALUE_NUMBER_FLOAT -> "a number with a fraction";
      case VALUE_NUMBER_INT -> "an integer";
      case VALUE_TRUE, VALUE_FALSE -> "a boolean";
      case VALUE_NULL -> "null";
      default -> "something else";
    };
  }
}
