package ucm.lite.trace;

/** Numbers in messages. */
final class Plural {
  private Plural() {}

  /** Returns for example {@code 1 line} or {@code 2 lines}. */
  static String of(long count, String noun) {
    return count + " " + noun + (count == 1 ? "" : "s");
  }
}
