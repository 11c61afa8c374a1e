package ucm.lite.curve;

import com.carrotsearch.hppc.LongIntHashMap;
import java.util.Arrays;

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
  private long threshold;

  /** The hashes of the sample as a binary heap, largest first, compared by their upper bits. */
  private long[] heap = new long[64];

  private int[] free = new int[64];
  private int freeCount;
  private int used;

  public SampledBlocks(Sampling sampling) {
    maxBlocks = sampling.maxBlocks();
    threshold = Math.max(1, Math.round(sampling.rate() * HASHES));
  }

  /** The share of blocks in the sample. */
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
    int number = freeCount > 0 ? free[--freeCount] : used++;
    int size = numbers.size();
    numbers.put(hash, number);
    if (maxBlocks < Integer.MAX_VALUE) {
      if (size == heap.length) {
        heap = Arrays.copyOf(heap, 2 * size);
      }
      up(size, hash);
    }
    return number;
  }

  /** Whether a block has to leave. */
  public boolean over() {
    int size = numbers.size();
    return size > maxBlocks || (maxBlocks < Integer.MAX_VALUE && size > 0 && !samples(heap[0]));
  }

  /** Takes the block with the largest hash out of the sample and returns the number it had. */
  public int removeLargest() {
    long hash = heap[0];
    if (samples(hash)) {
      threshold = Math.max(1, hash >>> (Long.SIZE - THRESHOLD_BITS));
    }
    int number = numbers.remove(hash);
    int size = numbers.size();
    down(heap[size], size);
    if (freeCount == free.length) {
      free = Arrays.copyOf(free, 2 * freeCount);
    }
    free[freeCount++] = number;
    return number;
  }

  private void up(int from, long hash) {
    int at = from;
    while (at > 0 && Long.compareUnsigned(heap[(at - 1) / 2], hash) < 0) {
      heap[at] = heap[(at - 1) / 2];
      at = (at - 1) / 2;
    }
    heap[at] = hash;
  }

  private void down(long hash, int size) {
    int at = 0;
    for (int child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && Long.compareUnsigned(heap[child + 1], heap[child]) > 0) {
        child++;
      }
      if (Long.compareUnsigned(heap[child], hash) <= 0) {
        break;
      }
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = hash;
  }
}
