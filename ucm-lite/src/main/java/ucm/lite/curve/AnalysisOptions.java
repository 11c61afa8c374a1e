package ucm.lite.curve;

import java.util.Optional;
import ucm.platform.table.BlockTable;

/**
 * What a {@link TraceAnalyzer} computes, and how much memory it may take for it.
 *
 * @param exact whether the exact curves are computed
 * @param sampling how the sampled curves are made; empty for none
 * @param maxUniqueBlocks the most distinct blocks for which anything exact is kept, 1 or more;
 *     about {@value #BYTES_A_BLOCK} bytes each. A trace with more is analysed from a sample, with
 *     {@link #FALLBACK} unless {@code sampling} says otherwise. Six requests of a recorded trace count
 *     as a block.
 * @param recording whether the trace is kept for simulations ({@link TraceAnalyzer#recorded()})
 */
public record AnalysisOptions(
    boolean exact, Optional<Sampling> sampling, int maxUniqueBlocks, boolean recording) {

  /** The most memory a distinct block takes in the exact analysis, in bytes. */
  public static final int BYTES_A_BLOCK = 130;

  /** An approximation of the exact curves of a trace that is too large: about 10 MB at most. */
  public static final Sampling FALLBACK = new Sampling(0.01, 1 << 16);

  /** Exact, with no sample, and with distinct blocks in half of the heap at most. */
  public static final AnalysisOptions DEFAULT =
      new AnalysisOptions(true, Optional.empty(), blocksInHalfTheHeap(), false);

  public AnalysisOptions {
    if (maxUniqueBlocks < 1) {
      throw new IllegalArgumentException(
          "maxUniqueBlocks is " + maxUniqueBlocks + ", must be 1 or more");
    }
    if (!exact && sampling.isEmpty()) {
      throw new IllegalArgumentException("neither exact nor sampled curves are asked for");
    }
    if (!exact && recording) {
      throw new IllegalArgumentException("a recorded trace needs the exact analysis");
    }
  }

  public AnalysisOptions sampledOnly(Sampling chosen) {
    return new AnalysisOptions(false, Optional.of(chosen), maxUniqueBlocks, false);
  }

  public AnalysisOptions withSampling(Sampling chosen) {
    return new AnalysisOptions(exact, Optional.of(chosen), maxUniqueBlocks, recording);
  }

  public AnalysisOptions withRecording() {
    return new AnalysisOptions(exact, sampling, maxUniqueBlocks, true);
  }

  /** These options with another bound of distinct blocks, 1 or more. */
  public AnalysisOptions withMaxUniqueBlocks(int blocks) {
    return new AnalysisOptions(exact, sampling, blocks, recording);
  }

  private static int blocksInHalfTheHeap() {
    long blocks = Runtime.getRuntime().maxMemory() / 2 / BYTES_A_BLOCK;
    return (int) Math.max(1 << 16, Math.min(blocks, BlockTable.MAX_SIZE));
  }
}
