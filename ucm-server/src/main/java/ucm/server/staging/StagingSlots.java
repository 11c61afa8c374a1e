package ucm.server.staging;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Which slots are free. All segments of an engine have the same slots in use, as the ranks hold parts
 * of the same blocks. A quarter is kept for saves: a look-up does not take it. Slots that a client
 * which is gone may still be copying rest for a time in which any copy has ended. Thread-safe.
 */
public final class StagingSlots {

  /** In this time any copy has ended of a process that is not stopped meanwhile. */
  public static final long REST_NANOS = TimeUnit.SECONDS.toNanos(60);

  private static final int PART_FOR_SAVES = 4;

  // Packed on purpose; these records are not compared.
  @SuppressWarnings("ArrayRecordComponent")
  private record Resting(int[] slots, long untilNanos) {}

  private final LongSupplier clock;
  private final Consumer<int[]> freed;
  // Guarded by this.
  private final int[] free;
  private final Deque<Resting> resting = new ArrayDeque<>();
  private int count;

  /**
   * All are free.
   *
   * @param clock monotonic nanoseconds
   * @param freed is told of slots before they have another use
   */
  public StagingSlots(int slots, LongSupplier clock, Consumer<int[]> freed) {
    this.clock = clock;
    this.freed = freed;
    free = new int[slots];
    for (int i = 0; i < slots; i++) {
      free[i] = slots - 1 - i;
    }
    count = slots;
  }

  public int size() {
    return free.length;
  }

  public synchronized int free() {
    return count;
  }

  public synchronized int resting() {
    return resting.stream().mapToInt(some -> some.slots.length).sum();
  }

  /**
   * Takes slots for blocks to be held.
   *
   * @return as many as are to be had, at most {@code wanted}
   */
  public synchronized int[] takeForLoads(int wanted) {
    return take(Math.min(wanted, freeForLoads()));
  }

  /** How many slots are to be had for blocks to be held. */
  public synchronized int freeForLoads() {
    return Math.max(0, count - free.length / PART_FOR_SAVES);
  }

  /**
   * Takes slots for blocks to be saved.
   *
   * @return as many as are to be had, at most {@code wanted}
   */
  public synchronized int[] takeForSaves(int wanted) {
    return take(Math.min(wanted, count));
  }

  private int[] take(int wanted) {
    int taken = Math.max(0, wanted);
    count -= taken;
    return Arrays.copyOfRange(free, count, count + taken);
  }

  public void give(int[] slots) {
    freed.accept(slots);
    free(slots);
  }

  private synchronized void free(int[] slots) {
    System.arraycopy(slots, 0, free, count, slots.length);
    count += slots.length;
  }

  /** Gives slots back that a client which is gone may still be copying from or to. */
  public synchronized void giveLater(int[] slots) {
    resting.add(new Resting(slots, clock.getAsLong() + REST_NANOS));
  }

  /**
   * Frees what has rested long enough.
   *
   * @param isMarked says of which a worker that is still there may be copying to them: these rest as long again
   */
  public void sweep(IntPredicate isMarked) {
    for (int[] slots = rested(); slots != null; slots = rested()) {
      if (IntStream.of(slots).anyMatch(isMarked)) {
        giveLater(slots);
      } else {
        give(slots);
      }
    }
  }

  private synchronized int @Nullable [] rested() {
    Resting first = resting.peek();
    boolean isOver = first != null && clock.getAsLong() - first.untilNanos >= 0;
    return isOver ? resting.remove().slots : null;
  }
}
