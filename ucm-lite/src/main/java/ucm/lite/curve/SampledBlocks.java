package ucm.lite.curve;

import com.carrotsearch.hppc.IntStack;
import com.carrotsearch.hppc.LongIntHashMap;
import java.util.PriorityQueue;

/**
 * The blocks in a sample: those whose hash is below a threshold. Each has a small number, used
 * again after it left the sample.
 *
 * <p>A block is known by 64 hash bits of its id; two of n blocks share them with a chance of n^2 /
 * 2^65. The upper {@value #THRESHOLD_BITS} bits decide about the sample. When the sample is full,
 * the block with the largest hash leaves it and its hash becomes the threshold.
 */
public final class SampledBlocks {
  public static final int NONE = -1;
  private static final int THRESHOLD_BITS = 24;
  private static final double HASHES = 1 << THRESHOLD_BITS;

  private final LongIntHashMap numbers = new LongIntHashMap();
  private final int maxBlocks;
  private final IntStack free = new IntStack();

  /** The hashes of the sample, largest first; empty where blocks never leave. */
  private final PriorityQueue<Long> largest =
      new PriorityQueue<>((a, b) -> Long.compareUnsigned(b, a));

  private long threshold;
  private int used;

  public SampledBlocks(Sampling sampling) {
    maxBlocks = sampling.maxBlocks();
    threshold = Math.max(1, Math.round(sampling.rate() * HASHES));
  }

  public double rate() {
    return threshold / HASHES;
  }

  public int size() {
    return numbers.size();
  }

  public boolean samples(long hash) {
    return hash >>> (Long.SIZE - THRESHOLD_BITS) < threshold;
  }

  /** The number of a block, or {@link #NONE} when it was not added or left the sample. */
  public int number(long hash) {
    return numbers.getOrDefault(hash, NONE);
  }

  /** All numbers given are below. */
  int numbersEnd() {
    return used;
  }

  public int add(long hash) {
    int number = free.isEmpty() ? used++ : free.pop();
    numbers.put(hash, number);
    if (maxBlocks < Integer.MAX_VALUE) {
      largest.add(hash);
    }
    return number;
  }

  public boolean over() {
    return size() > maxBlocks || (!largest.isEmpty() && !samples(largest.element()));
  }

  /** Takes the block with the largest hash out of the sample and returns the number it had. */
  public int removeLargest() {
    long hash = largest.remove();
    if (samples(hash)) {
      threshold = Math.max(1, hash >>> (Long.SIZE - THRESHOLD_BITS));
    }
    int number = numbers.remove(hash);
    free.push(number);
    return number;
  }
}
