package ucm.lite.trace;

/**
 * One thing wrong with a trace that did not stop the reading.
 *
 * @param severity whether the line was skipped or used
 * @param input the input as it was named to the reader, or {@code standard input}
 * @param line the line, 1 for the first; 0 when the whole input is meant
 * @param column the byte of the line, 1 for the first; 0 when not known
 * @param found what was there, without any text of the trace
 * @param expected what should have been there
 */
public record TraceProblem(
    Severity severity, String input, long line, int column, String found, String expected) {

  /** What became of the line. */
  public enum Severity {
    /** The line was skipped: it is in no statistic. */
    BAD_LINE,
    /** The line was used, but something about it is odd. */
    WARNING
  }

  /** One line: {@code input:line:column: found ..., expected ...}, without the parts not known. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(input);
    if (line > 0) {
      text.append(':').append(line);
      if (column > 0) {
        text.append(':').append(column);
      }
    }
    return text.append(": found ").append(found).append(", expected ").append(expected).toString();
  }

  /** For example {@code 1 line} or {@code 2 lines}. */
  static String plural(long count, String noun) {
    return count + " " + noun + (count == 1 ? "" : "s");
  }
}
