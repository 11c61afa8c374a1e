package ucm.bench.serve;

import java.util.Locale;

/**
 * Requests of one length, some at once.
 *
 * @param tokens of each prompt
 * @param concurrency requests at once
 */
public record ServeLoad(int tokens, int concurrency) {

  @Override
  public String toString() {
    return String.format(Locale.ROOT, "%,d x %,d", tokens, concurrency);
  }
}
