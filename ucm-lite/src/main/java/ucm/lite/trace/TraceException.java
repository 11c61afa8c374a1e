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

  public TraceException(String message) {
    this(message, List.of());
  }

  public TraceException(String message, Throwable cause) {
    super(message, cause);
    this.problems = List.of();
  }

  /** An exception with the lines that led to it, in the order read. */
  public TraceException(String message, List<TraceProblem> problems) {
    super(message);
    this.problems = List.copyOf(problems);
  }

  /**
   * The problems collected before reading stopped, in the order read, at most as many as the reader
   * keeps.
   */
  public List<TraceProblem> problems() {
    return problems;
  }
}
