package ucm.pipeline.config;

import org.jspecify.annotations.Nullable;

/** Messages for people: what was found may be a whole file, and is shown in part. */
public final class LongText {

  private static final int MOST = 1200;
  private static final int KEPT = 500;

  private LongText() {}

  /** The text, or its begin and its end when it is long. */
  public static String cut(@Nullable String found) {
    String text = String.valueOf(found);
    int end = text.length() - KEPT;
    return text.length() <= MOST
        ? text
        : "%s ... (%s characters left out) ... %s"
            .formatted(text.substring(0, KEPT), end - KEPT, text.substring(end));
  }
}
