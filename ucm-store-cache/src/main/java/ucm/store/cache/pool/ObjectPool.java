package ucm.store.cache.pool;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.Places;

/**
 * Keeps what a task needs by its length, so that the next task need not allocate.
 *
 * <p>A taker owns the object until it is given back, and may forget to: the garbage
 * collector takes it then. It is wiped when it is given back, before the next taker can have it: a
 * stale reference finds nothing that could be taken for a shard or a slot.
 *
 * <p>Bounded: what is longer than {@value #MOST_LENGTH} is not kept, and of each power of two as
 * many as have {@value #KEPT_LENGTH} elements together, {@value #MOST_KEPT} at the most. That makes
 * 3.5 MiB of numbers. Thread-safe.
 */
public final class ObjectPool<T> {

  /** What arrays of numbers are overwritten with: no slot, and no shard, has this number. */
  static final int WIPED = Integer.MAX_VALUE;

  private static final int LEAST_LENGTH = 16;
  private static final int MOST_LENGTH = 1 << 16;
  private static final int KEPT_LENGTH = 1 << 17;
  private static final int MOST_KEPT = 64;

  private final IntFunction<T> maker;
  private final Consumer<T> wiper;
  private final ReentrantLock lock = new ReentrantLock();
  // Guarded by lock: for each power of two what is kept.
  private final List<ArrayDeque<T>> kept = new ArrayList<>();

  /**
   * An empty pool.
   *
   * @param maker makes something of a length, or that can grow to it
   * @param wiper makes what is given back useless through stale references
   */
  ObjectPool(IntFunction<T> maker, Consumer<T> wiper) {
    this.maker = maker;
    this.wiper = wiper;
    for (int length = LEAST_LENGTH; length <= MOST_LENGTH; length *= 2) {
      kept.add(new ArrayDeque<>());
    }
  }

  /** Arrays of numbers; what is in one that is taken is not defined. */
  public static ObjectPool<int[]> ofNumbers() {
    return new ObjectPool<>(int[]::new, array -> Arrays.fill(array, WIPED));
  }

  /** Places of shards, without any when they are taken. */
  public static ObjectPool<Places> ofPlaces(BlockLayout layout) {
    return new ObjectPool<>(_ -> new Places(layout), Places::clear);
  }

  /** Takes something of at least a length. */
  public T take(int length) {
    if (length > MOST_LENGTH) {
      return maker.apply(length);
    }
    int rounded = rounded(length);
    T pooled = poll(rounded);
    return pooled == null ? maker.apply(rounded) : pooled;
  }

  private @Nullable T poll(int rounded) {
    lock.lock();
    try {
      return sameLength(rounded).poll();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Gives back what was taken, and what the caller does not look at any more.
   *
   * @param length with which it was taken, or one of the same power of two
   * @throws IllegalStateException when it was given back before and not taken since
   */
  public void giveBack(T pooled, int length) {
    wiper.accept(pooled);
    if (length > MOST_LENGTH) {
      return;
    }
    int rounded = rounded(length);
    lock.lock();
    try {
      ArrayDeque<T> others = sameLength(rounded);
      if (others.contains(pooled)) {
        throw new IllegalStateException(
            "a pooled object of length " + length + " was given back twice");
      }
      if (others.size() < Math.min(MOST_KEPT, KEPT_LENGTH / rounded)) {
        // The last one first: it is the one in the processor's cache.
        others.push(pooled);
      }
    } finally {
      lock.unlock();
    }
  }

  /** How many are kept. */
  public int count() {
    lock.lock();
    try {
      return kept.stream().mapToInt(ArrayDeque::size).sum();
    } finally {
      lock.unlock();
    }
  }

  private ArrayDeque<T> sameLength(int rounded) {
    return kept.get(Integer.numberOfTrailingZeros(rounded / LEAST_LENGTH));
  }

  /** The power of two that a length is rounded up to. */
  private static int rounded(int length) {
    return length <= LEAST_LENGTH ? LEAST_LENGTH : Integer.highestOneBit(length - 1) << 1;
  }
}
