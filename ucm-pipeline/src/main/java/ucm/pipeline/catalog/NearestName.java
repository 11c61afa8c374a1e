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
    int best = 1 + Math.max(2, typed.length() / 3);
    String lower = typed.toLowerCase(Locale.ROOT);
    for (String name : typed.length() > MAX_LENGTH ? new String[0] : known.toArray(new String[0])) {
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
    int[][] d = new int[a.length() + 1][b.length() + 1];
    for (int i = 0; i <= a.length(); i++) {
      for (int j = 0; j <= b.length(); j++) {
        if (i == 0 || j == 0) {
          d[i][j] = i + j;
          continue;
        }
        int replaced = d[i - 1][j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        d[i][j] = Math.min(replaced, 1 + Math.min(d[i - 1][j], d[i][j - 1]));
        if (i > 1
            && j > 1
            && a.charAt(i - 1) == b.charAt(j - 2)
            && a.charAt(i - 2) == b.charAt(j - 1)) {
          d[i][j] = Math.min(d[i][j], d[i - 2][j - 2] + 1);
        }
      }
    }
    return d[a.length()][b.length()];
  }
}
