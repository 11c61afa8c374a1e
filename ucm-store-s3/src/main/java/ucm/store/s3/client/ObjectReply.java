package ucm.store.s3.client;

import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * How a request ended.
 *
 * @param end whether a server answered, and if not, why
 * @param status of the answer; 0 without one
 * @param code the server's or the transport's word for what is wrong; empty when all is well
 * @param headers by their names in lower case
 */
public record ObjectReply(End end, int status, String code, Map<String, String> headers) {

  /** How a request can end. */
  public enum End {
    /** A server answered, well or not. */
    ANSWERED,
    /** The connection could not be made, or broke. */
    BROKEN,
    /** There was no first byte, or the time was over. */
    LATE,
    /** It was not sent, as no endpoint has answered lately. */
    REFUSED,
    /** The client was closed. */
    ABORTED
  }

  static final int OK = 200;
  static final int PARTIAL = 206;
  static final int NOT_FOUND = 404;
  static final int PRECONDITION_FAILED = 412;
  static final int INTERNAL_ERROR = 500;
  static final int NOT_IMPLEMENTED = 501;
  static final int SLOW_DOWN = 503;
  private static final int FIRST_OTHER = 300;

  /** One that no server answered. */
  static ObjectReply none(End end, String why) {
    return new ObjectReply(end, 0, why, Map.of());
  }

  /** Whether a server did what was asked. */
  public boolean ok() {
    return end == End.ANSWERED && status >= OK && status < FIRST_OTHER;
  }

  /** Whether a server answered that there is no such object. */
  public boolean isMissing() {
    return status == NOT_FOUND;
  }

  /** Whether an object was there already that was to be stored under the condition that it is not. */
  public boolean isPresent() {
    return status == PRECONDITION_FAILED;
  }

  /** Whether a server asked for fewer requests. */
  public boolean isSlowDown() {
    return status == SLOW_DOWN;
  }

  /** Whether a server does not know what was asked. */
  public boolean isNotImplemented() {
    return status == NOT_IMPLEMENTED;
  }

  /** Whether this speaks against the endpoint rather than the request. */
  boolean isFault() {
    boolean answered = end == End.ANSWERED && (status < INTERNAL_ERROR || isNotImplemented());
    return !answered && !isSlowDown() && end != End.REFUSED && end != End.ABORTED;
  }

  /** A header; empty when there is none. */
  public String header(String name) {
    return headers.getOrDefault(name.toLowerCase(Locale.ROOT), "");
  }

  /** The size of the object, of which an answer has some bytes; -1 when it does not say. */
  public long objectSize() {
    String range = header("content-range");
    String size = range.isEmpty() ? header("content-length") : range;
    try {
      return Long.parseLong(size.substring(size.lastIndexOf('/') + 1));
    } catch (NumberFormatException e) {
      return -1;
    }
  }

  /** The time that a header has. */
  public Optional<Instant> time(String name) {
    try {
      return Optional.of(
          ZonedDateTime.parse(header(name), DateTimeFormatter.RFC_1123_DATE_TIME).toInstant());
    } catch (DateTimeParseException e) {
      return Optional.empty();
    }
  }

  /** How long ago the object was stored, by the server's clock alone; nothing when it does not say. */
  public Duration age() {
    Instant now = time("date").orElse(Instant.EPOCH);
    Duration age = Duration.between(time("last-modified").orElse(now), now);
    // Some servers note the date of answers once a second.
    return age.isNegative() ? Duration.ZERO : age;
  }

  /** What came of it, for people; has nothing of the server's text but its code. */
  public String describe() {
    String what =
        switch (end) {
          case ANSWERED -> "answer " + status;
          case BROKEN -> "no answer";
          case LATE -> "no answer in time";
          case REFUSED -> "not sent";
          case ABORTED -> "aborted";
        };
    return code.isEmpty() ? what : what + " (" + code + ")";
  }
}
