package ucm.lite.trace;

/** A line is no usable record. Says why without any text of the line. */
final class BadLineException extends Exception {
  private static final long serialVersionUID = 1L;

  private final int column;
  private final String found;
  private final String expected;

  /** Has no stack trace: it is a result, and may come once a line. Column 0 is not known. */
  BadLineException(int column, String found, String expected) {
    super(found, null, false, false);
    this.column = column;
    this.found = found;
    this.expected = expected;
  }

  TraceProblem at(String input, long line) {
    return new TraceProblem(input, line, column, found, expected);
  }
}
