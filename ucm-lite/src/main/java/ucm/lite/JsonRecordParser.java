package ucm.lite;

import java.math.BigInteger;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.json.JsonFactory;

/**
 * Parses one line of a Mooncake or Qwen-Bailian trace. Fields may come in any order; unknown ones
 * are skipped unread. The messages of the JSON library are not passed on, as they quote the text.
 */
final class JsonRecordParser {
  private static final int TIMESTAMP = 1;
  private static final int INPUT = 2;
  private static final int OUTPUT = 4;
  private static final int IDS = 8;
  private static final int ALL = TIMESTAMP | INPUT | OUTPUT | IDS;
  private static final double MILLIS_PER_SECOND = 1000.0;
  private static final BigInteger MAX_ID = BigInteger.TWO.pow(64).subtract(BigInteger.ONE);
  private static final BigInteger MIN_ID = BigInteger.valueOf(Long.MIN_VALUE);

  private final JsonFactory factory = new JsonFactory();

  /** Fills the draft from the bytes {@code start} (inclusive) to {@code end} (exclusive). */
  void parse(byte[] line, int start, int end, RecordDraft draft) throws BadLineException {
    draft.clear();
    try (JsonParser json =
        factory.createParser(ObjectReadContext.empty(), line, start, end - start)) {
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

  private static void parseObject(JsonParser json, RecordDraft draft) throws BadLineException {
    int seen = 0;
    boolean chat = false;
    for (String name = json.nextName(); name != null; name = json.nextName()) {
      JsonToken value = json.nextToken();
      switch (name) {
        case "timestamp" -> {
          expectNumber(json, value, "timestamp");
          draft.timestampMillis = RecordDraft.timestamp(json.getDoubleValue(), column(json));
          seen |= TIMESTAMP;
        }
        case "input_length" -> {
          draft.inputTokens = tokens(json, value, "input_length");
          seen |= INPUT;
        }
        case "output_length" -> {
          draft.outputTokens = tokens(json, value, "output_length");
          seen |= OUTPUT;
        }
        case "hash_ids" -> {
          parseIds(json, value, draft);
          seen |= IDS;
        }
        case "chat_id" -> {
          chat = true;
          if (value == JsonToken.VALUE_NUMBER_INT || value == JsonToken.VALUE_STRING) {
            draft.requestId = json.getString();
          } else {
            json.skipChildren();
          }
        }
        case "parent_chat_id" -> {
          chat = true;
          json.skipChildren();
        }
        default -> json.skipChildren();
      }
    }
    if (seen != ALL) {
      throw new BadLineException(0, "an object without " + firstMissing(seen), required());
    }
    draft.format = chat ? TraceFormat.QWEN_BAILIAN : TraceFormat.MOONCAKE;
    if (chat) {
      draft.timestampMillis = RecordDraft.timestamp(draft.timestampMillis * MILLIS_PER_SECOND, 0);
    }
  }

  private static void parseIds(JsonParser json, JsonToken value, RecordDraft draft)
      throws BadLineException {
    if (value != JsonToken.START_ARRAY) {
      throw new BadLineException(
          column(json), "hash_ids as " + kind(value), "an array of integers");
    }
    draft.clearBlocks();
    for (JsonToken id = json.nextToken(); id != JsonToken.END_ARRAY; id = json.nextToken()) {
      if (id != JsonToken.VALUE_NUMBER_INT) {
        throw new BadLineException(column(json), kind(id) + " in hash_ids", "an integer");
      }
      draft.addBlock(0, id(json), 0);
    }
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

  private static void expectNumber(JsonParser json, JsonToken value, String field)
      throws BadLineException {
    if (value != JsonToken.VALUE_NUMBER_INT && value != JsonToken.VALUE_NUMBER_FLOAT) {
      throw new BadLineException(column(json), field + " as " + kind(value), "a number");
    }
  }

  private static int column(JsonParser json) {
    return Math.max(0, json.currentTokenLocation().getColumnNr());
  }

  private static String firstMissing(int seen) {
    if ((seen & TIMESTAMP) == 0) {
      return "timestamp";
    }
    if ((seen & INPUT) == 0) {
      return "input_length";
    }
    return (seen & OUTPUT) == 0 ? "output_length" : "hash_ids";
  }

  private static String required() {
    return "timestamp, input_length, output_length and hash_ids";
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
