package ucm.store.posix;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/** Waits for what another thread or process brings about and tells nobody. */
final class Waiting {

  private static final long LOOK_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

  /** What is waited for. */
  @FunctionalInterface
  interface Condition {
    boolean holds() throws Exception;
  }

  private Waiting() {}

  /** Waits until a condition holds; fails, with what all threads do, when it takes very long. */
  static void until(String what, Condition condition) throws Exception {
    long end = System.nanoTime() + TestStores.PATIENCE.toNanos();
    while (!condition.holds()) {
      if (System.nanoTime() - end > 0) {
        throw new AssertionError(
            "not within " + TestStores.PATIENCE + ": " + what + "\n" + stacks());
      }
      LockSupport.parkNanos(LOOK_AGAIN_NANOS);
    }
  }

  /** The threads whose names begin so. */
  static List<Thread> threads(String prefix) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith(prefix))
        .toList();
  }

  /** Where the threads of stores and tests are. */
  static String stacks() {
    return Thread.getAllStackTraces().entrySet().stream()
        .filter(entry -> entry.getKey().getName().matches("(ucm|test)-.*"))
        .map(
            entry ->
                entry.getKey()
                    + " "
                    + entry.getKey().getState()
                    + List.of(entry.getValue()).stream()
                        .limit(14)
                        .map(frame -> "\n    " + frame)
                        .collect(Collectors.joining()))
        .collect(Collectors.joining("\n"));
  }
}
