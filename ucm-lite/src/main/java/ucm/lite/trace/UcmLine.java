package ucm.lite.trace;

import java.nio.charset.StandardCharsets;

/**
 * A cursor over one line of a UCM log, with the little grammar its trace lines need. Columns are
 * bytes of the line, 1 for the first.
 */
final class UcmLine {
  private final String text;
  private int position;

  UcmLine(byte[] bytes, int length) {
    // A character for each byte.
    text = new String(bytes, 0, length, StandardCharsets.ISO_8859_1);
  }

  int column() {
    return position + 1;
  }

  boolean has(String word) {
    return text.contains(word);
  }

  /** Whether both are there, the second one after the first. */
  boolean has(String first, String second) {
    int at = text.indexOf(first);
    return at >= 0 && text.indexOf(second, at) >= 0;
  }

  /** Moves behind the next such word and the spaces after it, if there is one. */
  boolean moveBehind(String word) {
    int at = text.indexOf(word, position);
    if (at >= 0) {
      position = at + word.length();
      skipSpaces();
    }
    return at >= 0;
  }

  /** Consumes the word and spaces after it, when the line goes on with it. */
  boolean skip(String word) {
    boolean found = text.startsWith(word, position);
    if (found) {
      position += word.length();
      skipSpaces();
    }
    return found;
  }

  void expect(String word) throws BadLineException {
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
  String takeTo(String word, String missing) throws BadLineException {
    int to = text.indexOf(word, position);
    if (to < 0) {
      throw new BadLineException(column(), missing, "'" + word + " ...'");
    }
    byte[] taken = text.substring(position, to).getBytes(StandardCharsets.ISO_8859_1);
    position = to;
    return new String(taken, StandardCharsets.UTF_8);
  }

  /** Consumes an integer of at most 18 digits, with a sign if there is one. */
  long integer(String field) throws BadLineException {
    int column = column();
    String number = run("0123456789.-");
    if (!number.matches("-?[0-9]{1,18}")) {
      throw new BadLineException(column, field + " that is no integer", "an integer");
    }
    return Long.parseLong(number);
  }

  double decimal(String field) throws BadLineException {
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

  long hex16() throws BadLineException {
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
  String here() {
    return position >= text.length() ? "the end of the line" : "something else";
  }
}
