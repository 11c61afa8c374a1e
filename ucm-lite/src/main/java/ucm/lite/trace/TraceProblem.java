package ucm.lite.trace;

/**
 * One thing wrong with a trace that did not stop the reading: a line was skipped, or was used although
 * something about it is odd.
 *
 * @param input the input as it was named to the reader, or {@code standard input}
 * @param line the line, 1 for the first; 0 when the whole input is meant
 * @param column the byte of the line, 1 for the first; 0 when not known
 * @param found what was there, without any text of the trace
 * @param expected what should have been there
 */
public record TraceProblem(String input, long line, int column, String found, String expected) {

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
