package ucm.lite.trace;

import java.nio.charset.StandardCharsets;

/**
 * A cursor over one line of a UCM log, with the little grammar its trace lines need. Columns are
 * bytes of the line, 1 for the first.
 */
final class UcmLine {
  private final byte[] bytes;
  private final int lineStart;
  private final int end;
  private int position;

  UcmLine(byte[] bytes, int lineStart, int end) {
    this.bytes = bytes;
    this.lineStart = lineStart;
    this.end = end;
    this.position = lineStart;
  }

  int column() {
    return position - lineStart + 1;
  }

  void moveTo(int newPosition) {
    position = newPosition;
  }

  int find(byte[] word) {
    return find(bytes, position, end, word);
  }

  /** Returns where the word first starts between the two positions, or -1. */
  static int find(byte[] bytes, int from, int to, byte[] word) {
    byte first = word[0];
    for (int i = from, last = to - word.length; i <= last; i++) {
      if (bytes[i] == first && matches(bytes, i, word)) {
        return i;
      }
    }
    return -1;
  }

  private static boolean matches(byte[] bytes, int at, byte[] word) {
    for (int i = 1; i < word.length; i++) {
      if (bytes[at + i] != word[i]) {
        return false;
      }
    }
    return true;
  }

  /** Consumes the word and spaces after it, when the line goes on with it. */
  boolean skip(byte[] word) {
    if (end - position < word.length
        || bytes[position] != word[0]
        || !matches(bytes, position, word)) {
      return false;
    }
    position += word.length;
    skipSpaces();
    return true;
  }

  void expect(byte[] word) throws BadLineException {
    if (!skip(word)) {
      throw new BadLineException(column(), here(), "'" + text(word) + "'");
    }
  }

  void skipSpaces() {
    while (position < end && bytes[position] == ' ') {
      position++;
    }
  }

  /** Consumes one byte, when it is next. */
  boolean skip(char c) {
    if (position < end && bytes[position] == c) {
      position++;
      return true;
    }
    return false;
  }

  /** Consumes the text up to a position and returns it. */
  String takeTo(int to) {
    String taken = new String(bytes, position, to - position, StandardCharsets.UTF_8);
    position = to;
    return taken;
  }

  /** Consumes an integer of at most 18 digits, with a sign if there is one. */
  long integer(String field) throws BadLineException {
    int start = position;
    boolean negative = skip('-');
    int digits = position;
    long value = 0;
    while (position < end && isDigit(bytes[position]) && position - digits < 18) {
      value = 10 * value + (bytes[position++] - '0');
    }
    if (position == digits || (position < end && "0123456789.".indexOf(bytes[position]) >= 0)) {
      position = start;
      throw new BadLineException(column(), field + " that is no integer", "an integer");
    }
    return negative ? -value : value;
  }

  /** Consumes a decimal number. */
  double decimal(String field) throws BadLineException {
    int start = position;
    while (position < end && "0123456789.eE+-".indexOf(bytes[position]) >= 0) {
      position++;
    }
    String number = new String(bytes, start, position - start, StandardCharsets.US_ASCII);
    try {
      return Double.parseDouble(number);
    } catch (NumberFormatException _) {
      position = start;
      throw new BadLineException(column(), field + " that is no number", "a number");
    }
  }

  /** Consumes 16 hex digits. */
  long hex16() throws BadLineException {
    long value = 0;
    for (int i = 0; i < 16; i++) {
      int digit = position < end ? Character.digit(bytes[position], 16) : -1;
      if (digit < 0) {
        throw new BadLineException(column(), here() + " in a block id", "32 hex digits in quotes");
      }
      value = value << 4 | digit;
      position++;
    }
    return value;
  }

  /** Says what is at the cursor without quoting it. */
  String here() {
    return position >= end ? "the end of the line" : "something else";
  }

  private static boolean isDigit(byte b) {
    return b >= '0' && b <= '9';
  }

  private static String text(byte[] word) {
    return new String(word, StandardCharsets.US_ASCII);
  }
}
