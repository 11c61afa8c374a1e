package ucm.dist;

/** The user asked for something that cannot be: the message says what, and what would do. */
final class UsageException extends RuntimeException {

  private static final long serialVersionUID = 1L;

  UsageException(String message) {
    super(message);
  }
}
