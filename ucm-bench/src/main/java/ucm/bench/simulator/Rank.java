package ucm.bench.simulator;

import java.util.BitSet;
import java.util.List;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.StepPlan;

/** A tensor-parallel rank: its KV memory and its side of the connector. Used by its own thread. */
final class Rank {

  private final int number;
  private final int layers;
  private final WorkerConnector worker;
  private final KvPages pages;
  private final EngineClock clock;
  private final LayerBarrier barrier;
  private final BitSet failed = new BitSet();

  Rank(
      int number,
      int layers,
      WorkerConnector worker,
      KvPages pages,
      EngineClock clock,
      LayerBarrier barrier) {
    this.number = number;
    this.layers = layers;
    this.worker = worker;
    this.pages = pages;
    this.clock = clock;
    this.barrier = barrier;
  }

  /** Before a step: what it loads must be seen to arrive, what it computes is there already. */
  void prepare(List<PageRun> loads, List<PageRun> computes) {
    loads.forEach(pages::poison);
    computes.forEach(pages::fill);
  }

  /** Runs a step as the connector asks for it. */
  void step(StepPlan plan) throws InterruptedException {
    long before = clock.nanos();
    worker.startLoad(plan);
    for (int layer = 0; layer < layers; layer++) {
      worker.waitForLayerLoad(layer);
      barrier.compute(number, clock.nanos() - before);
      worker.saveLayer(layer);
      before = clock.nanos();
    }
    int[][] errors = barrier.exchange(number, worker.takeLoadErrors());
    failed.clear();
    for (int rank = 0; rank < errors.length; rank++) {
      if (rank != number) {
        worker.excludeFromSave(errors[rank]);
      }
      for (int block : errors[rank]) {
        failed.set(block);
      }
    }
    worker.waitForSave();
  }

  /** After a step: compares what was loaded. */
  void verify(List<PageRun> loads) {
    for (PageRun run : loads) {
      for (int i = 0; i < run.pages().length; i++) {
        if (!failed.get(run.pages()[i])) {
          pages.verify(run, i);
        }
      }
    }
  }

  /** The blocks that some rank could not load in the last step. */
  BitSet failed() {
    return failed;
  }

  void close() {
    worker.close();
  }
}
