package ucm.testkit;

import java.time.Duration;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A clock that stands still until a test moves it; in nanoseconds, as {@link
 * ucm.api.StoreContext#nanoClock()} wants it. Thread-safe.
 */
public final class ManualClock implements LongSupplier {

  private record Alarm(long dueNanos, Runnable action) {}

  private final PriorityQueue<Alarm> alarms =
      new PriorityQueue<>(Comparator.comparingLong(Alarm::dueNanos));
  private long nowNanos;

  /** A clock at 0. */
  public ManualClock() {}

  @Override
  public synchronized long getAsLong() {
    return nowNanos;
  }

  /** Moves the clock forward, then runs on this thread what has become due, earliest first. */
  public void advance(Duration by) {
    synchronized (this) {
      nowNanos += by.toNanos();
    }
    for (Alarm due = nextDue(); due != null; due = nextDue()) {
      due.action().run();
    }
  }

  /** Runs an action on the thread that moves the clock to {@code after} from now, or beyond. */
  public synchronized void runAfter(Duration after, Runnable action) {
    alarms.add(new Alarm(nowNanos + after.toNanos(), action));
  }

  private synchronized @Nullable Alarm nextDue() {
    Alarm first = alarms.peek();
    return first != null && first.dueNanos() <= nowNanos ? alarms.poll() : null;
  }
}
