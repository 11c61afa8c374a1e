package ucm.lite.curve;

import com.carrotsearch.hppc.IntStack;
import com.carrotsearch.hppc.LongIntHashMap;
import java.util.PriorityQueue;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceRequest;
import ucm.platform.table.BlockTable;

/**
 * The LRU curve from a sample of the blocks (SHARDS; see {@link Sampling}), in both touch orders.
 *
 * <p>A distance among the sampled blocks, divided by the sampling rate, estimates the distance among
 * all; every sampled reference counts for 1 / rate references. As in the paper's SHARDS-adj, the
 * difference between the references there were and those the sample stands for is put at the
 * smallest distance: it comes from few very hot blocks (a system prompt) being in the sample or not.
 *
 * <p>The running maximum along the prefix is taken over its sampled blocks. With leaves touched last
 * the true maximum belongs to a block a few places nearer the root of the same earlier prompt, so
 * the estimate is too small by at most the length of a prompt; with roots touched last it is the
 * block itself.
 *
 * <p>A block is known by 64 hash bits of its id; two of n blocks share them with a chance of n^2 /
 * 2^65. The upper {@value #THRESHOLD_BITS} bits decide about the sample. When the sample is full,
 * the block with the largest hash leaves it and its hash becomes the threshold.
 */
final class ShardsSampler {
  private static final int NONE = -1;
  private static final int THRESHOLD_BITS = 24;
  private static final double HASHES = 1 << THRESHOLD_BITS;

  private final int maxBlocks;

  /** The upper bits of the hashes of the sample are below. */
  private long threshold;

  /** The number of each block of the sample, by its hash; used again after it left the sample. */
  private final LongIntHashMap sample = new LongIntHashMap();

  /** All numbers given are below. */
  private int numbersEnd;

  private final IntStack freeNumbers = new IntStack();

  /** The hashes of the sample, largest first; empty where blocks never leave. */
  private final PriorityQueue<Long> largest =
      new PriorityQueue<>((a, b) -> Long.compareUnsigned(b, a));

  private final StackDistances distances = new StackDistances(/* exact= */ false);
  private long[] hashes = new long[64];
  private int[] numbers = new int[64];
  private int[] positions = new int[64];
  private long references;
  private long tokens;
  private double weighedReferences;
  private double weighedTokens;

  ShardsSampler(Sampling sampling) {
    maxBlocks = sampling.maxBlocks();
    threshold = Math.max(1, Math.round(sampling.rate() * HASHES));
  }

  void accept(TraceRequest request) {
    int count = request.blockCount();
    references += count;
    tokens += request.prefixTokens(count);
    int sampled = select(request, count);
    int known = 0;
    double weight = 1 / rate();
    for (int k = 0; k < sampled; k++) {
      numbers[k] = sample.getOrDefault(hashes[k], NONE);
      known += known == k && numbers[k] != NONE ? 1 : 0;
      weighedReferences += weight;
      weighedTokens += weight * request.tokensOf(positions[k]);
    }
    distances.lookUp(numbers, known, weight, k -> request.tokensOf(positions[k]));
    touch(sampled);
    while (sample.size() > maxBlocks || (!largest.isEmpty() && !isSampled(largest.element()))) {
      distances.forget(removeLargest());
    }
  }

  /** Collects the sampled blocks of a request and returns how many there are. */
  private int select(TraceRequest request, int count) {
    if (count > hashes.length) {
      hashes = new long[2 * count];
      numbers = new int[2 * count];
      positions = new int[2 * count];
    }
    int sampled = 0;
    for (int i = 0; i < count; i++) {
      long hash = BlockTable.hash(request.ids().high(i), request.ids().low(i));
      if (isSampled(hash)) {
        hashes[sampled] = hash;
        positions[sampled++] = i;
      }
    }
    return sampled;
  }

  private void touch(int sampled) {
    for (int k = 0; k < sampled; k++) {
      if (numbers[k] == NONE) {
        // Again, as the block may occur twice in the request.
        int number = sample.getOrDefault(hashes[k], NONE);
        numbers[k] = number == NONE ? add(hashes[k]) : number;
      }
    }
    distances.touch(numbers, sampled, numbersEnd);
  }

  private boolean isSampled(long hash) {
    return hash >>> (Long.SIZE - THRESHOLD_BITS) < threshold;
  }

  private int add(long hash) {
    int number = freeNumbers.isEmpty() ? numbersEnd++ : freeNumbers.pop();
    sample.put(hash, number);
    if (maxBlocks < Integer.MAX_VALUE) {
      largest.add(hash);
    }
    return number;
  }

  /** Takes the block with the largest hash out of the sample and returns the number it had. */
  private int removeLargest() {
    long hash = largest.remove();
    if (isSampled(hash)) {
      threshold = Math.max(1, hash >>> (Long.SIZE - THRESHOLD_BITS));
    }
    int number = sample.remove(hash);
    freeNumbers.push(number);
    return number;
  }

  double rate() {
    return threshold / HASHES;
  }

  /** Estimates the distinct blocks of the trace. */
  long uniqueBlocks() {
    return Math.round(sample.size() / rate());
  }

  LruCurve curve(TouchOrder order) {
    return distances.curve(order, rate(), references - weighedReferences, tokens - weighedTokens);
  }
}
