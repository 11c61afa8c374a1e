package ucm.cli.output;

/** The user asked for something that cannot be: the message says what, and what would do. */
public final class UsageException extends RuntimeException {

  private static final long serialVersionUID = 1L;

  public UsageException(String message) {
    super(message);
  }
}
