package ucm.lite.curve;

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
 */
final class ShardsSampler {
  private final SampledBlocks sample;
  private final StackDistances distances = new StackDistances(/* exact= */ false);
  private long[] hashes = new long[64];
  private int[] numbers = new int[64];
  private int[] positions = new int[64];
  private long references;
  private long tokens;
  private double weighedReferences;
  private double weighedTokens;

  ShardsSampler(Sampling sampling) {
    sample = new SampledBlocks(sampling);
  }

  void accept(TraceRequest request) {
    int count = request.blockCount();
    references += count;
    tokens += request.prefixTokens(count);
    int sampled = select(request, count);
    int known = 0;
    double weight = 1 / sample.rate();
    for (int k = 0; k < sampled; k++) {
      numbers[k] = sample.number(hashes[k]);
      known += known == k && numbers[k] != SampledBlocks.NONE ? 1 : 0;
      weighedReferences += weight;
      weighedTokens += weight * request.tokensOf(positions[k]);
    }
    distances.lookUp(numbers, known, weight, k -> request.tokensOf(positions[k]));
    touch(sampled);
    while (sample.over()) {
      distances.forget(sample.removeLargest());
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
      long hash = BlockTable.hash(request.blockIdHigh(i), request.blockIdLow(i));
      if (sample.samples(hash)) {
        hashes[sampled] = hash;
        positions[sampled++] = i;
      }
    }
    return sampled;
  }

  private void touch(int sampled) {
    for (int k = 0; k < sampled; k++) {
      if (numbers[k] == SampledBlocks.NONE) {
        // Again, as the block may occur twice in the request.
        int number = sample.number(hashes[k]);
        numbers[k] = number == SampledBlocks.NONE ? sample.add(hashes[k]) : number;
      }
    }
    distances.touch(numbers, sampled, sample.numbersEnd());
  }

  double rate() {
    return sample.rate();
  }

  /** Estimates the distinct blocks of the trace. */
  long uniqueBlocks() {
    return Math.round(sample.size() / sample.rate());
  }

  LruCurve curve(TouchOrder order) {
    return distances.curve(
        order, sample.rate(), references - weighedReferences, tokens - weighedTokens);
  }
}
