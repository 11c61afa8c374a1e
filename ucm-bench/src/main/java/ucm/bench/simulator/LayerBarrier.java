package ucm.bench.simulator;

import java.util.concurrent.Phaser;
import java.util.stream.LongStream;

/**
 * Spreads the simulated compute of a step over its layers, for all ranks together: a layer begins when every
 * rank has it loaded and the layer before it is computed, as tensor-parallel ranks exchange their results in
 * every layer.
 *
 * <p>The end of a layer is the end of the one before it, plus what the slowest rank waited for its load,
 * plus the compute of a layer. That a thread wakes up late does not add up: the next layer ends on time.
 */
final class LayerBarrier {

  private final EngineClock clock;
  private final int layers;
  private final long[] waited;
  private final int[][] failed;
  private final Phaser layer;
  private final Phaser end;
  private long layerNanos;
  private long layerEnd;

  LayerBarrier(EngineClock clock, int ranks, int layers) {
    this.clock = clock;
    this.layers = layers;
    this.waited = new long[ranks];
    this.failed = new int[ranks][];
    this.layer =
        new Phaser(ranks) {
          @Override
          protected boolean onAdvance(int phase, int parties) {
            beginLayer();
            return false;
          }
        };
    this.end = new Phaser(ranks);
  }

  /** Begins a step; before any rank does. */
  void begin(long computeNanos) {
    layerNanos = computeNanos / layers;
    layerEnd = clock.nanos();
  }

  // Run by the last rank to arrive, before any rank goes on.
  private void beginLayer() {
    layerEnd += LongStream.of(waited).max().orElse(0) + layerNanos;
  }

  /** Computes a layer for which the rank has waited so long to be loaded. */
  void compute(int rank, long waitedNanos) throws InterruptedException {
    waited[rank] = waitedNanos;
    meet(layer);
    clock.waitUntil(layerEnd);
  }

  /** Tells all ranks what one could not load; returns what each could not, until the next step. */
  int[][] exchange(int rank, int[] blocks) throws InterruptedException {
    failed[rank] = blocks;
    meet(end);
    return failed;
  }

  private static void meet(Phaser all) throws InterruptedException {
    if (all.awaitAdvanceInterruptibly(all.arrive()) < 0) {
      throw new IllegalStateException("the step was given up: another rank failed");
    }
  }

  /** Gives the step up: no rank waits for the others any more, for ever. */
  void giveUp() {
    layer.forceTermination();
    end.forceTermination();
  }
}
