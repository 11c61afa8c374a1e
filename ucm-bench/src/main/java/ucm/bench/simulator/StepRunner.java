package ucm.bench.simulator;

import java.util.BitSet;
import ucm.pipeline.connector.engine.StepPlan;

/** What computes the steps of an engine. */
interface StepRunner {

  /**
   * Computes a step: returns when the engine would have the result.
   *
   * @param plan what is loaded and saved
   * @param computeNanos how long the step computes
   * @return the engine's blocks that could not be loaded
   */
  BitSet run(Batch batch, StepPlan plan, long computeNanos) throws InterruptedException;
}
