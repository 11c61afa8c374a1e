package ucm.cli.output;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The user asked for something that cannot be: the message says what, and what would do. */
public final class UsageException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public UsageException(String message) {
    super(message);
  }

  public static void when(boolean wrong, String message) {
    if (wrong) {
      throw new UsageException(message);
    }
  }

  /** Refuses a value of an option that is too small; null is one that was not given. */
  public static void atLeast(String option, @Nullable Number value, long least) {
    if (value != null && !(value.doubleValue() >= least)) {
      throw new UsageException("%s is %s or more; found %s".formatted(option, least, value));
    }
  }

  /** Refuses a value of an option that is out of its range; null is one that was not given. */
  public static void within(String option, @Nullable Number value, long least, long most) {
    if (value != null && !(value.doubleValue() >= least && value.doubleValue() <= most)) {
      throw new UsageException("%s is %s to %s; found %s".formatted(option, least, most, value));
    }
  }

  /** What a value's own check refuses is wrong usage. */
  public static <T> T accepted(Supplier<T> made) {
    try {
      return made.get();
    } catch (IllegalArgumentException e) {
      throw new UsageException(String.valueOf(e.getMessage()));
    }
  }
}
