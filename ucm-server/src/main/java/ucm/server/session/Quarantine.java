package ucm.server.session;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import ucm.server.staging.SlotPool;

/**
 * Slots that a client which is gone may still be copying from or to. They are free after a time in
 * which any copy has ended. Thread-safe.
 */
final class Quarantine {

  private static final long REST_NANOS = TimeUnit.SECONDS.toNanos(60);

  // Packed on purpose; these records are not compared.
  @SuppressWarnings("ArrayRecordComponent")
  private record Resting(int[] slots, long untilNanos) {}

  private final SlotPool pool;
  private final LongSupplier clock;
  private final Deque<Resting> resting = new ArrayDeque<>();

  Quarantine(SlotPool pool, LongSupplier clock) {
    this.pool = pool;
    this.clock = clock;
  }

  synchronized void add(int[] slots) {
    resting.add(new Resting(slots, clock.getAsLong() + REST_NANOS));
  }

  /** Frees what has rested long enough. */
  synchronized void sweep() {
    long now = clock.getAsLong();
    while (!resting.isEmpty() && now - resting.element().untilNanos >= 0) {
      pool.give(resting.remove().slots);
    }
  }

  /** How many slots rest. */
  synchronized int size() {
    return resting.stream().mapToInt(some -> some.slots.length).sum();
  }
}
