package ucm.bench.simulator;

/** A block that was loaded holds other bytes than were saved under its name. */
public final class WrongKvBytesException extends RuntimeException {

  private static final long serialVersionUID = 1L;

  WrongKvBytesException(String message) {
    super(message);
  }
}
