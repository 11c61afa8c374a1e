package ucm.lite.insight;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.lite.curve.QuantileHistogram;
import ucm.lite.curve.SampledBlocks;
import ucm.lite.curve.Sampling;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;

/**
 * Collects {@link SampledInsights} while a trace is read, in memory that its sample bounds: at most {@value
 * #BYTES_A_BLOCK} bytes a sampled block. What happens to a sampled block counts for 1 / rate blocks at that moment
 * (fixed-size SHARDS; see {@link Sampling}).
 *
 * <p>A session goes on at one block: the last one of its latest prompt, or the one before, as the last
 * may have been partial. If that block is in the sample, the turn is seen, whatever else is. After the
 * block before the last, a session goes on with another block than that last one. Unlike the exact
 * analysis, this does not know whether what follows was in an earlier prompt, which matters where a
 * prompt is the beginning of an earlier one.
 *
 * <p>A block of very many prompts, such as a system prompt, would count for all or nothing depending on
 * its hash. So once it is known to be hot it is left out, and the references that the sample lacks
 * count as the gaps of a block of every prompt.
 *
 * <p>Which blocks of a request are new cannot be told from a sample, so neither can how long requests
 * stay useful: blocks take their place. Used by one thread.
 */
public final class InsightsSampler implements TraceVisitor {
  /** The most memory a sampled block takes, in bytes. */
  public static final int BYTES_A_BLOCK = 200;

  private static final double MILLISECOND = 1e-3;

  /** Hot is a block that was used this often, and by one of so many requests. */
  private static final int HOT_USES = 20;

  private static final int HOT_SHARE = 20;

  /** No block; hashes are this by a chance of 2^-64. */
  private static final long NONE = 0;

  private final SampledBlocks sample;
  private final QuantileHistogram sessionGaps = new QuantileHistogram(MILLISECOND);
  private final QuantileHistogram blockGaps = new QuantileHistogram(MILLISECOND);
  private @Nullable SampledBlock[] blocks = new SampledBlock[256];
  private long[] hashes = new long[256];
  private long requests;
  private long references;
  private double first = Double.POSITIVE_INFINITY;
  private double last;

  private static final class SampledBlock {
    final long high;
    final long low;
    final int depth;
    final double firstUse;
    final long firstRequest;
    double lastUse;
    long lastRequest;
    long uses = 1;

    /** When a session ended here, or NaN; and the hash of what followed in that prompt. */
    double sessionTime = Double.NaN;

    long sessionNext;

    SampledBlock(TraceRequest request, int position, long number) {
      high = request.blockIdHigh(position);
      low = request.blockIdLow(position);
      depth = position + 1;
      firstUse = request.timestampMillis();
      lastUse = firstUse;
      firstRequest = number;
      lastRequest = number;
    }
  }

  public InsightsSampler(Sampling sampling) {
    sample = new SampledBlocks(sampling);
  }

  @Override
  public void request(TraceRequest request) {
    int count = request.blockCount();
    if (count > hashes.length) {
      hashes = new long[2 * count];
    }
    for (int i = 0; i < count; i++) {
      hashes[i] = Sampling.hash(request.blockIdHigh(i), request.blockIdLow(i));
    }
    double weight = 1 / sample.rate();
    for (int i = 0; i < count; i++) {
      if (sample.samples(hashes[i])) {
        use(request, count, i, weight);
      }
    }
    requests++;
    references += count;
    first = Math.min(first, request.timestampMillis());
    last = Math.max(last, request.timestampMillis());
    while (sample.over()) {
      blocks[sample.removeLargest()] = null;
    }
  }

  private void use(TraceRequest request, int count, int at, double weight) {
    long next = at + 1 < count ? hashes[at + 1] : NONE;
    double now = request.timestampMillis();
    int number = sample.number(hashes[at]);
    SampledBlock block = number == SampledBlocks.NONE ? null : blocks[number];
    boolean sessionIsHere = block == null;
    if (block == null) {
      block = new SampledBlock(request, at, requests);
      number = sample.add(hashes[at]);
      blocks = number < blocks.length ? blocks : Arrays.copyOf(blocks, 2 * number);
      blocks[number] = block;
    } else if (block.lastRequest != requests) {
      block.uses++;
      if (weight == 1 || block.uses < HOT_USES || block.uses * HOT_SHARE < requests) {
        blockGaps.add(TraceInsights.seconds(block.lastUse, now), weight);
      }
      block.lastUse = now;
      block.lastRequest = requests;
      if (!Double.isNaN(block.sessionTime)
          && (block.sessionNext == NONE || block.sessionNext != next)) {
        sessionGaps.add(TraceInsights.seconds(block.sessionTime, now), weight);
        // Another request that goes on from here is another session.
        block.sessionTime = Double.NaN;
        sessionIsHere = true;
      }
    }
    if (next == NONE || (at + 2 == count && sessionIsHere)) {
      block.sessionTime = now;
      block.sessionNext = next;
    }
  }

  /** What the requests so far tell; it does not change any more. */
  public SampledInsights result() {
    QuantileHistogram gaps = blockGaps.copy();
    double missing = references - sample.size() / sample.rate() - gaps.count();
    if (sample.rate() < 1 && missing > 0) {
      gaps.add(TraceInsights.seconds(first, last) / requests, missing);
    }
    QuantileHistogram lifetimes = new QuantileHistogram(MILLISECOND);
    double weight = 1 / sample.rate();
    List<SampledBlock> reused = new ArrayList<>();
    for (SampledBlock block : blocks) {
      if (block != null && block.uses > 1) {
        reused.add(block);
        lifetimes.add(TraceInsights.seconds(block.firstUse, block.lastUse), weight);
      }
    }
    return new SampledInsights(
        sample.rate(),
        Math.max(0, requests - sessionGaps.count()),
        sessionGaps.quantiles(),
        gaps.quantiles(),
        lifetimes.quantiles(),
        Math.round((sample.size() - reused.size()) * weight),
        hotPrefixes(reused));
  }

  private static List<HotPrefix> hotPrefixes(List<SampledBlock> reused) {
    reused.sort(Comparator.comparingLong(InsightsSampler::saved).reversed());
    List<SampledBlock> hot = new ArrayList<>();
    for (SampledBlock block : reused) {
      if (hot.size() < HotPrefix.MOST && hot.stream().noneMatch(other -> onePrefix(block, other))) {
        hot.add(block);
      }
    }
    return hot.stream()
        .map(block -> HotPrefix.of(block.high, block.low, block.depth, block.uses))
        .toList();
  }

  /** Whether one is the beginning of the other, because one prompt has both, and as frequent. */
  private static boolean onePrefix(SampledBlock a, SampledBlock b) {
    return (a.firstRequest == b.firstRequest || a.lastRequest == b.lastRequest)
        && Math.min(a.uses, b.uses) >= HotPrefix.AS_FREQUENT * Math.max(a.uses, b.uses);
  }

  /** Block references that the prefix up to a block saves. */
  private static long saved(SampledBlock block) {
    return (block.uses - 1) * block.depth;
  }
}
