package ucm.bench.measure;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import org.jspecify.annotations.Nullable;

/**
 * Says when the JVM has compiled what a benchmark's rounds run. Its compiler takes the processors that
 * are measured.
 */
public final class CompilerMonitor {

  /** Rounds at the most for which to wait until it is done. */
  static final int MOST_ROUNDS = 24;

  private static final int CALM_ROUNDS = 3;
  // Of the time of a round.
  private static final double CALM_SHARE = 0.05;

  // Null where nothing is ever compiled.
  private final @Nullable CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
  private long startNanos;
  private long startMillis;
  private int calmRounds;

  /** A round begins, and the one before it ends. */
  public void roundBegins() {
    long now = System.nanoTime();
    long millis = compiler == null ? 0 : compiler.getTotalCompilationTime();
    if (startNanos != 0) {
      boolean isCalm = (millis - startMillis) * 1e6 <= CALM_SHARE * (now - startNanos);
      calmRounds = isCalm ? calmRounds + 1 : 0;
    }
    startNanos = now;
    startMillis = millis;
  }

  /** Whether hardly anything was compiled in the last rounds. */
  public boolean isDone() {
    return calmRounds >= CALM_ROUNDS;
  }
}
