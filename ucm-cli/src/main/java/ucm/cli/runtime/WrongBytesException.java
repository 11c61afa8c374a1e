package ucm.cli.runtime;

/** A loaded block is not what was dumped: the one unforgivable fault. */
public final class WrongBytesException extends RuntimeException {

  private static final long serialVersionUID = 1L;

  public WrongBytesException(String message) {
    super(message);
  }
}
