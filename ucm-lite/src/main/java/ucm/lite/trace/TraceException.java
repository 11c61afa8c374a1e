package ucm.lite.trace;

/**
 * A trace could not be read, or not any further: the input is missing, damaged, no trace at all, of
 * two formats, or has too many bad lines.
 *
 * <p>The message is complete and made for people: it names the input, what was found and what was
 * expected. It never holds text of the trace, so that prompts do not reach a terminal or a log.
 */
public final class TraceException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public TraceException(String message) {
    super(message);
  }

  public TraceException(String message, Throwable cause) {
    super(message, cause);
  }
}
