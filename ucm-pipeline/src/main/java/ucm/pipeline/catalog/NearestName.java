package ucm.pipeline.catalog;

import java.util.Collection;
import java.util.Locale;

/** Finds the known name that a mistyped one was probably meant to be. */
public final class NearestName {

  /** No name is this long; comparing a longer text would only take time. */
  private static final int MAX_LENGTH = 200;

  private NearestName() {}

  /**
   * The name with the smallest edit distance, the first of several; upper and lower case do not
   * count.
   *
   * @return the name, or the empty text when none is near enough to be worth naming
   */
  public static String among(Collection<String> known, String typed) {
    String nearest = "";
    if (typed.length() > MAX_LENGTH) {
      return nearest;
    }
    int best = 1 + Math.max(2, typed.length() / 3);
    String lower = typed.toLowerCase(Locale.ROOT);
    for (String name : known) {
      int distance = distance(lower, name.toLowerCase(Locale.ROOT));
      if (distance < best) {
        best = distance;
        nearest = name;
      }
    }
    return nearest;
  }

  /** Optimal string alignment: insert, delete, replace a letter, or swap two neighbours. */
  private static int distance(String a, String b) {
    int[] beforeLast = new int[b.length() + 1];
    int[] last = new int[b.length() + 1];
    int[] row = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      last[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int replace = last[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        row[j] = Math.min(replace, 1 + Math.min(last[j], row[j - 1]));
        if (i > 1
            && j > 1
            && a.charAt(i - 1) == b.charAt(j - 2)
            && a.charAt(i - 2) == b.charAt(j - 1)) {
          row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
        }
      }
      int[] free = beforeLast;
      beforeLast = last;
      last = row;
      row = free;
    }
    return last[b.length()];
  }
}
