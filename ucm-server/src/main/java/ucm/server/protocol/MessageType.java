package ucm.server.protocol;

/** Numbers of the messages of version 1; see {@code docs/protocol.md}. */
public final class MessageType {

  public static final int HELLO = 1;
  public static final int WELCOME = 2;
  public static final int REFUSED = 3;
  public static final int OPEN_SCHEDULER = 4;
  public static final int OPENED_SCHEDULER = 5;
  public static final int OPEN_WORKER = 6;
  public static final int OPENED_WORKER = 7;
  public static final int LOOKUP = 8;
  public static final int FOUND = 9;
  public static final int PLAN = 10;
  public static final int PLANNED = 11;
  public static final int LOADED = 12;
  public static final int SAVED = 13;
  public static final int ERRORS_SEEN = 14;
  public static final int RESET = 15;
  public static final int DONE = 16;
  public static final int STATUS = 17;
  public static final int STATUS_TEXT = 18;
  public static final int PING = 19;
  public static final int COPY = 20;
  public static final int COPIED = 21;
  public static final int OPEN_NAMED = 22;
  public static final int EXISTS = 23;
  public static final int COUNT = 24;
  public static final int LEASE = 25;
  public static final int LEASED = 26;
  public static final int RESERVE = 27;
  public static final int RESERVED = 28;
  public static final int COMMIT = 29;
  public static final int CONFIGURATION = 30;
  public static final int SETTINGS = 31;
  public static final int IDENTIFY = 32;
  public static final int FIND = 33;
  public static final int FOUND_WHICH = 34;
  public static final int OPEN_REGION = 35;
  public static final int OPENED_REGION = 36;
  public static final int STORE_CHUNKS = 37;
  public static final int LOAD_CHUNKS = 38;
  public static final int MOVED = 39;
  public static final int GROUPS = 40;
  public static final int STAGE = 41;
  public static final int BORROW = 42;
  public static final int LENDING = 43;

  // Of operators.
  public static final int RELOAD = 64;
  public static final int DRAIN = 65;
  public static final int CLEAR = 66;
  public static final int LOG_LEVEL = 67;
  public static final int STOP = 68;
  public static final int PROGRESS = 69;
  public static final int REPORT = 70;

  private MessageType() {}
}
