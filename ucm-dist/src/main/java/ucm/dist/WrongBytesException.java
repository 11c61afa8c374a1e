package ucm.dist;

/** A loaded block is not what was dumped: the one unforgivable fault. */
final class WrongBytesException extends RuntimeException {

  private static final long serialVersionUID = 1L;

  WrongBytesException(String message) {
    super(message);
  }
}
