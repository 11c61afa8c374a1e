package ucm.lite.trace;

import java.util.List;

/**
 * A trace could not be read, or not any further: the input is missing, damaged, no trace at all, of
 * two formats, or has too many bad lines.
 *
 * <p>The message is complete and made for people: it names the input, what was found and what was
 * expected. It never holds text of the trace, so that prompts do not reach a terminal or a log.
 */
public final class TraceException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient List<TraceProblem> problems;

  /**
   * Creates the exception.
   *
   * @param message what was asked, what was found, where, and what to do next
   */
  public TraceException(String message) {
    this(message, List.of());
  }

  /**
   * Creates the exception.
   *
   * @param message what was asked, what was found, where, and what to do next
   * @param cause what the system reported
   */
  public TraceException(String message, Throwable cause) {
    super(message, cause);
    this.problems = List.of();
  }

  /**
   * Creates the exception.
   *
   * @param message what was asked, what was found, where, and what to do next
   * @param problems the lines that led to it, in the order read; copied
   */
  public TraceException(String message, List<TraceProblem> problems) {
    super(message);
    this.problems = List.copyOf(problems);
  }

  /**
   * Returns the problems collected before reading stopped.
   *
   * @return the problems in the order read, at most as many as the reader keeps; may be empty
   */
  public List<TraceProblem> problems() {
    return problems;
  }
}
