package ucm.server.protocol;

/** A message cannot be understood or is not admitted. */
public final class ProtocolException extends Exception {

  private static final long serialVersionUID = 1L;

  /** Token, user or magic number are wrong. */
  public static final int NOT_ADMITTED = 1;

  /** There is no version that both sides speak. */
  public static final int NO_COMMON_VERSION = 2;

  /** The type of the message is unknown. */
  public static final int UNKNOWN_TYPE = 3;

  /** The message contradicts itself or what came before it. */
  public static final int BAD_MESSAGE = 4;

  /** The engine or its configuration is refused. */
  public static final int REFUSED_ENGINE = 5;

  /** The daemon is ending. */
  public static final int ENDING = 6;

  /** The engine cannot be served now, and may ask again. */
  public static final int NOT_NOW = 7;

  private final int code;

  public ProtocolException(int code, String message) {
    super(message);
    this.code = code;
  }

  /** The message contradicts itself or what came before it. */
  public static ProtocolException bad(String message) {
    return new ProtocolException(BAD_MESSAGE, message);
  }

  /** What REFUSED says. */
  public int code() {
    return code;
  }

  /** Whether the connection goes on after it. */
  public boolean isHarmless() {
    return code == UNKNOWN_TYPE || code == REFUSED_ENGINE || code == NOT_NOW;
  }
}
