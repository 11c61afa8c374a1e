package ucm.cli.trace;

import java.io.PrintWriter;
import picocli.CommandLine.Option;
import ucm.cli.output.Figures;
import ucm.cli.output.UsageException;
import ucm.lite.curve.AnalysisOptions;
import ucm.lite.curve.Sampling;

/** From how many blocks of a trace figures are estimated, and up to how many they are exact. */
public final class SampleOptions {

  @Option(
      names = "--sample",
      paramLabel = "RATE",
      description =
          "estimate all from this share of the blocks (SHARDS), 0.01 for example, which takes less"
              + " time and memory")
  private double rate;

  @Option(
      names = "--sample-size",
      paramLabel = "BLOCKS",
      description = "estimate all from at most this many blocks (fixed-size SHARDS)")
  private int size;

  @Option(
      names = "--max-blocks",
      paramLabel = "N",
      description =
          "most distinct blocks to analyse exactly; a trace with more is estimated from a sample"
              + " (default: what half of the heap holds)")
  private int maxBlocks = AnalysisOptions.DEFAULT.maxUniqueBlocks();

  /** Whether the user asks for a sample, however small the trace is. */
  boolean asked() {
    return rate != 0 || size != 0;
  }

  Sampling asSaid() {
    UsageException.when(rate != 0 && size != 0, "--sample and --sample-size exclude each other");
    return UsageException.accepted(
        () -> size != 0 ? Sampling.fixedSize(size) : Sampling.fixedRate(rate));
  }

  /** What is asked for, or all blocks, but never more of them than the bound. */
  public Sampling bounded(long bound) {
    checkBound();
    Sampling wanted = asked() ? asSaid() : Sampling.fixedRate(1);
    int most = (int) Math.min(Math.min(wanted.maxBlocks(), maxBlocks), bound);
    return new Sampling(wanted.rate(), most);
  }

  /** The blocks that a part of the heap holds; half of it is for the curve. */
  public static long blocksIn(int partsOfHeap, long bytesABlock) {
    return Math.max(1, Runtime.getRuntime().maxMemory() / partsOfHeap / bytesABlock);
  }

  /** The curve that is asked for: exact up to the bound, or sampled. */
  public AnalysisOptions analysis() {
    return asked() && rate != 1 ? exactAnalysis().sampledOnly(asSaid()) : exactAnalysis();
  }

  /** The exact curve up to the bound, whatever is asked for. */
  AnalysisOptions exactAnalysis() {
    checkBound();
    return AnalysisOptions.DEFAULT.withMaxUniqueBlocks(maxBlocks);
  }

  private void checkBound() {
    UsageException.atLeast("--max-blocks", maxBlocks, 1);
  }

  /** Says that figures are estimated without being asked for. */
  public void warn(PrintWriter err, double sampleRate) {
    if (!asked() && sampleRate < 1) {
      err.println(
          String.format(
              "ucm: the trace has more blocks than fit into memory (at most %s): figures are"
                  + " estimated from a sample of %s of them; a larger heap (UCM_JAVA_OPTS=-Xmx16g)"
                  + " allows more",
              Figures.grouped(maxBlocks), Figures.percent(sampleRate)));
    }
  }
}
